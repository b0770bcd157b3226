/**
 * The whole vault compared with a plain Map over random operations, locks, restarts, changed keys and forced inits. Each get is
 * sent again, so that some come from what servers and key worker remember.
 */
import { expect } from "chai";
import fc from "fast-check";
import { shared } from "../../tools/rig/clean-up.js";
import { needsPostgres } from "../../tools/rig/postgres.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
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
} from "../../tools/rig/test-client.js";
import { changing, outcomeOf, rotating, untilRotated } from "../support/key-requests.js";
import { startSharedDatabase, startSharedServers, storeOf } from "../support/shared-servers.js";
import { overRandomSteps } from "./random-steps.js";

type Secret = { readonly value: string; readonly type?: string; readonly description?: string };

/** The expected state of the server. */
class Model {
  secrets = new Map<string, Secret>();
  trash = new Map<string, Secret>();
  locked = false;
  passphrase = "first";
}

type Step =
  | { readonly do: "put"; readonly path: string; readonly secret: Secret }
  | { readonly do: "get" | "delete"; readonly path: string }
  | { readonly do: "trash" | "untrash"; readonly path: string }
  | { readonly do: "move" | "copy"; readonly path: string; readonly to: string }
  | { readonly do: "list"; readonly prefix: string }
  | { readonly do: "elsewhere"; readonly path: string; readonly secret: Secret }
  | { readonly do: "lock" | "unlock" | "restart" | "reinit" | "status" | "passphrase" | "rotate" | "swap" };

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
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("trash" as const, "untrash" as const), path }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom("move" as const, "copy" as const), path, to: path }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("elsewhere" as const), path, secret }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("list" as const), prefix: fc.constantFrom("", "a", "a/", "x/y", "q") }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("lock" as const, "unlock" as const, "status" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("passphrase" as const, "rotate" as const, "swap" as const) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("restart" as const, "reinit" as const) }) },
);

/** Home or database that the vault is in. */
type Place = {
  /** Starts a server with this home again. */
  readonly restart: (home: string) => Promise<TestServer>;
  /** Swaps what is stored at two paths, as one who can write the database may. Null: it is tested elsewhere. */
  readonly swap: ((path: string, other: string) => Promise<unknown>) | null;
  /** Another server of the vault. Null: there is none. */
  readonly other: (() => TestServer) | null;
};

async function take(server: TestServer, model: Model, next: Step, place: Place): Promise<TestServer> {
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
    case "trash":
    case "untrash":
      await checkTrash(server, model, next);
      break;
    case "move":
    case "copy":
      await checkCopy(server, model, next);
      break;
    case "swap":
      if (place.swap !== null) await checkSwapped(server, model, place.swap);
      break;
    case "elsewhere":
      if (place.other !== null) await checkElsewhere(place.other(), model, next.path, next.secret);
      break;
    case "list":
      await checkList(server, model, next.prefix);
      break;
    case "status":
      expect(await mustStatus(server)).to.include({ locked: model.locked, secretCount: model.secrets.size });
      break;
    default:
      return changeState(server, model, next.do, place);
  }
  if ("path" in next && next.do !== "get") await checkGet(server, model, next.path);
  return server;
}

type StateChange = "lock" | "unlock" | "restart" | "reinit" | "passphrase" | "rotate";

async function changeState(server: TestServer, model: Model, change: StateChange, place: Place): Promise<TestServer> {
  switch (change) {
    case "lock":
      await mustLock(server);
      model.locked = true;
      break;
    case "unlock":
      await mustUnlock(server, model.passphrase);
      model.locked = false;
      await endRotation(server, place);
      break;
    case "reinit":
      model.passphrase += "+";
      await mustInit(server, { passphrase: model.passphrase, force: true });
      model.secrets.clear();
      model.trash.clear();
      model.locked = false;
      break;
    case "passphrase":
      mustSucceed(await send(server, changing(model.passphrase, `${model.passphrase}!`)));
      model.passphrase += "!";
      break;
    case "rotate":
      expect(["200", "409 ALREADY_EXISTS"]).to.include(outcomeOf(await send(server, rotating([], model.passphrase))));
      await checkAll(server, model); // while it runs
      if (!model.locked) await endRotation(server, place);
      break;
    case "restart":
      await server.stop();
      model.locked = true;
      return place.restart(server.home);
  }
  return server;
}

/** Where there is another server: the end of a rotation on one locks the other. */
async function endRotation(server: TestServer, { other }: Place): Promise<void> {
  if (other !== null) await untilRotated(server);
}

async function checkPut(server: TestServer, model: Model, at: string, put: Secret): Promise<void> {
  const answer = await send(server, { method: "PUT", path: secretTarget(at), body: put });
  if (model.locked) return mustRefuse(answer, 403, "VAULT_LOCKED");
  const { value, ...metadata } = put;
  expect(mustSucceed(answer)).to.deep.include({ ok: true, path: at, bytes: Buffer.byteLength(value), metadata });
  model.secrets.set(at, put);
}

/** The key worker remembers a value that it opens again. */
const gets = 3;

async function checkGet(server: TestServer, model: Model, at: string): Promise<void> {
  for (let i = 0; i < gets; i++) {
    const answer = await send(server, { path: secretTarget(at) });
    if (model.locked) return mustRefuse(answer, 403, "VAULT_LOCKED");
    const known = model.secrets.get(at);
    if (known === undefined) return mustRefuse(answer, 404, "NOT_FOUND");
    const { value, ...metadata } = known;
    expect(mustSucceed(answer)).to.deep.include({ path: at, value, metadata });
  }
}

async function checkAll(server: TestServer, model: Model): Promise<void> {
  for (const at of model.secrets.keys()) await checkGet(server, model, at);
}

async function checkTrash(server: TestServer, model: Model, next: Step & { do: "trash" | "untrash" }): Promise<void> {
  const answer = await send(server, { method: "POST", path: `/v1/${next.do}/${encodeURIComponent(next.path)}` });
  const [from, to] = next.do === "trash" ? [model.secrets, model.trash] : [model.trash, model.secrets];
  if (model.locked) return mustRefuse(answer, 403, "VAULT_LOCKED");
  const known = from.get(next.path);
  if (known === undefined) return mustRefuse(answer, 404, "NOT_FOUND");
  if (next.do === "untrash" && to.has(next.path)) return mustRefuse(answer, 409, "ALREADY_EXISTS");
  mustSucceed(answer);
  from.delete(next.path);
  to.set(next.path, known);
}

/** To a path that has none; others are in the model of the history. */
async function checkCopy(server: TestServer, model: Model, next: Step & { do: "move" | "copy" }): Promise<void> {
  if (model.secrets.has(next.to) || next.to === next.path) return;
  const operation = next.do === "move" ? { move: next.path, to: next.to } : { copy: next.path, to: next.to };
  const answer = await send(server, { method: "POST", path: "/v1/batch", body: { operations: [operation] } });
  if (model.locked) return mustRefuse(answer, 403, "VAULT_LOCKED");
  const known = model.secrets.get(next.path);
  if (known === undefined) return mustRefuse(answer, 404, "NOT_FOUND");
  mustSucceed(answer);
  if (next.do === "move") model.secrets.delete(next.path);
  model.secrets.set(next.to, known);
  await checkGet(server, model, next.to);
}

/** Swaps two secrets whose paths have one length: both are refused until they are back in their places. */
async function checkSwapped(server: TestServer, model: Model, swap: NonNullable<Place["swap"]>): Promise<void> {
  if (model.locked) return;
  const stored = [...model.secrets.keys()];
  const twin = (at: string) => stored.find((other) => other !== at && other.length === at.length);
  const one = stored.find((at) => twin(at) !== undefined);
  const other = twin(one ?? "");
  if (one === undefined || other === undefined) return;
  for (const at of [one, other]) await checkGet(server, model, at);
  await swap(one, other);
  for (const at of [one, other]) mustRefuse(await send(server, { path: secretTarget(at) }), 500, "INTEGRITY");
  await swap(one, other);
  for (const at of [one, other]) await checkGet(server, model, at);
}

/** Another server stores a secret, whatever has locked it. */
async function checkElsewhere(other: TestServer, model: Model, at: string, put: Secret): Promise<void> {
  await mustUnlock(other, model.passphrase);
  await untilRotated(other);
  await checkGet(other, { ...model, locked: false }, at);
  mustSucceed(await send(other, { method: "PUT", path: secretTarget(at), body: put }));
  model.secrets.set(at, put);
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

async function agree(first: TestServer, steps: readonly Step[], place: Place): Promise<void> {
  const model = new Model();
  let server = first;
  await mustInit(server, { passphrase: model.passphrase });
  for (const next of steps) server = await take(server, model, next, place);
  if (model.locked) await mustUnlock(server, model.passphrase);
  for (const [at, { value }] of model.secrets) expect((await mustGet(server, at))["value"]).to.equal(value);
  await mustPut(server, "last", "works");
}

const runs = process.env["STRONGROOM_MODEL_RUNS"];
const lengths = { minLength: 30, maxLength: 60 };

describe("the vault against a plain Map", function () {
  this.timeout(0);

  it("agrees over random sequences of operations, restarts and locks included", async () => {
    const place: Place = { restart: (home) => startTestServer({ home }), swap: null, other: null };
    const numRuns = Number(runs ?? 4);
    await overRandomSteps(step, { ...lengths, numRuns }, (first, steps) => agree(first, steps, place));
  });
});

describe("the vault in PostgreSQL against a plain Map", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);

  it("agrees over random sequences of operations, restarts and locks included", async () => {
    let other: TestServer | undefined;
    const place: Place = {
      restart: (home) => startTestServer({ home, store: storeOf(database()) }),
      swap: (path, to) => database().cluster.sql(database().name, swapping(path, to)),
      other: () => other ?? expect.fail("there is one server"),
    };
    const start = async () => {
      const [first, second] = await startSharedServers(database(), 2);
      other = second;
      return first;
    };
    const agreeing = (first: TestServer, steps: readonly Step[]) => agree(first, steps, place);
    await overRandomSteps(step, { ...lengths, numRuns: Number(runs ?? 2) }, agreeing, start);
  });
});

function swapping(path: string, other: string): string {
  const of = "SELECT blob FROM strongroom.secret o WHERE o.vault = s.vault AND o.path =";
  return `UPDATE strongroom.secret s SET blob = CASE path WHEN '${path}' THEN (${of} '${other}') ELSE (${of} '${path}') END
    WHERE vault = (SELECT vault FROM strongroom.current) AND path IN ('${path}', '${other}')`;
}
