/** Races of requests with a lock, a forced init, a crash and one another: every outcome is that of some serial order. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { ReadWriteLock } from "../../src/locks.js";
import { passphrase, startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  connectRaw,
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  parseRaw,
  type Send,
  send,
  sendRaw,
} from "../../tools/rig/test-client.js";
import { keyWorkerAsked } from "../support/asked-worker.js";
import { crashKeyWorkers, lastThread, threadsAlive } from "../support/crash-key-worker.js";
import { heldFiles } from "../support/held-files.js";
import { turns } from "../support/latch.js";
import { FakeClock } from "../support/manual-clock.js";

const lock = { method: "POST", path: "/v1/lock" };
const second = "the second vault's passphrase";
const forced = { method: "POST", path: "/v1/init", body: { passphrase: second, force: true } };
const unlockWith = (text: string): Send => ({ method: "POST", path: "/v1/unlock", body: { passphrase: text } });

/** Enough that a derivation still runs when a lock comes after its beginning. */
const slow = { scryptLogN: 17 };

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await sleep(10);
}

const isLocked = async (server: TestServer) => (await mustStatus(server))["locked"] === true;

describe("races of a forced init", () => {
  it("a key worker crash while a forced init is written leaves the new vault under its passphrase alone", async () => {
    const { files, hold } = heldFiles();
    const server = await startTestServer({ files });
    await mustInit(server);
    await mustPut(server, "a", "of the old vault");
    const { reached, release } = hold("/gen-2/");
    const init = send(server, forced);
    await reached;
    await crashKeyWorkers();
    await until(() => server.logged().includes("key-worker-ended"));
    release();
    mustRefuse(await init, 500, "INTERNAL");
    expect(await isLocked(server)).to.equal(true);
    mustRefuse(await send(server, unlockWith(passphrase)), 401, "UNAUTHORIZED");
    await mustUnlock(server, second);
    expect(await mustList(server)).to.deep.equal([]);
  });

  it("a lock during the write of a forced init leaves the new vault locked, and the response says so", async () => {
    const { files, hold } = heldFiles();
    const server = await startTestServer({ files });
    await mustInit(server);
    const { reached, release } = hold("/gen-2/");
    const init = send(server, forced);
    await reached;
    const locking = send(server, lock);
    await until(() => isLocked(server));
    release();
    expect(mustSucceed(await init)["message"]).to.contain("locked again at once");
    mustSucceed(await locking);
    expect(await isLocked(server)).to.equal(true);
    await mustUnlock(server, second);
  });

  it("a forced init is refused, and the old vault stays, when a lock comes while its key is derived", async () => {
    const server = await startTestServer(slow);
    await mustInit(server);
    await mustPut(server, "a", "kept");
    const deriving = keyWorkerAsked("init");
    const init = send(server, forced);
    await deriving;
    await mustLock(server);
    mustRefuse(await init, 403, "VAULT_LOCKED");
    expect(await isLocked(server)).to.equal(true);
    await mustUnlock(server);
    expect((await mustGet(server, "a"))["value"]).to.equal("kept");
  });
});

describe("races of an unlock", () => {
  it("an unlock is refused, and the vault stays locked, when a lock comes while its key is derived", async () => {
    const server = await startTestServer(slow);
    await mustInit(server);
    const deriving = keyWorkerAsked("unlock");
    const unlock = send(server, unlockWith(passphrase));
    await deriving;
    await mustLock(server);
    mustRefuse(await unlock, 403, "VAULT_LOCKED");
    expect(await isLocked(server)).to.equal(true);
  });

  it("an unlock delays a lock for a limited time; it ends unused, and the next unlock waits for that", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock, scryptLogN: 17, idleTimeoutMs: 0 });
    await mustInit(server);
    const before = threadsAlive();
    const deriving = keyWorkerAsked("unlock");
    const refused = send(server, unlockWith(passphrase));
    await deriving;
    let isAnswered = false;
    const locking = mustLock(server).finally(() => {
      isAnswered = true;
    });
    await until(() => {
      clock.advance(1_000);
      return isAnswered;
    });
    await locking;
    expect(threadsAlive(), "the old thread is still deriving").to.equal(before + 1);
    mustRefuse(await refused, 403, "VAULT_LOCKED");
    expect(await isLocked(server)).to.equal(true);
    await mustUnlock(server);
    expect(threadsAlive()).to.equal(before);
  });

  it("an unlock waits for a lock right before it, and succeeds", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const head = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`;
    const body = JSON.stringify({ passphrase });
    const both = `${head("/v1/lock")}\r\n${head("/v1/unlock")}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    for (let round = 0; round < 5; round++) {
      const received = await sendRaw(server, both, 5_000);
      expect(received.match(/HTTP\/1\.1 \d+/g), received).to.deep.equal(["HTTP/1.1 200", "HTTP/1.1 200"]);
      expect(await isLocked(server)).to.equal(false);
    }
  });

  it("an unlock does not delay a get right before it", async () => {
    const server = await startTestServer({ scryptLogN: 17 });
    await mustInit(server);
    await mustPut(server, "a", "v");
    await mustGet(server, "a");
    const socket = connectRaw(server);
    let received = "";
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
    });
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    const head = `HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`;
    const body = JSON.stringify({ passphrase });
    socket.write(`GET /v1/secrets/a ${head}\r\nPOST /v1/unlock ${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    await until(() => received.includes('"value":"v"'));
    await mustStatus(server);
    expect(parseRaw(received).status).to.equal(200);
    expect(received).not.to.contain("the vault is unlocked");
    await until(() => received.includes("the vault is unlocked"));
    socket.destroy();
  });
});

describe("key derivation overload", () => {
  it("one derivation runs and 16 wait: a further one gets 429 RATE_LIMITED with Retry-After: 1", async () => {
    const server = await startTestServer({ scryptLogN: 15, clock: new FakeClock() });
    await mustInit(server);
    await Promise.all(Array.from({ length: 40 }, () => mustStatus(server))); // so that 40 connections are open
    const answers = await Promise.all(Array.from({ length: 40 }, () => send(server, unlockWith(passphrase))));
    const refusedAnswers = answers.filter(({ status }) => status !== 200);
    expect(refusedAnswers).to.have.lengthOf(40 - 17);
    for (const answer of refusedAnswers) {
      mustRefuse(answer, 429, "RATE_LIMITED");
      expect(answer.headers["retry-after"]).to.equal("1");
    }
  });
});

describe("races of a lock", () => {
  it("a lock responds when the thread that had the key is gone, with its stack and all that OpenSSL held", async () => {
    const server = await startTestServer();
    await mustInit(server);
    for (let round = 0; round < 3; round++) {
      let isGone = false;
      lastThread().once("exit", () => {
        isGone = true;
      });
      await mustLock(server);
      expect(isGone, `round ${round}`).to.equal(true);
      await mustUnlock(server);
    }
  });
});

describe("races of a delete", () => {
  it("a delete is refused when the vault was locked while it waited for a forced init", async () => {
    const { files, hold } = heldFiles();
    let derivations = 0;
    const observer = { derivationEnded: () => derivations++ };
    const server = await startTestServer({ ...uncached, files, observer });
    await mustInit(server);
    for (const path of ["a", "read"]) await mustPut(server, path, "v");
    const { reached, release } = hold("read.sealed");
    const get = send(server, { path: "/v1/secrets/read" });
    await reached;
    const before = derivations;
    const init = send(server, forced);
    await until(() => derivations > before); // it waits for the get: nothing else starts
    await turns();
    const remove = send(server, { method: "DELETE", path: "/v1/secrets/a" });
    await turns(100); // it waits for the init
    const locking = send(server, lock);
    await until(() => isLocked(server));
    release();
    for (const late of [get, remove]) mustRefuse(await late, 403, "VAULT_LOCKED");
    for (const done of [init, locking]) mustSucceed(await done);
  });
});

describe("races of puts", () => {
  it("concurrent puts of one path are independent: a refused one does not fail the next", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const put = (body: object): Promise<ApiResponse> => send(server, { method: "PUT", path: "/v1/secrets/a", body });
    const answers = await Promise.all([put({}), put({ value: "v" }), put({}), put({ value: "w" })]);
    expect(answers.map(({ status }) => status)).to.deep.equal([400, 200, 400, 200]);
  });
});

describe("restarts of the key worker", () => {
  it("a key worker that ends before its first response is restarted a second later, with 503 until then", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock });
    await mustInit(server);
    let started = 0;
    const kill = (worker: { terminate(): Promise<number> }) => {
      started++;
      void worker.terminate();
    };
    process.on("worker", kill);
    try {
      await crashKeyWorkers();
      await until(async () => (await send(server, unlockWith(passphrase))).status === 503);
      expect(started).to.equal(1);
    } finally {
      process.off("worker", kill);
    }
    mustRefuse(await send(server, unlockWith(passphrase)), 503, "UNAVAILABLE");
    clock.advance(1_000);
    await mustUnlock(server);
  });
});

describe("the read-write lock", () => {
  it("the read-write lock runs exclusive work alone, whatever waits", async () => {
    const lock = new ReadWriteLock();
    const holding: string[] = [];
    const holder = (kind: string) => async () => {
      holding.push(kind);
      for (let turn = 0; turn < 5; turn++) {
        await null;
        expect(holding.includes("alone") && holding.length > 1, holding.join()).to.equal(false);
      }
      holding.splice(holding.indexOf(kind), 1);
    };
    const [alone, shared] = [holder("alone"), holder("shared")];
    const holders = [lock.exclusive(alone), lock.exclusive(alone), lock.shared(shared), lock.exclusive(alone)];
    await Promise.all([...holders, lock.shared(shared), lock.shared(shared)]);
  });
});
