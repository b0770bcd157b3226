/**
 * A database that is killed, and connections that are cut, under load from three servers: every acknowledged write is there,
 * what was refused is settled, status always responds, and the servers recover by themselves.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { systemCode } from "../../../src/errors.js";
import { shared } from "../../../tools/rig/clean-up.js";
import { needsPostgres } from "../../../tools/rig/postgres.js";
import type { TestServer } from "../../../tools/rig/server.js";
import {
  type ApiResponse,
  mustGet,
  mustInit,
  mustPut,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  type Send,
  secretTarget,
  send,
} from "../../../tools/rig/test-client.js";
import { Lane } from "../../durability/lane.js";
import { type Found, nothingFound, type Secret, type Secrets, secretsPart } from "../../durability/vault-parts.js";
import { Random, runSeed } from "../../support/random.js";
import { startSharedDatabase, startSharedServers } from "../../support/shared-servers.js";

/** Short in the normal suite; 50 in the long form. */
const faults = Number(process.env["STRONGROOM_DATABASE_FAULTS"] ?? 2);
const writers = 8;
const pathsOfWriter = 4;

type SecretsLane = Lane<Secrets, Found>;

/** `going`: false once the writers may end. */
type Load = { going: boolean; acknowledged: number; refused: number };

describe("servers on a database that fails", function () {
  this.timeout(0);
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);

  const kill = async () => {
    await database().cluster.kill();
    await database().cluster.start();
  };
  const cut = async () => database().proxy.cut();
  const faultNames: readonly (readonly [string, () => Promise<void>])[] = [
    ["is killed (kill -9)", kill],
    ["loses its connections", cut],
  ];
  for (const [name, fail] of faultNames) {
    it(`servers lose no acknowledged write when the database ${name}, ${faults} times, and then recover`, async () => {
      const servers = await startSharedServers(database(), 3);
      await mustInit(servers[0]);
      for (const server of servers.slice(1)) await mustUnlock(server);
      const load: Load = { going: true, acknowledged: 0, refused: 0 };
      const options = { paths: pathsOfWriter, longest: 1_000, kinds: ["put", "put", "put", "put", "delete"] } as const;
      const lanes = Array.from({ length: writers }, (_, n): SecretsLane => new Lane(secretsPart(n, options)));
      const work = lanes.map((lane, n) => write(servers, lane, n, load));
      const polls = servers.map((server) => poll(server, load));
      const slowest = await failRepeatedly(servers, fail);
      load.going = false;
      await Promise.all([...work, ...polls]);
      for (const lane of lanes) await settle(servers[0], lane);
      const { acknowledged, refused } = load;
      const figures = `${acknowledged} acknowledged, ${refused} refused, back after at most ${Math.round(slowest)} ms`;
      process.stdout.write(`      ${faults} times: ${figures}\n`);
      expect(acknowledged).to.be.above(0);
    });
  }

  it("a write gets 503 when the silent database keeps its session, and the server recovers afterwards", async () => {
    const { proxy } = database();
    const [server] = await startSharedServers(database(), 1);
    await mustInit(server);
    await mustPut(server, "app/key", "before");
    const writing = put(server, "app/key", "silenced");
    proxy.silence();
    expect((await writing)?.status).to.equal(503);
    proxy.repair();
    expect((await mustGet(server, "app/key"))["value"]).to.equal("before");
  });

  it("a write refused for its broken connection never takes effect later", async () => {
    const { proxy } = database();
    const [first, second = first] = await startSharedServers(database(), 2);
    await mustInit(first);
    await mustUnlock(second);
    for (let k = 1; k <= 6; k++) {
      proxy.breakAt(k, "after");
      const answer = await put(first, "app/key", `broken ${k}`);
      proxy.repair();
      const before = await read(second, "app/key");
      if (answer?.status === 200) expect(before).to.equal(`broken ${k}`);
      else if (answer !== null) mustRefuse(answer, 503, "UNAVAILABLE");
      await sleep(20);
      expect(await read(second, "app/key")).to.equal(before);
    }
  });
});

/** Returns the longest time until a server could write again, in milliseconds. */
async function failRepeatedly(servers: readonly TestServer[], fail: () => Promise<void>): Promise<number> {
  const random = new Random(runSeed);
  let slowest = 0;
  for (let n = 0; n < faults; n++) {
    await sleep(100 + random.below(300));
    await fail();
    for (const server of servers) slowest = Math.max(slowest, await timeToWrite(server));
  }
  return slowest;
}

/** Puts and deletes at paths of its own, on one server after the other. */
async function write(servers: readonly TestServer[], lane: SecretsLane, writer: number, load: Load): Promise<void> {
  const random = new Random(runSeed + writer);
  while (load.going) {
    const server = random.pick(servers as readonly [TestServer, ...TestServer[]]);
    const isAnswered = await lane.step(random, async (request) => {
      const answer = await ask(server, request);
      if (answer?.status === 200 || answer?.status === 404) return answer;
      if (answer !== null) mustRefuse(answer, 503, "UNAVAILABLE");
      return null;
    });
    if (isAnswered) {
      load.acknowledged++;
      continue;
    }
    load.refused++;
    lane.leaveOpen();
    await settle(server, lane);
  }
}

/** Reads the lane's secrets until the database responds: the state that they show is then the only one. */
async function settle(server: TestServer, lane: SecretsLane): Promise<void> {
  const paths = new Set(lane.states.flatMap(({ secrets }) => Object.keys(secrets)));
  const secrets: Record<string, Secret> = {};
  for (const path of paths) {
    let answer = await ask(server, { path: secretTarget(path) });
    for (; answer === null || answer.status === 503; answer = await ask(server, { path: secretTarget(path) }))
      await sleep(50);
    if (answer.status === 404) continue;
    const { value, metadata } = mustSucceed(answer) as { value: string; metadata: { description: string } };
    secrets[path] = { text: value, description: metadata.description, hosts: [] };
  }
  lane.settle({ ...nothingFound, secrets });
}

async function poll(server: TestServer, load: Load): Promise<void> {
  while (load.going) {
    const answer = await ask(server, { path: "/v1/status", token: null });
    if (answer !== null) expect(mustSucceed(answer)["initialized"]).to.equal(true);
    await sleep(100);
  }
}

async function timeToWrite(server: TestServer): Promise<number> {
  const begun = performance.now();
  while ((await put(server, "probe", "1"))?.status !== 200) await sleep(20);
  return performance.now() - begun;
}

/** Null: the server closed a connection that was idle in the moment in which it was used again. */
async function ask(server: TestServer, request: Send): Promise<ApiResponse | null> {
  try {
    return await send(server, request);
  } catch (error) {
    if (systemCode(error) !== "ECONNRESET") throw error;
    return null;
  }
}

function put(server: TestServer, path: string, value: string) {
  return ask(server, { method: "PUT", path: secretTarget(path), body: { value } });
}

/** Null: there is no secret; undefined: storage does not answer. */
async function read(server: TestServer, path: string): Promise<string | null | undefined> {
  const answer = await ask(server, { path: secretTarget(path) });
  if (answer === null || answer.status === 503) return undefined;
  return answer.status === 404 ? null : String(mustSucceed(answer)["value"]);
}
