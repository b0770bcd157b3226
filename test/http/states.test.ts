/** docs/reference/http-api.md, States: a lock, a forced init, and changes of the state at the same time. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { formatOutcome } from "../support/key-requests.js";
import { contractRequests } from "../support/request-rig.js";
import { untilDerivationsWait } from "../support/scrape.js";

const requests = contractRequests();
const unlockRequest = requests["unlock"] as Send;
const shutdownRequest = requests["shutdown"] as Send;
const forced: Send = { ...(requests["init"] as Send), body: { passphrase: "another", force: true } };

async function isLocked(server: TestServer): Promise<unknown> {
  return (await mustStatus(server))["locked"];
}

describe("lock", () => {
  it("a lock keeps secretCount correct, also after a restart", async () => {
    const first = await startTestServer();
    await mustInit(first);
    for (const path of ["a", "a/b", "c/d/e"]) await mustPut(first, path, "v");
    await mustLock(first);
    expect((await mustStatus(first))["secretCount"]).to.equal(3);
    await first.stop();
    const second = await startTestServer({ home: first.home });
    expect(await mustStatus(second)).to.include({ initialized: true, locked: true, secretCount: 3 });
    await mustUnlock(second);
    expect((await mustGet(second, "a/b"))["value"]).to.equal("v");
  });

  it("a lock lets no request succeed after its 200, with 50 clients writing and reading", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "read", "v");
    const late: string[] = [];
    let locked = false;
    const client = async (n: number) => {
      const put = { method: "PUT", path: `/v1/secrets/c${n}`, body: { value: "v" } };
      const request = n % 2 ? put : { path: "/v1/secrets/read" };
      for (let i = 0; i < 20; i++) {
        const { status, text } = await send(server, request);
        if (status !== 403 && (locked || status !== 200)) late.push(`${status} ${text}`);
      }
    };
    const clients = Array.from({ length: 50 }, (_, n) => client(n));
    await mustLock(server);
    locked = true;
    await Promise.all(clients);
    expect(late).to.deep.equal([]);
  });

  it("a lock refuses queued unlocks, and none of them undoes it", async () => {
    const server = await startTestServer({ scryptLogN: 16 });
    await mustInit(server);
    const unlocks = Array.from({ length: 6 }, () => send(server, unlockRequest));
    await untilDerivationsWait(server);
    await mustLock(server);
    const statuses = (await Promise.all(unlocks)).map(formatOutcome);
    expect(statuses).to.include("403 VAULT_LOCKED");
    expect(await isLocked(server)).to.equal(true);
  });
});

describe("forced init", () => {
  let message = "";
  const initializeTwice = async (fresh: TestServer) => {
    await mustInit(fresh);
    await mustPut(fresh, "old/secret", "old value");
    message = String((await mustInit(fresh, { passphrase: "second", force: true }))["message"]);
  };
  const server = shareTestServer({}, initializeTwice);

  it("a forced init creates a new empty vault", async () => {
    expect((await mustStatus(server()))["secretCount"]).to.equal(0);
    expect(await mustList(server())).to.deep.equal([]);
    mustRefuse(await send(server(), { path: "/v1/secrets/old/secret" }), 404, "NOT_FOUND");
  });

  it("a forced init makes a new id, salt and key", () => {
    const [before, after] = ["gen-1", "gen-2"].map((name) => {
      const text = readFileSync(join(server().home, "vault", name, "header.json"), "utf8");
      const { vaultId, slots } = JSON.parse(text) as { vaultId: string; slots: [{ wrappedKey: string; kdf: object }] };
      return { vaultId, ...slots[0] };
    });
    expect(after?.vaultId).not.to.equal(before?.vaultId);
    expect(after?.wrappedKey).to.be.a("string").and.not.to.equal(before?.wrappedKey);
    expect(after?.kdf).not.to.deep.equal(before?.kdf);
  });

  it("a forced init keeps the old vault whole in a directory that its message names", () => {
    const kept = join(server().home, "vault", "gen-1");
    expect(message).to.contain(kept);
    expect(existsSync(join(kept, "secrets", "old", "secret.sealed"))).to.equal(true);
  });

  it("a vault that a forced init replaced can be restored under its old passphrase", async () => {
    const { home, ...own } = await startTestServer();
    await initializeTwice({ home, ...own });
    await own.stop();
    writeFileSync(join(home, "vault", "current"), "gen-1\n");
    const restored = await startTestServer({ home });
    mustRefuse(await send(restored, { ...unlockRequest, body: { passphrase: "second" } }), 401, "UNAUTHORIZED");
    await mustUnlock(restored);
    expect((await mustGet(restored, "old/secret"))["value"]).to.equal("old value");
  });
});

describe("concurrent lifecycle", () => {
  it("exactly one of two concurrent inits creates the vault, and its passphrase opens it", async () => {
    const server = await startTestServer();
    const bodies = ["one", "two"].map((text) => ({ passphrase: text }));
    const answers = await Promise.all(bodies.map((body) => send(server, { ...forced, body })));
    expect(answers.map(formatOutcome).sort()).to.deep.equal(["200", "409 ALREADY_EXISTS"]);
    const winner = bodies[answers.findIndex(({ status }) => status === 200)];
    await mustLock(server);
    mustSucceed(await send(server, { ...unlockRequest, ...(winner && { body: winner }) }));
  });

  it("unlocks that run during a shutdown get 503 UNAVAILABLE", async () => {
    const server = await startTestServer({ scryptLogN: 17 });
    await mustInit(server);
    const unlocks = Array.from({ length: 3 }, () => send(server, unlockRequest));
    await untilDerivationsWait(server);
    mustSucceed(await send(server, shutdownRequest));
    for (const answer of (await Promise.all(unlocks)).slice(1)) mustRefuse(answer, 503, "UNAVAILABLE");
  });

  it("a forced init among unlocks never leaves the old key in use", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const unlocks = Array.from({ length: 4 }, () => send(server, unlockRequest));
    mustSucceed(await send(server, forced));
    await Promise.all(unlocks);
    await mustPut(server, "after", "value");
    await mustLock(server);
    await mustUnlock(server, "another");
    expect((await mustGet(server, "after"))["value"]).to.equal("value");
  });
});
