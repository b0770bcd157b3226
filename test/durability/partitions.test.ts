/**
 * Three servers on one database, each cut off from it at random moments: one order of operations explains what their clients
 * saw. A change without a result has happened once, at any time after its call, or never.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { databaseUrl, needsPostgres, startPostgres } from "../../tools/rig/postgres.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustInit, mustRefuse, mustUnlock, secretTarget, send } from "../../tools/rig/test-client.js";
import { type FragileProxy, startFragileProxy } from "../support/fragile-proxy.js";
import { Random, runSeed } from "../support/random.js";
import { type Act, type Event, isLinearizable } from "./register.js";

/** Short in the normal suite; 500 in the long form. */
const histories = Number(process.env["STRONGROOM_PARTITIONS"] ?? 2);
const clients = 6;
const operationsOfClient = 4;

/** Longest time, in milliseconds, for which a server is cut off. */
const longestPartition = 300;

/** More would be too many sets of changes that may have happened. */
const mostUncertain = 8;

type Node = { readonly server: TestServer; readonly proxy: FragileProxy };

/** Outcome of one operation of a client; `maybe`: a change that may have happened. Null: a read without a result. */
type Seen = { readonly event: Event; readonly maybe: boolean } | null;
type Operation = (server: TestServer, path: string, value: string) => Promise<{ act: Act; maybe: boolean } | null>;

const put: Operation = async (server, path, value) => {
  const answer = await send(server, { method: "PUT", path: secretTarget(path), body: { value } });
  return { act: { do: "put", value }, maybe: answer.status !== 200 };
};

const create: Operation = async (server, path, value) => {
  const headers = { "if-none-match": "*" };
  const answer = await send(server, { method: "PUT", path: secretTarget(path), headers, body: { value } });
  const isKnown = answer.status === 200 || answer.status === 412;
  const act = { do: "swap", from: null, value, done: answer.status !== 412 } as const;
  return { act, maybe: !isKnown };
};

const get: Operation = async (server, path) => {
  const answer = await send(server, { path: secretTarget(path) });
  if (answer.status === 200) return { act: { do: "get", value: String(answer.json["value"]) }, maybe: false };
  if (answer.status === 503) return null;
  mustRefuse(answer, 404, "NOT_FOUND");
  return { act: { do: "get", value: null }, maybe: false };
};

/** Whether the events are linearizable with some of the changes that may have happened. */
function isExplained(seen: readonly Seen[]): boolean {
  const all = seen.filter((one) => one !== null);
  const certain = all.flatMap(({ event, maybe }) => (maybe ? [] : [event]));
  const uncertain = all.flatMap(({ event, maybe }) => (maybe ? [{ ...event, return: Number.POSITIVE_INFINITY }] : []));
  for (let subset = 0; subset < 2 ** uncertain.length; subset++) {
    const happened = uncertain.filter((_, i) => (subset & (1 << i)) !== 0);
    if (isLinearizable([...certain, ...happened])) return true;
  }
  return false;
}

async function play(
  server: TestServer,
  path: string,
  client: number,
  random: Random,
  read: Operation,
): Promise<Seen[]> {
  const seen: Seen[] = [];
  for (let n = 0; n < operationsOfClient; n++) {
    const call = performance.now();
    const result = await random.pick([put, create, read, read])(server, path, `client ${client}, ${n}`);
    const done = { call, return: performance.now() };
    seen.push(result && { event: { ...result.act, ...done }, maybe: result.maybe });
    await sleep(random.below(30));
  }
  return seen;
}

/** Cuts the server off, in one of three ways, until `isOver`. */
async function partition({ proxy }: Node, random: Random, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await sleep(random.below(100));
    const fault = random.pick([
      () => proxy.silence(),
      () => proxy.cut(),
      () => proxy.breakAt(1 + random.below(6), random.pick(["before", "half", "after"])),
    ]);
    fault();
    await sleep(random.below(longestPartition));
    proxy.repair();
  }
}

/** Plays one history; returns what its clients saw. */
async function history(
  nodes: readonly [Node, ...Node[]],
  path: string,
  random: Random,
  read: Operation,
): Promise<Seen[]> {
  let isOver = false;
  const faults = Promise.all(nodes.map((node) => partition(node, new Random(random.below(2 ** 32)), () => isOver)));
  const playing = Array.from({ length: clients }, (_, n) => {
    const { server } = nodes[n % nodes.length] ?? nodes[0];
    return play(server, path, n, new Random(random.below(2 ** 32)), read);
  });
  const seen = (await Promise.all(playing)).flat();
  isOver = true;
  await faults;
  for (const { server } of nodes) {
    const call = performance.now();
    let last = await get(server, path, "");
    while (last === null) last = await get(server, path, "");
    seen.push({ event: { ...last.act, call, return: performance.now() }, maybe: false });
  }
  return seen;
}

async function startNodes(): Promise<[Node, ...Node[]]> {
  const cluster = await startPostgres();
  const database = await cluster.database();
  const start = async (token?: string): Promise<Node> => {
    const proxy = await startFragileProxy(cluster.port);
    const server = await startTestServer({ store: databaseUrl(proxy.port, database), ...(token && { token }) });
    return { server, proxy };
  };
  const first = await start();
  await mustInit(first.server);
  const others = [await start(first.server.token), await start(first.server.token)];
  for (const { server } of others) await mustUnlock(server);
  return [first, ...others];
}

/** Plays until `enough` histories are unexplained; returns them, and how many changes had no result. */
async function playMany(
  count: number,
  read: Operation,
  enough = Number.POSITIVE_INFINITY,
): Promise<{ unexplained: string[]; uncertain: number }> {
  const nodes = await startNodes();
  const random = new Random(runSeed);
  const unexplained: string[] = [];
  let uncertain = 0;
  for (let n = 0; n < count && unexplained.length < enough; n++) {
    const seen = await history(nodes, `register/${n}`, random, read);
    const open = seen.filter((one) => one?.maybe).length;
    uncertain += open;
    if (open <= mostUncertain && !isExplained(seen)) unexplained.push(JSON.stringify(seen));
  }
  return { unexplained, uncertain };
}

describe("servers that are now and then cut off from their database", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });

  it(`servers cut off now and then show one order (${histories} histories of ${clients} clients, seed ${runSeed})`, async () => {
    const { unexplained, uncertain } = await playMany(histories, get);
    expect(unexplained).to.deep.equal([]);
    if (histories >= 100) expect(uncertain, "changes without a result").to.be.above(histories / 10);
  });

  it("the check detects a server that returns earlier reads while it is cut off", async () => {
    const known = new Map<string, Awaited<ReturnType<Operation>>>();
    const stale: Operation = async (server, path, value) => {
      const place = `${server.url} ${path}`;
      const before = known.get(place);
      if (before !== undefined) return before;
      const found = await get(server, path, value);
      if (found !== null) known.set(place, found);
      return found;
    };
    expect((await playMany(50, stale, 1)).unexplained).to.not.deep.equal([]); // nearly always the first; on a busy machine later
  });
});
