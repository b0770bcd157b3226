/** Linearizability of a pair of secrets: one order of operations explains what eight concurrent clients saw. */
import { expect } from "chai";
import { needsPostgres } from "../../tools/rig/postgres.js";
import { startProcess } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  type Json,
  mustInit,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { Random, runSeed } from "../support/random.js";
import { startSharedDatabase, startSharedServers } from "../support/shared-servers.js";
import { type Act, type Cells, type Event, isLinearizable } from "./register.js";

const clients = 8;
const pathsAtOnce = 3;

/** Short in the normal suite; 10,000 in the long form. */
const histories = Number(process.env["STRONGROOM_HISTORIES"] ?? 6);
/** On three servers; they wait for the database's disk. */
const sharedHistories = Number(process.env["STRONGROOM_SHARED_HISTORIES"] ?? 2);
const tellEvery = 1_000;

describe("concurrent clients", function () {
  this.timeout(0);

  it(`clients see one order of all operations on each pair of paths (${histories} histories of ${clients} clients)`, async () => {
    const server = await startProcess();
    await mustInit(server);
    await checkPaths([server], histories);
  });
});

describe("concurrent clients of three servers on one database", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });

  it(`clients of three servers on one database see one order of all operations (${sharedHistories} histories)`, async () => {
    const [first, ...others] = await startSharedServers(await startSharedDatabase(), 3);
    await mustInit(first);
    for (const other of others) await mustUnlock(other);
    await checkPaths([first, ...others], sharedHistories);
  });
});

/** Clients take the servers in turn. */
type Servers = readonly [TestServer, ...TestServer[]];

async function checkPaths(servers: Servers, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, n) => n).values();
  const lane = async () => {
    for (const n of numbers) {
      await checkPath(servers, n);
      if ((n + 1) % tellEvery === 0) process.stdout.write(`      ${n + 1} histories, 0 violations\n`);
    }
  };
  await Promise.all(Array.from({ length: pathsAtOnce }, lane));
}

async function checkPath(servers: Servers, n: number): Promise<void> {
  const path = `register/${n % 100}/${n}`;
  const random = new Random(runSeed + n);
  const scripts = Array.from({ length: clients }, () => new Random(random.below(2 ** 32)));
  const makeClient = (number: number): Client => {
    return { server: servers[number % servers.length] ?? servers[0], path, known: null };
  };
  const seen = await Promise.all(scripts.map((script, number) => play(makeClient(number), number, script)));
  const last = makeClient(n);
  const events = [
    ...seen.flat(),
    await timed(() => get(last)),
    await timed(() => getOther(last)),
    await timed(() => look(last)),
  ];
  const told = `STRONGROOM_SEED=${runSeed}, ${path}: ${JSON.stringify(events)}`;
  expect(isLinearizable(events), told).to.equal(true);
}

/** `known`: the last state of the first cell that this client has seen; null before, and for an empty cell. */
type Client = { readonly server: TestServer; readonly path: string; known: { value: string; etag: string } | null };
type Play = (client: Client, value: string) => Promise<Act>;

const plays: readonly [Play, ...Play[]] = [
  ...([get, get, remove, put, put, swap, swap, putBoth, putBothIf, getBoth, move] as const),
  ...([trash, trash, untrash, untrash, destroy, look] as const),
];

/** Two or three operations in sequence. */
async function play(client: Client, number: number, random: Random): Promise<Event[]> {
  const events: Event[] = [];
  for (let n = 2 + random.below(2); n > 0; n--) {
    const act = random.pick(plays);
    events.push(await timed(() => act(client, `client ${number}, ${n} to go`)));
  }
  return events;
}

async function timed(act: () => Promise<Act>): Promise<Event> {
  const call = performance.now();
  const event = await act();
  return { ...event, call, return: performance.now() };
}

async function put(client: Client, value: string): Promise<Act> {
  const { etag } = mustSucceed(await putIf(client, value, {}));
  client.known = { value, etag: String(etag) };
  return { do: "put", value };
}

/** From what the client has seen last, or as a creation. */
async function swap(client: Client, value: string): Promise<Act> {
  const { known } = client;
  const condition = known === null ? { "if-none-match": "*" } : { "if-match": `"${known.etag}"` };
  const answer = await putIf(client, value, condition);
  const done = answer.status === 200;
  if (done) client.known = { value, etag: String(answer.json["etag"]) };
  else mustRefuse(answer, 412, "PRECONDITION_FAILED");
  return { do: "swap", from: known?.value ?? null, value, done };
}

function putIf(
  { server, path }: Client,
  value: string,
  headers: Readonly<Record<string, string>>,
): Promise<ApiResponse> {
  return send(server, { method: "PUT", path: secretTarget(path), headers, body: { value } });
}

async function get(client: Client): Promise<Act> {
  const answer = await send(client.server, { path: secretTarget(client.path) });
  client.known = null;
  if (answer.status !== 200) {
    mustRefuse(answer, 404, "NOT_FOUND");
    return { do: "get", value: null };
  }
  const value = String(answer.json["value"]);
  client.known = { value, etag: String(answer.json["etag"]) };
  return { do: "get", value };
}

async function getOther({ server, path }: Client): Promise<Act> {
  const answer = await send(server, { path: secretTarget(`${path}/other`) });
  if (answer.status === 200) return { do: "get", cell: 1, value: String(answer.json["value"]) };
  mustRefuse(answer, 404, "NOT_FOUND");
  return { do: "get", cell: 1, value: null };
}

async function remove({ server, path }: Client): Promise<Act> {
  const answer = await send(server, { method: "DELETE", path: secretTarget(path) });
  if (answer.status === 200) return { do: "delete", found: true };
  mustRefuse(answer, 404, "NOT_FOUND");
  return { do: "delete", found: false };
}

async function putBoth(client: Client, value: string): Promise<Act> {
  const { path } = client;
  const values: Cells = [value, `other of ${value}`];
  const [first, other] = values;
  mustSucceed(
    await batch(client, [
      { put: path, value: first },
      { put: `${path}/other`, value: other },
    ]),
  );
  return { do: "put both", values, done: true };
}

async function putBothIf(client: Client, value: string): Promise<Act> {
  const { path, known } = client;
  const values: Cells = [value, `other of ${value}`];
  const condition = known === null ? { ifNoneMatch: "*" } : { ifMatch: known.etag };
  const [first, other] = values;
  const answer = await batch(client, [
    { put: `${path}/other`, value: other },
    { put: path, value: first, ...condition },
  ]);
  const done = answer.status === 200;
  if (!done) mustRefuse(answer, 412, "PRECONDITION_FAILED");
  return { do: "put both", from: known?.value ?? null, values, done };
}

/** With a change, so that both are of one moment. */
async function getBoth(client: Client): Promise<Act> {
  const { path } = client;
  const answer = await batch(client, [{ get: path }, { get: `${path}/other` }, { put: "register/reader", value: "" }]);
  if (answer.status !== 200) {
    mustRefuse(answer, 404, "NOT_FOUND");
    return { do: "get both", values: null };
  }
  const [first, second] = answer.json["results"] as Json[];
  return { do: "get both", values: [String(first?.["value"]), String(second?.["value"])] };
}

async function move(client: Client): Promise<Act> {
  const answer = await batch(client, [{ move: client.path, to: `${client.path}/other` }]);
  if (answer.status === 200) return { do: "move", found: true };
  mustRefuse(answer, 404, "NOT_FOUND");
  return { do: "move", found: false };
}

async function trash(client: Client): Promise<Act> {
  const answer = await send(client.server, { method: "POST", path: `/v1/trash/${client.path}` });
  if (answer.status !== 200) mustRefuse(answer, 404, "NOT_FOUND");
  return { do: "trash", found: answer.status === 200 };
}

async function untrash({ server, path }: Client): Promise<Act> {
  const answer = await send(server, { method: "POST", path: `/v1/untrash/${path}` });
  if (answer.status === 200) return { do: "untrash", result: "done" };
  if (answer.status === 409) return { do: "untrash", result: "taken" };
  mustRefuse(answer, 404, "NOT_FOUND");
  return { do: "untrash", result: "missing" };
}

async function destroy({ server, path }: Client): Promise<Act> {
  const answer = await send(server, { method: "DELETE", path: `/v1/trash/${path}` });
  if (answer.status !== 200) mustRefuse(answer, 404, "NOT_FOUND");
  return { do: "destroy", found: answer.status === 200 };
}

async function look({ server, path }: Client): Promise<Act> {
  const listed = mustSucceed(await send(server, { path: `/v1/trash?prefix=${path}&limit=1000` }));
  return { do: "look in the trash", found: (listed["entries"] as Json[]).some((entry) => entry["path"] === path) };
}

function batch({ server }: Client, operations: readonly object[]): Promise<ApiResponse> {
  return send(server, { method: "POST", path: "/v1/batch", body: { operations } });
}
