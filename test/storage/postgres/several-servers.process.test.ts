/** Several servers on one database: no stale read, no lost update, and a vault that one replaces is closed on all. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/clock.js";
import { lockClass, locks } from "../../../src/storage/postgres/migrations.js";
import { shared } from "../../../tools/rig/clean-up.js";
import { needsPostgres } from "../../../tools/rig/postgres.js";
import { passphrase, startTestServer, type TestServer } from "../../../tools/rig/server.js";
import {
  mustCount,
  mustCreateToken,
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../../../tools/rig/test-client.js";
import { mustRotate, untilRotated } from "../../support/key-requests.js";
import { sharedStoreUrl, startSharedDatabase, startSharedServers } from "../../support/shared-servers.js";

/** Updates by each of the 16 writers; more in the long form. */
const updates = Number(process.env["STRONGROOM_UPDATES"] ?? 2);

const post = (server: TestServer, path: string, body: object) => send(server, { method: "POST", path, body });
const get = (server: TestServer, path: string, headers = {}) => send(server, { path: secretTarget(path), headers });

describe("servers on one database", () => {
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);

  /** Two servers, or three. */
  async function startUnlocked(count: 2 | 3): Promise<[TestServer, TestServer, ...TestServer[]]> {
    const [first, second = first, ...others] = await startSharedServers(database(), count);
    await mustInit(first);
    for (const other of [second, ...others]) await mustUnlock(other);
    return [first, second, ...others];
  }

  it("servers that start together make the schema once, and the second init is refused", async () => {
    const servers = await startSharedServers(database(), 3);
    const answers = await Promise.all(servers.map((server) => post(server, "/v1/init", { passphrase })));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).to.equal(2);
    for (const answer of refused) expect(["ALREADY_EXISTS", "VAULT_LOCKED"]).to.include(answer.json["code"]);
    for (const server of servers) {
      mustRefuse(await post(server, "/v1/init", { passphrase }), 409, "ALREADY_EXISTS");
      expect((await mustStatus(server))["initialized"]).to.equal(true);
    }
  });

  it("servers start once another one has updated the schema, however long that takes", async () => {
    const { cluster, name } = database();
    await cluster.sql(name, "DROP SCHEMA IF EXISTS strongroom CASCADE");
    const longerThanAnAnswer = 6;
    const held = `SELECT pg_advisory_lock(${lockClass}, ${locks.migrating}), pg_sleep(${longerThanAnAnswer})`;
    const updating = cluster.sql(name, held);
    while ((await cluster.sql(name, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory'")).length === 0)
      await sleep(10);
    const server = await startTestServer({ store: sharedStoreUrl(database()) });
    await updating;
    await mustInit(server);
  });

  it("a server continues to serve while one that starts updates the schema of an earlier version", async () => {
    const [first] = await startUnlocked(2);
    await mustPut(first, "app/key", "one");
    const { cluster, name } = database();
    const earlier = `DROP FUNCTION strongroom.start_vault_with, strongroom.replace_header_with, strongroom.commit_spaces, strongroom.keeps, strongroom.change_beside,
        strongroom.is_as, strongroom.change; DROP TABLE strongroom.blob;
      ALTER FUNCTION strongroom.change_by_tag RENAME TO change; UPDATE strongroom.schema_version SET version = 1`;
    await cluster.sql(name, earlier);
    const third = await startTestServer({ store: sharedStoreUrl(database()), token: first.token });
    await mustUnlock(third);
    for (const [server, value] of [
      [first, "two"],
      [third, "three"],
    ] as const)
      await mustPut(server, "app/key", value);
    expect((await mustGet(first, "app/key"))["version"]).to.equal(3);
  });

  it("a server reads what another one has just written, also with If-None-Match and in lists", async () => {
    const [first, second] = await startUnlocked(2);
    for (let round = 0; round < 20; round++) {
      const { etag } = await mustPut(first, "app/key", `value ${round}`);
      expect((await mustGet(second, "app/key"))["value"]).to.equal(`value ${round}`);
      expect((await get(second, "app/key", { "if-none-match": `"${etag}"` })).status).to.equal(304);
      expect(await mustList(second)).to.have.nested.property("[0].etag", etag);
      await mustPut(second, "app/key", "another");
      expect((await get(first, "app/key", { "if-none-match": `"${etag}"` })).status).to.equal(200);
    }
    expect((await mustCount(second))["secretCount"]).to.equal(1);
  });

  it("a server returns 403 within one request after a forced init on another one, then serves the new vault", async () => {
    const [first, second, third] = await startUnlocked(3);
    await mustPut(first, "app/key", "old");
    await mustInit(first, { passphrase: "another passphrase", force: true });
    mustRefuse(await get(second, "app/key"), 403, "VAULT_LOCKED");
    mustRefuse(
      await send(third ?? first, { method: "PUT", path: secretTarget("app/key"), body: { value: "late" } }),
      403,
      "VAULT_LOCKED",
    );
    expect(await mustCount(second)).to.include({ locked: true, initialized: true, secretCount: 0 });
    mustRefuse(await post(second, "/v1/unlock", { passphrase }), 401, "UNAUTHORIZED");
    await mustUnlock(second, "another passphrase");
    mustRefuse(await get(second, "app/key"), 404, "NOT_FOUND");
  });

  it("a server rejects a passphrase that was changed on another one", async () => {
    const [first, second] = await startUnlocked(2);
    mustSucceed(await post(first, "/v1/passphrase", { passphrase, newPassphrase: "changed" }));
    mustRefuse(await post(second, "/v1/unlock", { passphrase }), 401, "UNAUTHORIZED");
    await mustUnlock(second, "changed");
  });

  it("servers rotate the master key together: what is written during it, and on every server, stays readable", async () => {
    const [first, second] = await startUnlocked(2);
    for (let n = 0; n < 60; n++) await mustPut(first, `app/${n}`, `value ${n}`);
    await mustRotate(first);
    mustRefuse(await get(second, "app/0"), 403, "VAULT_LOCKED");
    await mustUnlock(second);
    const putOnSecond = () => send(second, { method: "PUT", path: secretTarget("app/1"), body: { value: "rotated" } });
    if ((await putOnSecond()).status === 403) {
      await mustUnlock(second); // the rotation has ended by now, which locks once more
      mustSucceed(await putOnSecond());
    }
    await untilRotated(first);
    for (const server of [first, second]) {
      await mustUnlock(server);
      expect((await mustGet(server, "app/1"))["value"]).to.equal("rotated");
      expect((await mustGet(server, "app/59"))["value"]).to.equal("value 59");
      expect(await mustList(server)).to.have.length(60);
    }
  });

  it("client tokens of every server outlive a rotation of the master key, and revoked names become free", async () => {
    const [first, second] = await startUnlocked(2);
    await mustCreateToken(first, { name: "ci" });
    mustSucceed(await send(second, { method: "DELETE", path: "/v1/tokens/ci" }));
    await mustCreateToken(first, { name: "ci" });
    mustSucceed(await send(second, { method: "DELETE", path: "/v1/tokens/ci" }));
    mustSucceed(await send(first, { path: "/v1/tokens" })); // from here on it knows of none
    const { token } = await mustCreateToken(second, { name: "other" });
    await mustRotate(first);
    await untilRotated(first);
    for (const server of [first, second]) {
      await mustUnlock(server);
      mustRefuse(await send(server, { path: secretTarget("none"), token }), 404, "NOT_FOUND");
    }
  });

  it("a server lists the client tokens of the vault that another one has just made", async () => {
    const [first, second = first] = await startSharedServers(database(), 2);
    await mustInit(first);
    await mustCreateToken(first, { name: "ci" });
    const { tokens } = mustSucceed(await send(second, { path: "/v1/tokens" }));
    expect(tokens).to.have.nested.property("[0].name", "ci");
  });

  it("a server with a clock far ahead neither starts nor connects, and so removes no client token", async () => {
    const [first] = await startUnlocked(2);
    const { token } = await mustCreateToken(first, { name: "ci" });
    let aheadMs = 0;
    const clock = { ...systemClock, now: () => Date.now() + aheadMs };
    const start = () => startTestServer({ store: sharedStoreUrl(database()), token: first.token, clock });
    const second = await start();
    await mustUnlock(second);
    aheadMs = 365 * 24 * 3_600_000;
    await start().then(
      () => expect.fail("it starts"),
      (error: unknown) => expect(String(error)).to.match(/^StartError: clock skew with the database /),
    );
    database().proxy.cut();
    mustRefuse(await post(second, "/v1/unlock", { passphrase }), 503, "UNAVAILABLE");
    mustRefuse(await send(first, { path: secretTarget("none"), token }), 404, "NOT_FOUND");
  });

  it("a server accepts client tokens that another server's rotation re-signed", async () => {
    const [first, second = first] = await startSharedServers(database(), 2);
    await mustInit(first);
    const { token } = await mustCreateToken(first, { name: "ci" });
    mustSucceed(await send(second, { path: "/v1/tokens" })); // from here on it knows the record, unchecked
    await mustRotate(first);
    await untilRotated(first);
    await mustUnlock(second);
    mustRefuse(await send(second, { path: secretTarget("none"), token }), 404, "NOT_FOUND");
    expect(second.logged()).to.not.contain("tokens-refused");
  });

  it("16 writers with If-Match lose no update, and writers without a condition lose no version", async () => {
    const servers = await startUnlocked(3);
    await mustPut(servers[0], "counter", "0");
    const chooseServer = (writer: number) => servers[writer % servers.length] ?? servers[0];
    const increment = async (writer: number) => {
      for (let done = 0; done < updates; ) {
        const { value, etag } = await mustGet(chooseServer(writer), "counter");
        const headers = { "if-match": `"${etag}"` };
        const body = { value: String(Number(value) + 1) };
        const answer = await send(chooseServer(writer), {
          method: "PUT",
          path: secretTarget("counter"),
          headers,
          body,
        });
        if (answer.status === 200) done++;
        else mustRefuse(answer, 412, "PRECONDITION_FAILED");
      }
    };
    const put = async (writer: number) => {
      for (let n = 0; n < updates; n++) await mustPut(chooseServer(writer), "free", `${writer} ${n}`);
    };
    const writers = Array.from({ length: 16 }, (_, writer) => writer);
    await Promise.all(writers.flatMap((writer) => [increment(writer), put(writer)]));
    expect((await mustGet(servers[1], "counter"))["value"]).to.equal(String(16 * updates));
    const { version } = await mustGet(servers[1], "free");
    expect(version).to.equal(16 * updates);
  });

  it("servers return 503 and the last secret count while the database is silent, and recover by themselves", async () => {
    const { proxy } = database();
    const [first] = await startUnlocked(2);
    await mustPut(first, "app/key", "value");
    expect((await mustCount(first))["secretCount"]).to.equal(1);
    proxy.silence();
    const put = { method: "PUT", path: secretTarget("app/other"), body: { value: "lost" } } as const;
    for (const answer of await Promise.all([get(first, "app/key"), send(first, put)]))
      mustRefuse(answer, 503, "UNAVAILABLE");
    expect(await mustStatus(first)).to.include({ secretCount: 1, storageAvailable: false, locked: false });
    proxy.repair();
    expect((await mustGet(first, "app/key"))["value"]).to.equal("value");
    mustRefuse(await get(first, "app/other"), 404, "NOT_FOUND");
    await mustCount(first);
  });

  it("a client token gets 503 while the database is silent, except to lock", async () => {
    const [first, second] = await startUnlocked(2);
    const { token } = await mustCreateToken(first, { name: "locker", can: ["get", "lock"] });
    const lock = () => send(second, { method: "POST", path: "/v1/lock", token });
    mustSucceed(await lock());
    await mustUnlock(second);
    database().proxy.breakFrom(1);
    mustRefuse(await send(second, { path: secretTarget("app/key"), token }), 503, "UNAVAILABLE");
    mustRefuse(await send(second, { path: "/v1/tokens/self", token: "src_unknown" }), 503, "UNAVAILABLE");
    mustSucceed(await lock());
    database().proxy.repair();
    mustRefuse(await send(second, { path: secretTarget("app/key"), token }), 403, "VAULT_LOCKED");
  });

  it("a server seals nothing under the old key when the response to a forced init is lost after its effect", async () => {
    const [server] = await startUnlocked(2);
    await mustPut(server, "app/key", "old");
    database().proxy.loseAnswerTo("start-vault");
    const initialized = post(server, "/v1/init", { passphrase: "another passphrase", force: true });
    const answered = initialized.then(() => true);
    while (!(await Promise.race([answered, sleep(20, false)]))) await mustStatus(server);
    mustRefuse(await initialized, 503, "UNAVAILABLE");
    const put = { method: "PUT", path: secretTarget("app/late"), body: { value: "late" } };
    mustRefuse(await send(server, put), 403, "VAULT_LOCKED");
    await mustUnlock(server, "another passphrase");
    mustRefuse(await get(server, "app/late"), 404, "NOT_FOUND");
  });

  it("servers neither open nor seal anything under a header that they cannot read", async () => {
    const [first] = await startUnlocked(2);
    await mustPut(first, "app/key", "value");
    const { cluster, name } = database();
    await cluster.sql(name, "UPDATE strongroom.vault SET header = 'of a later version'");
    await cluster.sql(name, "UPDATE strongroom.current SET epoch = gen_random_uuid()");
    mustRefuse(await get(first, "app/key"), 403, "VAULT_LOCKED");
    const unlocked = await post(first, "/v1/unlock", { passphrase });
    expect(unlocked.status, JSON.stringify(unlocked.json)).to.be.at.least(400);
    expect((await mustStatus(first))["locked"]).to.equal(true);
  });

  it("a snapshot contains the vault that another server has made current", async () => {
    const [first, second] = await startSharedServers(database(), 2);
    await mustInit(first);
    await mustPut(first, "app/key", "value");
    const taken = mustSucceed(await post(second as TestServer, "/v1/snapshot", {}));
    expect(taken["secretCount"]).to.equal(1);
  });
});
