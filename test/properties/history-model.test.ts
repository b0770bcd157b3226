/** The history of secrets compared with a model over random sequences of changes, batches of them, restarts and settings. */
import { expect } from "chai";
import fc from "fast-check";
import { cleanUpMark, cleanUpTo } from "../../tools/rig/clean-up.js";
import { passphrase, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  type Json,
  mustGet,
  mustInit,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";

type Content = { readonly value: string; readonly description?: string };
type Version = { readonly version: number; readonly content: Content };
type Limits = { readonly keepVersions: number; readonly keepVersionBytes: number };

type Operation =
  | { readonly put: string; readonly content: Content }
  | { readonly delete: string }
  | { readonly move: string; readonly to: string }
  | { readonly copy: string; readonly to: string };

type Step =
  | { readonly do: "batch"; readonly operations: readonly Operation[] }
  | { readonly do: "put"; readonly path: string; readonly content: Content }
  | { readonly do: "undo"; readonly path: string; readonly back: number }
  | { readonly do: "prune" | "delete"; readonly path: string }
  | { readonly do: "restart"; readonly limits: Limits };

const path = fc.constantFrom("a", "a/b", "é");
const content: fc.Arbitrary<Content> = fc.record(
  { value: fc.constantFrom("", "one", "zwö\n", "x".repeat(300)), description: fc.constantFrom("d", "e") },
  { requiredKeys: ["value"] },
);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ put: path, content }),
  fc.record({ delete: path }),
  fc.record({ move: path, to: path }),
  fc.record({ copy: path, to: path }),
);
const limits: fc.Arbitrary<Limits> = fc.record({
  keepVersions: fc.constantFrom(0, 1, 2, 10, 100),
  keepVersionBytes: fc.constantFrom(0, 500, 1_000, 262_144),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant("put" as const), path, content }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("undo" as const), path, back: fc.integer({ min: -1, max: 4 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("batch" as const),
      operations: fc.array(operation, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("prune" as const, "delete" as const), path }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), limits }) },
);

/** Two lengths of 4 bytes, two nonces of 24, two tags of 16, and the plaintexts; times have 24 characters. */
function sealedBytes({ version, content: { value, description } }: Version): number {
  const time = "2026-03-01T12:00:00.000Z";
  const metadata = { metadata: { ...(description && { description }) }, createdAt: time, updatedAt: time, version };
  return 88 + Buffer.byteLength(JSON.stringify(metadata)) + Buffer.byteLength(JSON.stringify(value));
}

/** The versions that the server must have, the current one first. */
class Model {
  readonly secrets = new Map<string, readonly Version[]>();
  limits: Limits = { keepVersions: 10, keepVersionBytes: 262_144 };

  /** Returns the number of the version. */
  put(at: string, put: Content): number {
    const [present, ...past] = this.secrets.get(at) ?? [];
    const isSame = this.limits.keepVersions > 0 && sameContent(present?.content, put);
    const version = (present?.version ?? 0) + (isSame ? 0 : 1);
    const earlier = isSame || present === undefined ? past : [present, ...past];
    this.secrets.set(at, [{ version, content: put }, ...this.#kept(earlier)]);
    return version;
  }

  /** Returns the status; nothing has changed unless it is 200. */
  batch(operations: readonly Operation[]): 200 | 400 | 404 {
    const changed = operations.flatMap(changedBy);
    const toItself = operations.some((one) => "copy" in one && one.copy === one.to);
    if (toItself || new Set(changed).size < changed.length) return 400;
    const before = new Map(this.secrets);
    if (operations.some((one) => !("put" in one) && !before.has(sourcePath(one)))) return 404;
    for (const one of operations) this.#change(one, before);
    return 200;
  }

  #change(one: Operation, before: ReadonlyMap<string, readonly Version[]>): void {
    if ("put" in one) return void this.put(one.put, one.content);
    const versions = before.get(sourcePath(one)) ?? [];
    if (!("copy" in one)) this.secrets.delete(sourcePath(one));
    if ("move" in one) this.secrets.set(one.to, versions);
    if ("copy" in one) this.secrets.set(one.to, [{ version: 1, content: versions[0]?.content ?? { value: "" } }]);
  }

  #kept(versions: readonly Version[]): readonly Version[] {
    const { keepVersions, keepVersionBytes } = this.limits;
    const few = versions.slice(0, keepVersions);
    const sizes = few.map((_, i) => few.slice(0, i + 1).reduce((sum, one) => sum + sealedBytes(one), 0));
    return few.filter((_, i) => i === 0 || (sizes[i] ?? 0) <= keepVersionBytes);
  }
}

function sameContent(a: Content | undefined, b: Content): boolean {
  return a?.value === b.value && a.description === b.description;
}

function sourcePath(one: Exclude<Operation, { put: string }>): string {
  if ("delete" in one) return one.delete;
  return "move" in one ? one.move : one.copy;
}

function changedBy(one: Operation): string[] {
  if ("put" in one) return [one.put];
  if ("copy" in one) return [one.to];
  return "move" in one ? [one.move, one.to] : [one.delete];
}

async function take(server: TestServer, model: Model, next: Step): Promise<TestServer> {
  if (next.do === "restart") {
    await server.stop();
    model.limits = next.limits;
    const again = await startTestServer({ home: server.home, ...next.limits });
    await mustUnlock(again, passphrase);
    return again;
  }
  if (next.do === "batch") {
    await checkBatch(server, model, next.operations);
    return server;
  }
  if (next.do === "put") await checkPut(server, model, next.path, next.content);
  else if (next.do === "undo") await checkUndo(server, model, next.path, next.back);
  else await checkRemoval(server, model, next);
  await checkHistory(server, model, next.path);
  return server;
}

async function checkPut(server: TestServer, model: Model, at: string, body: Content): Promise<void> {
  const answer = mustSucceed(await send(server, { method: "PUT", path: secretTarget(at), body }));
  expect(answer["version"]).to.equal(model.put(at, body));
}

async function checkBatch(server: TestServer, model: Model, operations: readonly Operation[]): Promise<void> {
  const body = { operations: operations.map((one) => ("put" in one ? { put: one.put, ...one.content } : one)) };
  const answer = await send(server, { method: "POST", path: "/v1/batch", body });
  expect(answer.status, answer.text).to.equal(model.batch(operations));
  for (const at of new Set(operations.flatMap(changedBy))) await checkHistory(server, model, at);
}

async function checkUndo(server: TestServer, model: Model, at: string, back: number): Promise<void> {
  const versions = model.secrets.get(at) ?? [];
  const version = Math.max(1, (versions[0]?.version ?? 1) - back);
  const answer = await send(server, { method: "POST", path: versionsTarget(at), body: { version } });
  const found = versions.find((one) => one.version === version);
  if (found === undefined) return mustRefuse(answer, 404, "NOT_FOUND");
  const { value } = found.content;
  const stored = { version: model.put(at, found.content), bytes: Buffer.byteLength(value) };
  expect(mustSucceed(answer)).to.deep.include(stored);
}

async function checkRemoval(server: TestServer, model: Model, next: Step & { do: "prune" | "delete" }): Promise<void> {
  const target = next.do === "prune" ? versionsTarget(next.path) : secretTarget(next.path);
  const answer = await send(server, { method: "DELETE", path: target });
  const versions = model.secrets.get(next.path);
  if (versions === undefined) return mustRefuse(answer, 404, "NOT_FOUND");
  const { message } = mustSucceed(answer);
  if (next.do === "delete") {
    model.secrets.delete(next.path);
    return;
  }
  expect(message).to.match(new RegExp(`^${versions.length - 1} `));
  model.secrets.set(next.path, versions.slice(0, 1));
}

async function checkHistory(server: TestServer, model: Model, at: string): Promise<void> {
  const answer = await send(server, { path: versionsTarget(at) });
  const versions = model.secrets.get(at);
  if (versions === undefined) return mustRefuse(answer, 404, "NOT_FOUND");
  const listed = mustSucceed(answer)["versions"] as Json[];
  expect(listed.map(({ version }) => version)).to.deep.equal(versions.map(({ version }) => version));
  expect(new Set(listed.map(({ etag }) => etag)).size).to.equal(listed.length);
  for (const [i, { version, content: kept }] of versions.entries()) {
    const read = mustSucceed(await send(server, { path: `${versionsTarget(at)}?version=${version}` }));
    const metadata = { ...(kept.description && { description: kept.description }) };
    expect(read).to.deep.equal({ path: at, value: kept.value, ...listed[i], metadata });
    if (i === 0) expect(await mustGet(server, at)).to.deep.equal(read);
  }
}

function versionsTarget(at: string): string {
  return `/v1/versions/${encodeURIComponent(at)}`;
}

describe("the history of secrets against a model", () => {
  it("secrets and their history agree with the model over random sequences of changes, restarts and settings", async function () {
    this.timeout(0);
    const numRuns = Number(process.env["STRONGROOM_HISTORY_RUNS"] ?? 4);
    const agrees = async (steps: readonly Step[]) => {
      const mark = cleanUpMark();
      const model = new Model();
      try {
        let server = await startTestServer();
        await mustInit(server);
        for (const next of steps) server = await take(server, model, next);
        for (const at of model.secrets.keys()) await checkHistory(server, model, at);
      } finally {
        await cleanUpTo(mark);
      }
    };
    const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), agrees);
    await fc.assert(property, { numRuns, endOnFailure: true, includeErrorInReport: true }); // shrinking would take hours
  });
});
