/** The vault's cache: never stale, never a blob that does not open, within its limit. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { systemFiles } from "../../src/files/durable.js";
import { BlobCache, cachedBlob } from "../../src/vault/cache.js";
import { passphrase, restarted, startTestServer, uncached } from "../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { blobFile, damage, flipped } from "../support/damage.js";
import { heldFiles } from "../support/held-files.js";
import { closedGate, turns } from "../support/latch.js";
import { FakeClock } from "../support/manual-clock.js";
import { Random } from "../support/random.js";

const get = { path: "/v1/secrets/a" };
const ofBytes = (length: number) => cachedBlob(new Uint8Array(length));
const [old, renewed] = [ofBytes(1), ofBytes(2)];

describe("the vault's cache", () => {
  it("a cached get is served after its file was removed, until the secret is deleted", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "a", "v");
    await mustGet(server, "a");
    rmSync(blobFile(server, "a"));
    expect((await mustGet(server, "a"))["value"], "from memory").to.equal("v");
    await send(server, { ...get, method: "DELETE" });
    mustRefuse(await send(server, get), 404, "NOT_FOUND");
  });

  it("a list fills the cache, but for a value that does not open: once its file is repaired, a get finds it", async () => {
    const first = await startTestServer();
    await mustInit(first);
    for (const path of ["a", "b"]) await mustPut(first, path, "v");
    const server = await restarted(first);
    await mustUnlock(server);
    const [file, other] = [blobFile(server, "a"), blobFile(server, "b")];
    const whole = readFileSync(file);
    damage(file, flipped(whole, 8 * (whole.length - 1)));
    expect(await mustList(server)).to.have.lengthOf(2);
    rmSync(other);
    expect((await mustGet(server, "b"))["value"], "from memory").to.equal("v");
    mustRefuse(await send(server, get), 500, "INTEGRITY");
    writeFileSync(file, whole);
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
  });

  it("a blob that does not open is not cached: once its file is repaired, the next get finds it", async () => {
    const first = await startTestServer();
    await mustInit(first);
    await mustPut(first, "a", "v");
    const server = await restarted(first);
    await mustUnlock(server);
    const file = blobFile(server, "a");
    const whole = readFileSync(file);
    damage(file, flipped(whole, 8 * (whole.length - 1)));
    mustRefuse(await send(server, get), 500, "INTEGRITY");
    writeFileSync(file, whole);
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
  });

  it("a forced init empties the cache", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "a", "v");
    await mustGet(server, "a");
    await mustList(server);
    mustSucceed(await send(server, { method: "POST", path: "/v1/init", body: { passphrase, force: true } }));
    mustRefuse(await send(server, get), 404, "NOT_FOUND");
    await mustPut(server, "a", "of the new vault");
    expect((await mustGet(server, "a"))["value"]).to.equal("of the new vault");
    expect(await mustList(server)).to.have.lengthOf(1);
  });

  for (const [where, held] of [
    ["in the same slice", "s-001.sealed"],
    ["in another slice", "s-150.sealed"],
  ] as const) {
    it(`a failed list does not fill the cache: its response waits for the reads ${where}`, async () => {
      let armed = false;
      const [reading, released] = [closedGate(), closedGate()];
      const open: typeof systemFiles.open = async (...args) => {
        if (armed && args[0].endsWith("s-000.sealed")) {
          await reading.passed;
          throw Object.assign(new Error("no"), { code: "EIO" });
        }
        if (armed && args[0].endsWith(held)) {
          reading.open();
          await released.passed;
        }
        return systemFiles.open(...args);
      };
      const clock = new FakeClock(); // it stands, so that no background work reads what is held
      const server = await startTestServer({ ...uncached, clock, files: { ...systemFiles, open } });
      await mustInit(server);
      const names = Array.from({ length: 200 }, (_, n) => `s-${String(n).padStart(3, "0")}`); // two slices and more
      await Promise.all(names.map((name) => mustPut(server, name, "v")));
      armed = true;
      let answered = false;
      const list = send(server, { path: "/v1/secrets" }).finally(() => {
        answered = true;
      });
      await reading.passed;
      await turns();
      expect(answered).to.equal(false);
      released.open();
      mustRefuse(await list, 503, "UNAVAILABLE");
    });
  }

  it("a get that began before a put does not fill the cache", async () => {
    const [opened, released] = [closedGate(), closedGate()];
    let slow = false;
    const open: typeof systemFiles.open = async (...args) => {
      const handle = await systemFiles.open(...args);
      if (slow && String(args[0]).endsWith("a.sealed")) {
        slow = false; // the put also reads what it replaces
        opened.open();
        await released.passed; // the old file is open already
      }
      return handle;
    };
    const first = await startTestServer();
    await mustInit(first);
    await mustPut(first, "a", "old");
    const server = await restarted(first, { files: { ...systemFiles, open } });
    await mustUnlock(server);
    slow = true;
    const early = mustGet(server, "a");
    await opened.passed;
    await mustPut(server, "a", "new");
    released.open();
    expect((await early)["value"]).to.be.oneOf(["old", "new"]);
    for (let reading = 0; reading < 3; reading++) expect((await mustGet(server, "a"))["value"]).to.equal("new");
  });

  it("a read does not fill the cache while its path is being changed", async () => {
    const cache = new BlobCache(10_000);
    cache.beginChange(["a"]);
    await cache.reading(async (keep) => keep("a", old));
    expect(cache.get("a")).to.equal(undefined);
    cache.endChange(["a"]);
    await cache.reading(async (keep) => keep("a", renewed));
    expect(cache.get("a")).to.equal(renewed);
  });

  it("a read that began during a change does not fill the cache, even after the change", async () => {
    const cache = new BlobCache(10_000);
    const ended = closedGate();
    cache.beginChange(["a"]);
    const reading = cache.reading(async (keep) => {
      await ended.passed;
      keep("a", old);
    });
    cache.endChange(["a"]);
    ended.open();
    await reading;
    expect(cache.get("a")).to.equal(undefined);
  });

  it("a secret put at the path of a deleted one has a new createdAt", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock });
    await mustInit(server);
    await mustPut(server, "a", "v");
    clock.advance(5_000);
    mustSucceed(await send(server, { ...get, method: "DELETE" }));
    await mustPut(server, "a", "w");
    const now = new Date(clock.now()).toISOString();
    expect(await mustGet(server, "a")).to.include({ createdAt: now, updatedAt: now });
  });

  it("a secret that is deleted while the list is read is not listed", async () => {
    const { files, hold } = heldFiles();
    const server = await startTestServer({ ...uncached, files });
    await mustInit(server);
    for (const path of ["a", "b", "c"]) await mustPut(server, path, "v");
    const { reached, release } = hold("b.sealed");
    const list = send(server, { path: "/v1/secrets" });
    await reached;
    mustSucceed(await send(server, { method: "DELETE", path: "/v1/secrets/b" }));
    release();
    const { entries, damaged } = mustSucceed(await list);
    expect([(entries as { path: string }[]).map(({ path }) => path), damaged ?? []]).to.deep.equal([["a", "c"], []]);
  });

  it("a list never shows an older state, whatever changes between two lists", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const random = new Random(20261121);
    const model = new Map<string, string>();
    const put = async (path: string, description: string) => {
      await mustPut(server, path, { value: "v", description });
      model.set(path, description);
    };
    for (let n = 0; n < 200; n++) await put(`team-${n % 7}/secret-${n}`, "first");
    const ascending = () => [...model.keys()].sort().map((path) => [path, model.get(path)]);
    for (let round = 0; round < 40; round++) {
      const path = random.chance(0.3) ? `team-${round % 7}/new-${round}` : random.pick([...model.keys()] as [string]);
      if (random.chance(0.3) && model.delete(path))
        await send(server, { method: "DELETE", path: `/v1/secrets/${path}` });
      else await put(path, `of round ${round}`);
      const listed = (await mustList(server)).map(({ path, metadata }) => [path, metadata["description"]]);
      expect(listed, `round ${round}, after ${path}`).to.deep.equal(ascending());
    }
  });

  it("a repeated list is unchanged, and never that of another vault", async () => {
    const server = await startTestServer();
    await mustInit(server);
    for (let n = 0; n < 150; n++) await mustPut(server, `secret-${n}`, "v");
    const lists = [await mustList(server), await mustList(server), await mustList(server)];
    expect(lists[1]).to.deep.equal(lists[0]);
    expect(lists[2]).to.deep.equal(lists[0]);
    mustSucceed(await send(server, { method: "POST", path: "/v1/init", body: { passphrase, force: true } }));
    expect(await mustList(server)).to.deep.equal([]);
  });

  it("the cache keeps the most recently used entries within its limit, and none larger than an eighth of it", () => {
    const cache = new BlobCache(10_000);
    for (let i = 0; i < 100; i++) {
      cache.keep(`${i}`, ofBytes(200));
      cache.get("0");
    }
    const kept = Array.from({ length: 100 }, (_, i) => i).filter((i) => cache.has(`${i}`));
    expect(kept.length).to.be.within(10, 20);
    expect(kept).to.include.members([0, 99, 98]);
    cache.keep("large", ofBytes(5_000));
    expect(cache.get("large")).to.equal(undefined);
    const none = new BlobCache(0);
    none.keep("a", ofBytes(0));
    expect(none.get("a")).to.equal(undefined);
  });

  it("a read of all blobs fills only the free part of the cache, and evicts nothing", async () => {
    const cache = new BlobCache(10_000);
    cache.keep("used", ofBytes(200));
    await cache.reading(async (keep) => {
      for (let i = 0; i < 100; i++) keep(`${i}`, ofBytes(200), true);
    });
    expect(["used", "0", "1", "99"].filter((key) => cache.has(key))).to.deep.equal(["used", "0", "1"]);
    expect(cache.stats.bytes).to.be.at.most(10_000);
  });
});
