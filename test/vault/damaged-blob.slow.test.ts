/** Damaged blobs: always refused, without harm to others, and with a remedy for each. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { shareTestServer, startTestServer, uncached } from "../../tools/rig/server.js";
import {
  mustGet,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { blobFile, damage, everyDamage, flipped, headerFile } from "../support/damage.js";
import { startKeyWorker, verdict } from "../support/key-worker.js";
import { allPaths, kinds, mustRefuseGet, prepare, put, startPrepared, witness } from "./damaged-secrets.js";

/** The normal suite gets some of the damaged secrets, the long form all. */
const getEvery = process.env["STRONGROOM_SLOW"] ? 1 : 32;

describe("damaged blobs", function () {
  this.timeout(0);
  const server = shareTestServer(uncached, prepare);

  for (const [kind, { path, body }] of Object.entries(kinds)) {
    // Only the key worker judges a blob, so each damage goes to its real thread; a get of each would take 20 s.
    it(`a blob (${kind}) with a flipped bit in any byte, of any shorter length, or longer by a byte is refused`, async () => {
      const file = blobFile(server(), path);
      const blob = readFileSync(file);
      expect(blob.length).to.be.below(400);
      const worker = await startKeyWorker(readFileSync(headerFile(server())));
      const opened = (bytes: Uint8Array) =>
        verdict("opens", worker.call({ op: "open", path, blob: new Uint8Array(bytes) }));
      for (const [at, [what, bytes]] of [...everyDamage(blob)].entries()) {
        expect(await opened(bytes), what).to.equal("INTEGRITY");
        if (at % getEvery > 0) continue;
        damage(file, bytes);
        await mustRefuseGet(server(), path, what);
        expect((await mustGet(server(), witness))["value"]).to.equal("readable");
        expect(readFileSync(file).equals(bytes), `${what}: the refusal changed the file`).to.equal(true);
      }
      damage(file, blob);
      expect(await opened(blob)).to.equal("opens");
      expect(await mustGet(server(), path)).to.deep.include({ value: (body as { value: string }).value });
    });
  }

  it("a blob of any other format version is refused", async () => {
    const { path } = kinds["a longer value"] as { path: string };
    const file = blobFile(server(), path);
    const blob = readFileSync(file);
    for (let version = 0; version < 256; version++) {
      if (version === blob[4]) continue;
      const bytes = Buffer.from(blob);
      bytes[4] = version;
      damage(file, bytes);
      await mustRefuseGet(server(), path, `version ${version}`);
      mustRefuse(await put(server(), path), 500, "INTEGRITY");
      expect(readFileSync(file).equals(bytes)).to.equal(true);
    }
    damage(file, blob);
    await mustGet(server(), path);
  });

  it("lock, unlock, status, list and restart work beside a damaged blob", async () => {
    const own = await startPrepared();
    const file = blobFile(own, "empty");
    const blob = readFileSync(file);
    damage(file, flipped(blob, 100));
    await mustLock(own);
    await mustUnlock(own);
    await own.stop();
    const again = await startTestServer({ ...uncached, home: own.home });
    await mustUnlock(again);
    await mustRefuseGet(again, "empty", "after a restart");
    expect((await mustStatus(again))["secretCount"]).to.equal(4);
    expect((await mustList(again)).map(({ path }) => path)).to.have.members([...allPaths.slice(1), witness]);
    damage(file, blob);
    expect((await mustGet(again, "empty"))["value"]).to.equal("");
  });
});

describe("the remedy for a damaged secret", () => {
  async function damagedServer(chooseBit: (blob: Buffer) => number) {
    const server = await startPrepared();
    const file = blobFile(server, "empty");
    const blob = readFileSync(file);
    const bytes = flipped(blob, chooseBit(blob));
    damage(file, bytes);
    return { server, file, blob, bytes };
  }

  it("damaged metadata: get and put are refused, a list names the secret, and a delete allows a new put", async () => {
    const { server, file, bytes } = await damagedServer(() => 8 * 40);
    await mustRefuseGet(server, "empty", "metadata");
    const refused = await put(server, "empty");
    mustRefuse(refused, 500, "INTEGRITY");
    expect(refused.json["error"]).to.contain("delete it before");
    const { entries, damaged } = mustSucceed(await send(server, { path: "/v1/secrets" }));
    expect(damaged).to.deep.equal(["empty"]);
    expect(entries).to.have.lengthOf(3);
    expect(readFileSync(file).equals(bytes)).to.equal(true);
    mustSucceed(await send(server, { method: "DELETE", path: secretTarget("empty") }));
    await mustPut(server, "empty", "a new one");
    expect((await mustGet(server, "empty"))["value"]).to.equal("a new one");
  });

  it("a damaged value: get is refused, a list shows the secret, and a put replaces it and keeps createdAt", async () => {
    const { server, file, blob, bytes } = await damagedServer((whole) => 8 * (whole.length - 1));
    await mustRefuseGet(server, "empty", "value");
    const [entry] = await mustList(server, "?prefix=empty");
    expect(readFileSync(file).equals(bytes)).to.equal(true);
    damage(file, blob);
    const { createdAt } = await mustGet(server, "empty");
    damage(file, bytes);
    expect(entry?.createdAt).to.equal(createdAt);
    await mustPut(server, "empty", "a new one");
    expect(await mustGet(server, "empty")).to.deep.include({ value: "a new one", createdAt });
  });

  it("a file restored from a backup is readable without a restart", async () => {
    const { server, file, blob } = await damagedServer(() => 0);
    await mustRefuseGet(server, "empty", "magic");
    damage(file, blob);
    expect((await mustGet(server, "empty"))["value"]).to.equal("");
  });
});
