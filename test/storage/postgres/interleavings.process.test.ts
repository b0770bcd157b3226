/** Changes by several servers that meet in an unlucky order: nothing is lost, and nothing that was deleted comes back. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { shared } from "../../../tools/rig/clean-up.js";
import { needsPostgres } from "../../../tools/rig/postgres.js";
import { passphrase, type TestServer } from "../../../tools/rig/server.js";
import {
  mustCount,
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
  secretTarget,
  send,
} from "../../../tools/rig/test-client.js";
import { keyWorkerAsked } from "../../support/asked-worker.js";
import type { Held } from "../../support/fragile-proxy.js";
import {
  changing,
  creating,
  formatOutcome,
  mustCreateKey,
  mustListKeys,
  mustRotate,
  unlockWith,
  untilRotated,
} from "../../support/key-requests.js";
import { goBackToCopy, keepCopy, startSharedDatabase, startSharedServers } from "../../support/shared-servers.js";

/** In the first statement of a sweep, and in the one that finishes a rotation. */
const sweeping = "pg_try_advisory_lock";
const finishing = "replace-header";

/** A statement as it is bound: other statements have these words in their text, which is sent when they are prepared. */
const bound = (statement: string) => `\0${statement}\0`;

/** Refusals of a change that was proposed from an earlier header. */
const refusals = ["503 UNAVAILABLE", "403 VAULT_LOCKED"];

const put = (server: TestServer, path: string, value: string, headers = {}) =>
  send(server, { method: "PUT", path: secretTarget(path), body: { value }, headers });
const prune = (server: TestServer, path: string) => send(server, { method: "DELETE", path: `/v1/versions/${path}` });
const version = (server: TestServer, path: string, number: number) =>
  send(server, { path: `/v1/versions/${path}?version=${number}` });
const moving = (path: string, to: string) => ({
  method: "POST" as const,
  path: "/v1/batch",
  body: { operations: [{ move: path, to }] },
});

describe("unlucky orders of several servers", () => {
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);

  /** Two unlocked servers, and a secret of two versions. */
  async function startWithHistory(): Promise<[TestServer, TestServer]> {
    const [first, second = first] = await startSharedServers(database(), 2);
    await mustInit(first);
    await mustUnlock(second);
    for (const value of ["one", "two"]) await mustPut(first, "app/key", value);
    return [first, second];
  }

  /** The second server's change has read the secret before the first one seals it again, and is committed afterwards. */
  async function besideSweep(first: TestServer, second: TestServer, change: () => ReturnType<typeof put>) {
    const { proxy } = database();
    const [sweep, otherSweep] = [proxy.hold(sweeping), proxy.hold(sweeping)];
    await mustRotate(first);
    await mustUnlock(second);
    await Promise.all([sweep.reached, otherSweep.reached]);
    const commit = proxy.hold("commit-one");
    const changed = change();
    await commit.reached;
    const finish = proxy.hold(finishing);
    sweep.release();
    await finish.reached;
    commit.release();
    mustSucceed(await changed);
    for (const { release } of [finish, otherSweep]) release();
    await untilRotated(first);
    await mustUnlock(first);
  }

  it("a put on one server keeps the secret's history while another one seals it again", async () => {
    const [first, second] = await startWithHistory();
    const { etag } = await mustGet(first, "app/key");
    await besideSweep(first, second, () => put(second, "app/key", "three", { "if-match": `"${etag}"` }));
    for (const [i, value] of ["one", "two", "three"].entries())
      expect(mustSucceed(await version(first, "app/key", i + 1))["value"]).to.equal(value);
  });

  it("a prune on one server keeps the current version while another one seals it again", async () => {
    const [first, second] = await startWithHistory();
    await besideSweep(first, second, () => prune(second, "app/key"));
    expect((await mustGet(first, "app/key"))["value"]).to.equal("two");
    mustRefuse(await version(first, "app/key", 1), 404, "NOT_FOUND");
  });

  it("a version pruned on one server stays gone while another one puts or moves the secret", async () => {
    const changes = [
      ["commit-one", "app/key", (server: TestServer) => put(server, "app/key", "three")],
      ["commit-spaces", "app/moved", (server: TestServer) => send(server, moving("app/key", "app/moved"))],
    ] as const;
    for (const [statement, path, change] of changes) {
      const [first, second] = await startWithHistory();
      const commit = database().proxy.hold(statement);
      const changed = change(first);
      await commit.reached;
      mustSucceed(await prune(second, "app/key"));
      commit.release();
      mustSucceed(await changed);
      mustRefuse(await version(first, path, 1), 404, "NOT_FOUND");
      expect((await mustCount(second))["secretCount"]).to.equal(1);
    }
  });

  /** A server with five secrets that begins a rotation; the copy of its database is from before the sweep. */
  async function startRotating(beforeSweep: () => unknown = () => {}): Promise<TestServer> {
    const [server] = await startSharedServers(database(), 1);
    await mustInit(server);
    for (let n = 0; n < 5; n++) await mustPut(server, `app/${n}`, `value ${n}`);
    const sweep = database().proxy.hold(sweeping);
    await mustRotate(server);
    await sweep.reached;
    await keepCopy(database());
    beforeSweep();
    sweep.release();
    return server;
  }

  async function mustHaveAll(server: TestServer): Promise<void> {
    await untilRotated(server);
    for (let n = 0; n < 5; n++) expect((await mustGet(server, `app/${n}`))["value"]).to.equal(`value ${n}`);
  }

  it("a database set back in the middle of a sweep loses no secret", async () => {
    const steps: Held[] = [];
    const server = await startRotating(() => steps.push(database().proxy.hold("app/3")));
    await steps[0]?.reached;
    await goBackToCopy(database());
    steps[0]?.release();
    await mustHaveAll(server);
  });

  it("a database set back from the end of a rotation to its start loses no secret", async () => {
    const server = await startRotating();
    await untilRotated(server);
    await goBackToCopy(database());
    mustRefuse(await send(server, { path: secretTarget("app/0") }), 403, "VAULT_LOCKED");
    await mustUnlock(server);
    await mustHaveAll(server);
  });

  it("a database set back to before a rotation lists all secrets", async () => {
    const [server] = await startSharedServers(database(), 1);
    await mustInit(server);
    await mustPut(server, "app/key", "value");
    await keepCopy(database());
    const sweep = database().proxy.hold(sweeping);
    await mustRotate(server);
    await sweep.reached;
    const listed = await mustList(server);
    await goBackToCopy(database());
    sweep.release();
    mustRefuse(await send(server, { path: secretTarget("app/key") }), 403, "VAULT_LOCKED");
    await mustUnlock(server);
    expect(await mustList(server)).to.deep.equal(listed);
  });

  /**
   * The second server asks whether its header is current, then the first one changes the header, then `request` on the
   * second one continues to its key worker, which is asked for `op`, and then the second one reads the header that it has to
   * load.
   */
  async function besideChange(second: TestServer, request: Send, op: string, change: () => Promise<unknown>) {
    const { proxy } = database();
    const confirmed = proxy.holdAnswerTo(bound("epoch"));
    const answer = send(second, request);
    await confirmed.reached;
    await change();
    const header = proxy.hold(bound("header"));
    await mustStatus(second);
    await header.reached;
    const asked = keyWorkerAsked(op);
    confirmed.release();
    await Promise.race([asked, answer]);
    await sleep(200); // for the key worker's reply, which no one else sees: later, it is refused as locked
    header.release();
    return answer;
  }

  it("a changed passphrase stays when another server, unlocked with a key, makes a key at the same time", async () => {
    const [first, second] = await startWithHistory();
    const { key } = await mustCreateKey(second);
    await mustUnlock(first);
    await mustLock(second);
    const change = async () => mustSucceed(await send(first, changing(passphrase, "changed")));
    expect(refusals).to.include(formatOutcome(await besideChange(second, creating("late", key), "createKey", change)));
    mustRefuse(await send(second, unlockWith(passphrase)), 401, "UNAUTHORIZED");
    mustSucceed(await send(second, unlockWith("changed")));
    expect(await mustListKeys(first)).to.have.length(2);
  });

  it("one of two simultaneous inits on two servers stays, and the other is refused", async () => {
    const [first, second = first] = await startSharedServers(database(), 2);
    const init = { method: "POST", path: "/v1/init", body: { passphrase: "another passphrase" } } as const;
    expect(refusals).to.include(formatOutcome(await besideChange(second, init, "init", () => mustInit(first))));
    mustRefuse(await send(second, init), 409, "ALREADY_EXISTS");
    await mustPut(first, "app/key", "value");
  });
});
