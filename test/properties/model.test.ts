/** The whole vault compared with a plain Map over random operations, locks, restarts and forced inits. */
import { expect } from "chai";
import fc from "fast-check";
import { shared } from "../support/clean-up.js";
import { needsPostgres } from "../support/postgres.js";
import { startTestServer, type TestServer } from "../support/server.js";
import { startSharedDatabase, startSharedServers, storeOf } from "../support/shared-servers.js";
import {
  type Entry,
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../support/test-client.js";
import { overRandomSteps } from "./random-steps.js";

type Secret = { readonly value: string; readonly type?: string; readonly description?: string };

/** The expected state of the server. */
class Model {
  secrets = new Map<string, Secret>();
  locked = false;
  passphrase = "first";
}

type Step =
  | { readonly do: "put"; readonly path: string; readonly secret: Secret }
  | { readonly do: "get" | "delete"; readonly path: string }
  | { readonly do: "list"; readonly prefix: string }
  | { readonly do: "lock" | "unlock" | "restart" | "reinit" | "status" };

const path = fc.constantFrom("a", "A", "a/b", "a/b/c", "b", "é", "x/y/z", "x/y", "%2f", "a.sealed", "con");
const secret: fc.Arbitrary<Secret> = fc.record(
  {
    value: fc.string({ unit: "grapheme", maxLength: 40 }),
    type: fc.constantFrom("password", "other"),
    description: fc.string({ maxLength: 10 }),
  },
  { requiredKeys: ["value"] },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("put" as const), path, secret }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom("get" as const, "delete" as const), path }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("list" as const), prefix: fc.constantFrom("", "a", "a/", "x/y", "q") }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("lock" as const, "unlock" as const, "status" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("restart" as const, "reinit" as const) }) },
);

/** Starts a server with this home again. */
type Restart = (home: string) => Promise<TestServer>;

async function take(server: TestServer, model: Model, next: Step, restart: Restart): Promise<TestServer> {
  switch (next.do) {
    case "put":
      await checkPut(server, model, next.path, next.secret);
      break;
    case "get":
      await checkGet(server, model, next.path);
      break;
    case "delete":
      await checkDelete(server, model, next.path);
      break;
    case "list":
      await checkList(server, model, next.prefix);
      break;
    case "status":
      expect(await mustStatus(server)).to.include({ locked: model.locked, secretCount: model.secrets.size });
      break;
    case "lock":
      await mustLock(server);
      model.locked = true;
      break;
    case "unlock":
      await mustUnlock(server, model.passphrase);
      model.locked = false;
      break;
    case "reinit":
      model.passphrase += "+";
      await mustInit(server, { passphrase: model.passphrase, force: true });
      model.secrets.clear();
      model.locked = false;
      break;
    case "restart":
      await server.stop();
      model.locked = true;
      return restart(server.home);
  }
  return server;
}

async function checkPut(server: TestServer, model: Model, at: string, put: Secret): Promise<void> {
  const answer = await send(server, { method: "PUT", path: secretTarget(at), body: put });
  if (model.locked) return mustRefuse(answer, 403, "VAULT_LOCKED");
  const { value, ...metadata } = put;
  expect(mustSucceed(answer)).to.deep.include({ ok: true, path: at, bytes: Buffer.byteLength(value), metadata });
  model.secrets.set(at, put);
}

async function checkGet(server: TestServer, model: Model, at: string): Promise<void> {
  const answer = await send(server, { path: secretTarget(at) });
  if (model.locked) return mustRefuse(answer, 403, "VAULT_LOCKED");
  const known = model.secrets.get(at);
  if (known === undefined) return mustRefuse(answer, 404, "NOT_FOUND");
  const { value, ...metadata } = known;
  expect(mustSucceed(answer)).to.deep.include({ path: at, value, metadata });
}

async function checkDelete(server: TestServer, model: Model, at: string): Promise<void> {
  const answer = await send(server, { method: "DELETE", path: secretTarget(at) });
  if (model.locked) return mustRefuse(answer, 403, "VAULT_LOCKED");
  if (!model.secrets.delete(at)) return mustRefuse(answer, 404, "NOT_FOUND");
  mustSucceed(answer);
}

async function checkList(server: TestServer, model: Model, prefix: string): Promise<void> {
  const answer = await send(server, { path: `/v1/secrets?prefix=${encodeURIComponent(prefix)}` });
  if (model.locked) return mustRefuse(answer, 403, "VAULT_LOCKED");
  const listed = mustSucceed(answer)["entries"] as Entry[];
  const known = [...model.secrets]
    .filter(([at]) => at.startsWith(prefix))
    .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .map(([at, { value: _, ...metadata }]) => ({ path: at, metadata }));
  expect(listed.map(({ path: at, metadata }) => ({ path: at, metadata }))).to.deep.equal(known);
}

async function agree(first: TestServer, steps: readonly Step[], restart: Restart): Promise<void> {
  const model = new Model();
  let server = first;
  await mustInit(server, { passphrase: model.passphrase });
  for (const next of steps) server = await take(server, model, next, restart);
  if (model.locked) await mustUnlock(server, model.passphrase);
  for (const [at, { value }] of model.secrets) expect((await mustGet(server, at))["value"]).to.equal(value);
  await mustPut(server, "last", "works");
}

const runs = process.env["STRONGROOM_MODEL_RUNS"];
const lengths = { minLength: 30, maxLength: 60 };

describe("the vault against a plain Map", function () {
  this.timeout(0);

  it("agrees over random sequences of operations, restarts and locks included", async () => {
    const restart = (home: string) => startTestServer({ home });
    const numRuns = Number(runs ?? 6);
    await overRandomSteps(step, { ...lengths, numRuns }, (first, steps) => agree(first, steps, restart));
  });
});

describe("the vault in PostgreSQL against a plain Map", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);

  it("agrees over random sequences of operations, restarts and locks included", async () => {
    const restart = (home: string) => startTestServer({ home, store: storeOf(database()) });
    const start = async () => (await startSharedServers(database(), 1))[0];
    const agreeing = (first: TestServer, steps: readonly Step[]) => agree(first, steps, restart);
    await overRandomSteps(step, { ...lengths, numRuns: Number(runs ?? 2) }, agreeing, start);
  });
});
