/** The trash: deleted secrets with their whole history, until they are brought back or destroyed; and versions destroyed one by one. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { shared } from "../../tools/rig/clean-up.js";
import { needsPostgres } from "../../tools/rig/postgres.js";
import { restarted, startTestServer, type TestOptions, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  type Json,
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
import { blobFile } from "../support/damage.js";
import { mustRotate, untilRotated } from "../support/key-requests.js";
import { FakeClock } from "../support/manual-clock.js";
import { startSharedDatabase, startSharedServers } from "../support/shared-servers.js";

const trashing = (path: string, ifMatch?: string): Send => ({
  method: "POST",
  path: `/v1/trash/${path}`,
  ...(ifMatch !== undefined && { headers: { "if-match": `"${ifMatch}"` } }),
});
const untrashing = (path: string): Send => ({ method: "POST", path: `/v1/untrash/${path}` });
const destroying = (path: string): Send => ({ method: "DELETE", path: `/v1/trash/${path}` });
const destroyingVersion = (path: string, version: number): Send => ({
  method: "DELETE",
  path: `/v1/versions/${path}?version=${version}`,
});

async function mustListTrash(server: TestServer, query = ""): Promise<Json[]> {
  return mustSucceed(await send(server, { path: `/v1/trash${query}` }))["entries"] as Json[];
}

async function mustListVersions(server: TestServer, path: string): Promise<Json[]> {
  return mustSucceed(await send(server, { path: `/v1/versions/${path}` }))["versions"] as Json[];
}

async function must(server: TestServer, request: Send): Promise<Json> {
  return mustSucceed(await send(server, request));
}

async function putAll(server: TestServer, path: string, values: readonly string[]): Promise<void> {
  for (const value of values) await mustPut(server, path, { value, description: `of ${value}` });
}

/** All that can be read of a secret. */
async function readContents(server: TestServer, path: string): Promise<unknown[]> {
  return [await mustGet(server, path), await mustListVersions(server, path)];
}

function rulesOfTrash(server: () => TestServer): void {
  it("a secret in the trash keeps its history, and is missing for everything else until it is restored", async () => {
    await putAll(server(), "app/key", ["one", "two", "three"]);
    await mustPut(server(), "app/other", "v");
    const before = await readContents(server(), "app/key");
    const list = await mustList(server());
    const { secretCount } = await mustStatus(server());

    const { deletedAt, ...rest } = await must(server(), trashing("app/key"));
    expect(rest).to.deep.equal({ ok: true, path: "app/key", message: "the secret is in the trash" });
    for (const path of ["/v1/secrets/app/key", "/v1/versions/app/key", "/v1/versions/app/key?version=1"])
      mustRefuse(await send(server(), { path }), 404, "NOT_FOUND");
    for (const request of [{ method: "DELETE", path: "/v1/secrets/app/key" }, trashing("app/key")] as const)
      mustRefuse(await send(server(), request), 404, "NOT_FOUND");
    const operations = [{ get: "app/key" }];
    const { results } = await must(server(), { method: "POST", path: "/v1/batch", body: { operations } });
    expect((results as Json[])[0]?.["code"]).to.equal("NOT_FOUND");
    expect((await mustList(server())).map(({ path }) => path)).to.deep.equal(["app/other"]);
    expect((await mustStatus(server()))["secretCount"]).to.equal(Number(secretCount) - 1);
    expect(await mustListTrash(server(), "?prefix=app/k")).to.deep.equal([{ ...list[0], deletedAt }]);
    expect(await mustListTrash(server(), "?prefix=app/o")).to.deep.equal([]);

    const back = await must(server(), untrashing("app/key"));
    expect(back).to.deep.equal({ ok: true, path: "app/key", message: "the secret is back" });
    expect(await readContents(server(), "app/key")).to.deep.equal(before);
    expect(await mustListTrash(server())).to.deep.equal([]);
    for (const request of [untrashing("app/key"), destroying("app/key")])
      mustRefuse(await send(server(), request), 404, "NOT_FOUND");
  });

  it("the trash keeps the later of two secrets of one path", async () => {
    for (const value of ["first", "second"]) {
      expect((await mustPut(server(), "twice", value))["version"]).to.equal(1);
      await must(server(), trashing("twice"));
    }
    await must(server(), untrashing("twice"));
    expect((await mustGet(server(), "twice"))["value"]).to.equal("second");
  });

  it("a restore from the trash is refused where there is a secret again, which stays as it is", async () => {
    await mustPut(server(), "again", "old");
    await must(server(), trashing("again"));
    await mustPut(server(), "again", "new");
    mustRefuse(await send(server(), untrashing("again")), 409, "ALREADY_EXISTS");
    expect((await mustGet(server(), "again"))["value"]).to.equal("new");
    await must(server(), { method: "DELETE", path: "/v1/secrets/again" });
    await must(server(), untrashing("again"));
    expect((await mustGet(server(), "again"))["value"]).to.equal("old");
  });

  it("a destroyed secret does not come back from the trash", async () => {
    await mustPut(server(), "gone", "v");
    await must(server(), trashing("gone"));
    expect((await must(server(), destroying("gone")))["message"]).to.equal("the secret is destroyed");
    expect(await mustListTrash(server(), "?prefix=gone")).to.deep.equal([]);
    mustRefuse(await send(server(), untrashing("gone")), 404, "NOT_FOUND");
  });

  it("each change of the trash compares If-Match with the secret's etag", async () => {
    const { etag } = await mustPut(server(), "tagged", "v");
    const steps: readonly ((path: string, ifMatch?: string) => Send)[] = [
      trashing,
      (path, ifMatch) => ({ ...trashing(path, ifMatch), path: `/v1/untrash/${path}` }),
      trashing,
      (path, ifMatch) => ({ ...trashing(path, ifMatch), method: "DELETE" }),
    ];
    for (const step of steps) {
      mustRefuse(await send(server(), step("tagged", "another")), 412, "PRECONDITION_FAILED");
      await must(server(), step("tagged", String(etag)));
    }
    mustRefuse(await send(server(), trashing("tagged", "*")), 412, "PRECONDITION_FAILED");
  });

  it("one batch moves several secrets to the trash, all or none, and those that moves replace", async () => {
    for (const path of ["batch/a", "batch/b", "batch/to"]) await putAll(server(), path, ["one", path]);
    const before = await readContents(server(), "batch/to");
    const batch = (...operations: object[]): Send => ({ method: "POST", path: "/v1/batch", body: { operations } });
    const refused = batch({ trash: "batch/a" }, { trash: "batch/none" });
    mustRefuse(await send(server(), refused), 404, "NOT_FOUND");
    const done = await must(
      server(),
      batch({ get: "batch/a" }, { trash: "batch/a" }, { move: "batch/b", to: "batch/to", trashReplaced: true }),
    );
    const response = { ok: true, path: "batch/a", message: "the secret is in the trash" };
    expect((done["results"] as Json[])[1]).to.deep.equal(response);
    expect((await mustListTrash(server(), "?prefix=batch/")).map(({ path }) => path)).to.deep.equal([
      "batch/a",
      "batch/to",
    ]);
    expect((await mustGet(server(), "batch/to"))["value"]).to.equal("batch/b");
    await must(server(), { method: "DELETE", path: "/v1/secrets/batch/to" });
    for (const path of ["batch/a", "batch/to"]) await must(server(), untrashing(path));
    expect(await readContents(server(), "batch/to")).to.deep.equal(before);
  });

  it("a binary value comes back from the trash", async () => {
    const value = Buffer.from([0, 1, 2, 255]).toString("base64");
    await mustPut(server(), "binary", { value, encoding: "base64" });
    await must(server(), trashing("binary"));
    expect((await mustListTrash(server(), "?prefix=binary"))[0]?.["encoding"]).to.equal("base64");
    await must(server(), untrashing("binary"));
    expect(await mustGet(server(), "binary")).to.include({ value, encoding: "base64" });
  });

  it("a rotation of the master key re-seals the trash, also what moves while it runs", async () => {
    const paths = Array.from({ length: 40 }, (_, i) => `rotated/${i}`);
    for (const path of paths) await putAll(server(), path, ["one", "two"]);
    const before = await Promise.all(paths.map((path) => readContents(server(), path)));
    const [back, trashed, late] = [paths.slice(0, 10), paths.slice(10, 20), paths.slice(20)];
    for (const path of [...back, ...trashed]) await must(server(), trashing(path));
    await mustRotate(server());
    for (const path of back) await must(server(), untrashing(path));
    for (const path of late) await must(server(), trashing(path));
    await untilRotated(server());
    for (const path of [...trashed, ...late]) await must(server(), untrashing(path));
    expect(await Promise.all(paths.map((path) => readContents(server(), path)))).to.deep.equal(before);
  });

  it("60 concurrent moves of a secret into and out of the trash neither lose nor double it", async () => {
    await mustPut(server(), "moving", "v");
    const moves = Array.from({ length: 60 }, (_, i) => send(server(), (i % 2 === 0 ? trashing : untrashing)("moving")));
    for (const { status } of await Promise.all(moves)) expect([200, 404, 409]).to.include(status);
    const inTrash = (await mustListTrash(server(), "?prefix=moving")).length;
    expect((await mustList(server(), "?prefix=moving")).length + inTrash).to.equal(1);
  });
}

describe("the trash of a vault in files", () => {
  const server = shared(async () => {
    const started = await startTestServer(uncached);
    await mustInit(started);
    return started;
  });
  rulesOfTrash(server);

  it("a secret in the trash has a file of its own, in which nothing but the time is in the clear", async () => {
    await mustPut(server(), "file", { value: "the value", description: "the description" });
    const sealed = readFileSync(blobFile(server(), "file"));
    const { deletedAt } = await must(server(), trashing("file"));
    const after = await restarted(server());
    const trashed = readFileSync(join(after.home, "vault", "gen-1", "trash", "file.sealed"));
    expect(existsSync(blobFile(after, "file"))).to.equal(false);
    expect(trashed.subarray(21)).to.deep.equal(sealed);
    expect(new Date(Number(trashed.readBigUInt64BE(5))).toISOString()).to.equal(deletedAt);
    mustRefuse(await send(after, { path: "/v1/trash" }), 403, "VAULT_LOCKED");
    await mustUnlock(after);
    await must(after, untrashing("file"));
    expect((await mustGet(after, "file"))["value"]).to.equal("the value");
    await mustLock(after);
    mustRefuse(await send(after, trashing("file")), 403, "VAULT_LOCKED");
  });
});

describe("the trash of a vault in PostgreSQL", () => {
  needsPostgresBefore();
  const servers = shared(async () => {
    const [first, second] = await startSharedServers(await startSharedDatabase(), 2);
    await mustInit(first);
    if (second === undefined) throw new Error("there is one server");
    await mustUnlock(second);
    return [first, second] as const;
  });
  rulesOfTrash(() => servers()[0]);

  it("two servers share the trash, and one of two that move a secret succeeds", async () => {
    const [first, second] = servers();
    await mustUnlock(second); // the rotation has locked it
    await mustPut(first, "raced", "v");
    const both = (request: Send) => Promise.all([send(first, request), send(second, request)]);
    const statuses = (answers: readonly ApiResponse[]) => answers.map(({ status }) => status).sort();
    for (let round = 0; round < 10; round++) {
      expect(statuses(await both(trashing("raced")))).to.deep.equal([200, 404]);
      expect(statuses(await both(untrashing("raced")))).to.deep.equal([200, 404]);
    }
    expect((await mustGet(second, "raced"))["value"]).to.equal("v");
  });
});

function needsPostgresBefore(): void {
  before(function () {
    needsPostgres(this);
  });
}

const day = 24 * 3_600_000;

describe("the sweep of the trash", () => {
  const kept = async (server: TestServer) => (await mustListTrash(server)).map(({ path }) => path);

  /** Waits for the sweeps that the clock has begun. */
  async function untilSwept(server: TestServer, count: number): Promise<void> {
    const files = () => readdirSync(join(server.home, "vault", "gen-1"), { recursive: true, encoding: "utf8" });
    while (files().filter((name) => /^(?:journal|trash.*\.sealed$)/.test(name)).length > count) await sleep(5);
  }

  async function startWithTrash(options: TestOptions = {}) {
    const clock = new FakeClock();
    const server = await startTestServer({ clock, idleTimeoutMs: 0, ...options });
    await mustInit(server);
    for (const path of ["old", "new"]) {
      await mustPut(server, path, "v");
      await must(server, trashing(path));
      clock.jump(10 * day);
    }
    return { clock, server };
  }

  it("the sweep destroys what is in the trash for 30 days, within the hour, also in a locked vault", async () => {
    const { clock, server } = await startWithTrash();
    clock.jump(10 * day);
    expect(await kept(server)).to.deep.equal(["new", "old"]);
    await mustLock(server);
    clock.advance(3_600_000);
    await untilSwept(server, 1);
    await mustUnlock(server);
    expect(await kept(server)).to.deep.equal(["new"]);
    const { records } = await must(server, { path: "/v1/audit?limit=1000" });
    const [{ time: _, seq: __, ...record } = {}, another] = (records as Json[]).filter(
      ({ event }) => event === "destroy",
    );
    expect(record).to.deep.equal({ event: "destroy", path: "old", reason: "age" });
    expect(another).to.equal(undefined);
    clock.jump(10 * day);
    clock.advance(3_600_000);
    await untilSwept(server, 0);
  });

  it("the sweep begins within 45 s of a start", async () => {
    const { clock, server } = await startWithTrash({ keepTrashDays: 0 });
    clock.jump(95 * day);
    const after = await restarted(server, { clock, keepTrashDays: 110, idleTimeoutMs: 0 });
    clock.advance(45_000);
    await untilSwept(after, 1);
    await mustUnlock(after);
    expect(await kept(after)).to.deep.equal(["new"]);
  });

  it("the sweep destroys nothing with --keep-trash-days 0", async () => {
    const { clock, server } = await startWithTrash({ keepTrashDays: 0 });
    clock.jump(4000 * day);
    clock.advance(2 * 3_600_000);
    expect(await kept(server)).to.deep.equal(["new", "old"]);
  });
});

describe("destroyed versions", () => {
  const server = shared(async () => {
    const started = await startTestServer(uncached);
    await mustInit(started);
    return started;
  });

  it("a destroyed version keeps only its number and times, and the other versions stay as they are", async () => {
    await putAll(server(), "app/key", ["one", "two", "three"]);
    const before = await mustListVersions(server(), "app/key");
    const current = await mustGet(server(), "app/key");
    const response = await must(server(), destroyingVersion("app/key", 2));
    expect(response).to.deep.equal({ ok: true, path: "app/key", message: "version 2 is destroyed" });
    const after = await mustListVersions(server(), "app/key");
    const [three, { metadata: _, etag: __, ...two } = {}, one] = before;
    const { etag: ___, ...destroyed } = after[1] ?? {};
    expect(destroyed).to.deep.equal({ ...two, metadata: {}, destroyed: true });
    expect([after[0], after[2]]).to.deep.equal([three, one]);
    expect(await mustGet(server(), "app/key")).to.deep.equal(current);
    mustRefuse(await send(server(), { path: "/v1/versions/app/key?version=2" }), 404, "NOT_FOUND");
    const undo = { method: "POST", path: "/v1/versions/app/key", body: { version: 2 } } as const;
    mustRefuse(await send(server(), undo), 404, "NOT_FOUND");
    await must(server(), destroyingVersion("app/key", 2));
    expect(await mustListVersions(server(), "app/key")).to.deep.equal(after);
    expect((await must(server(), { path: "/v1/versions/app/key?version=1" }))["value"]).to.equal("one");
  });

  it("a destroyed version stays so after a put, a move, the trash and a rotation", async () => {
    await putAll(server(), "kept", ["one", "two"]);
    await must(server(), destroyingVersion("kept", 1));
    await mustPut(server(), "kept", "three");
    const operations = [{ move: "kept", to: "moved" }];
    await must(server(), { method: "POST", path: "/v1/batch", body: { operations } });
    for (const request of [trashing("moved"), untrashing("moved")]) await must(server(), request);
    await mustRotate(server());
    await untilRotated(server());
    const versions = await mustListVersions(server(), "moved");
    expect(versions.map(({ version, destroyed }) => [version, destroyed])).to.deep.equal([
      [3, undefined],
      [2, undefined],
      [1, true],
    ]);
  });

  it("the newest version, a missing one, and one under another If-Match cannot be destroyed", async () => {
    const [, { etag }] = [await mustPut(server(), "few", "one"), await mustPut(server(), "few", "two")];
    mustRefuse(await send(server(), destroyingVersion("few", 2)), 400, "BAD_REQUEST");
    mustRefuse(await send(server(), destroyingVersion("few", 3)), 404, "NOT_FOUND");
    mustRefuse(await send(server(), destroyingVersion("none", 1)), 404, "NOT_FOUND");
    const conditional = (tag: unknown) => ({ ...destroyingVersion("few", 1), headers: { "if-match": `"${tag}"` } });
    mustRefuse(await send(server(), conditional("another")), 412, "PRECONDITION_FAILED");
    await must(server(), conditional(etag));
    for (const number of ["0", "x", ""]) {
      const request = { method: "DELETE", path: `/v1/versions/few?version=${number}` } as const;
      mustRefuse(await send(server(), request), 400, "BAD_REQUEST");
    }
  });
});
