/** An audit log never looks changed because its server was killed, and keeps what was read from it. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { Checkpoint, LogHead } from "../../src/audit/format.js";
import { judgeCheckpoints, verifyLog } from "../../src/audit/verify.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import {
  closeConnections,
  mustInit,
  mustLock,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { Random, runSeed } from "../support/random.js";

const kills = Number(process.env["STRONGROOM_AUDIT_KILLS"] ?? 1);
const clients = 8;

/** Sends requests until the server is gone. */
async function load(server: ServerProcess, random: Random): Promise<void> {
  const client = async (name: number) => {
    for (let n = 0; ; n++) {
      const path = secretTarget(`${name}/${n % 20}`);
      const isPut = n % 10 === 0;
      await send(server, {
        method: isPut ? "PUT" : "GET",
        path,
        ...(isPut && { body: { value: "v".repeat(n % 99) } }),
      });
    }
  };
  const locker = async () => {
    for (;;) {
      await sleep(20 + random.below(200));
      await mustLock(server);
      await mustUnlock(server);
    }
  };
  await Promise.allSettled([locker(), ...Array.from({ length: clients }, (_, name) => client(name))]);
}

async function readHead(server: ServerProcess): Promise<LogHead> {
  return mustSucceed(await send(server, { path: "/v1/audit?limit=1" }))["head"] as LogHead;
}

/** The log has no problem, and what it had when the head was read. */
async function mustBeWhole(home: string, head: LogHead | null): Promise<void> {
  const { problems } = await verifyLog(join(home, "audit"), head);
  expect(problems).to.deep.equal([]);
}

async function mustBeJudgedValid(server: ServerProcess): Promise<void> {
  await readHead(server);
  const log = await verifyLog(join(server.home, "audit"));
  const judge = async (checkpoints: readonly Checkpoint[]) => {
    const answer = await send(server, { method: "POST", path: "/v1/audit/verify", body: { checkpoints } });
    return mustSucceed(answer)["verdicts"] as "valid"[];
  };
  expect([...log.problems, ...(await judgeCheckpoints(log, judge)).problems]).to.deep.equal([]);
}

describe("an audit log and kill -9", () => {
  it(`under load, ${kills} times: verify finds nothing, and all that was read is there (seed ${runSeed})`, async function () {
    this.timeout(0);
    const random = new Random(runSeed);
    let server = await startProcess();
    await mustInit(server);
    for (let round = 0; round < kills; round++) {
      const loading = load(server, random);
      await sleep(random.below(400));
      const head = random.chance(0.5) ? await readHead(server) : null;
      await sleep(random.below(80));
      server.child.kill("SIGKILL");
      await Promise.all([server.ended, loading]);
      closeConnections(server);
      await mustBeWhole(server.home, head);
      server = await startProcess([], { STRONGROOM_HOME: server.home });
      await mustUnlock(server);
      await mustBeJudgedValid(server);
    }
  });
});
