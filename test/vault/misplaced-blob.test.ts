/** Misplaced blobs: moved, swapped, foreign or no blob at all; each is refused and left unchanged. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmdirSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { needs } from "../../tools/rig/needs.js";
import { startTestServer, uncached } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut, mustRefuse, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { blobFile, damage } from "../support/damage.js";
import { allPaths, kinds, mustRefuseGet, put, startPrepared, witness } from "./damaged-secrets.js";

/** Returns where the value box begins; see the format in workers/crypto/blob.ts. */
function valueBoxAt(blob: Buffer): number {
  return 9 + blob.readUInt32BE(5);
}

describe("a blob in another's place", () => {
  it("(swapped with another path's) is refused in both places", async () => {
    const server = await startPrepared();
    for (const [one, two] of [
      [0, 1],
      [1, 2],
      [0, 2],
    ] as const) {
      const [a, b] = [allPaths[one] ?? "", allPaths[two] ?? ""];
      const [first, second] = [blobFile(server, a), blobFile(server, b)].map((file) => readFileSync(file));
      damage(blobFile(server, a), second as Buffer);
      damage(blobFile(server, b), first as Buffer);
      for (const path of [a, b]) await mustRefuseGet(server, path, `${a} swapped with ${b}`);
      damage(blobFile(server, a), first as Buffer);
      damage(blobFile(server, b), second as Buffer);
    }
    for (const path of allPaths) await mustGet(server, path);
  });

  it("(of the same path, from another vault or an earlier one of this home) is refused", async () => {
    const server = await startPrepared();
    const other = await startPrepared();
    await mustInit(server, { passphrase: "another, to tell them apart", force: true });
    await mustPut(server, witness, "readable");
    for (const { path, body } of Object.values(kinds)) {
      await mustPut(server, path, body);
      const file = blobFile(server, path);
      const blob = readFileSync(file);
      for (const foreign of [blobFile(server, path, "gen-1"), blobFile(other, path)]) {
        damage(file, readFileSync(foreign));
        await mustRefuseGet(server, path, foreign);
        mustRefuse(await put(server, path), 500, "INTEGRITY");
        expect(readFileSync(file).equals(readFileSync(foreign))).to.equal(true);
      }
      damage(file, blob);
      await mustGet(server, path);
    }
  });

  it("(metadata of one write with the value of another of the same path) is refused", async () => {
    const server = await startPrepared();
    const file = blobFile(server, "empty");
    const before = readFileSync(file);
    await mustPut(server, "empty", { value: "a later one" });
    const after = readFileSync(file);
    for (const [head, tail] of [
      [before, after],
      [after, before],
    ] as const) {
      damage(file, Buffer.concat([head.subarray(0, valueBoxAt(head)), tail.subarray(valueBoxAt(tail))]));
      await mustRefuseGet(server, "empty", "mixed");
    }
  });

  it("(a foreign file with the name of a secret) is refused, listed as damaged, and left unchanged", async () => {
    const server = await startPrepared();
    await server.stop();
    const contents = [
      "",
      "a note to myself\n",
      "SRVB",
      `SRVB\u0001${"\u0000".repeat(100)}`,
      "SRVB\u0001\xff\xff\xff\xff".padEnd(90),
    ];
    contents.forEach((content, n) => void damage(blobFile(server, `foreign-${n}`), Buffer.from(content, "latin1")));
    const again = await startTestServer({ ...uncached, home: server.home });
    await mustUnlock(again);
    const { damaged } = mustSucceed(await send(again, { path: "/v1/secrets" }));
    expect(damaged).to.deep.equal(contents.map((_, n) => `foreign-${n}`));
    for (const [n, content] of contents.entries()) {
      await mustRefuseGet(again, `foreign-${n}`, JSON.stringify(content));
      mustRefuse(await put(again, `foreign-${n}`), 500, "INTEGRITY");
      expect(readFileSync(blobFile(again, `foreign-${n}`), "latin1")).to.equal(content);
    }
  });

  it("(a directory, or a link, even one to the right blob) is refused and not followed", async () => {
    const server = await startPrepared();
    const file = blobFile(server, "empty");
    const kept = `${file}.kept`;
    renameSync(file, kept);
    mkdirSync(file);
    await mustRefuseGet(server, "empty", "a directory");
    mkdirSync(blobFile(server, "never-stored"));
    mustRefuse(await put(server, "never-stored"), 500, "INTEGRITY");
    rmdirSync(file);
    symlinkSync(kept, file);
    await mustRefuseGet(server, "empty", "a link");
    unlinkSync(file);
    renameSync(kept, file);
    await mustGet(server, "empty");
  });

  it("(a pipe without a writer) is refused at once", async function () {
    const server = await startPrepared();
    const file = blobFile(server, "empty");
    unlinkSync(file);
    needs(this, spawnSync("mkfifo", ["-m", "600", file]).status === 0, "mkfifo");
    for (let more = 0; more < 8; more++) await mustRefuseGet(server, "empty", "a pipe");
    await mustGet(server, witness);
  });

  it("(a directory) leaves lists, bindings and the list of keys readable", async () => {
    const server = await startTestServer({ ...uncached, brokerPort: 0 });
    await mustInit(server);
    for (const name of ["a", "b"]) {
      await mustPut(server, name, "v");
      mustSucceed(await send(server, { method: "POST", path: `/v1/transit/keys/${name}` }));
    }
    for (const space of ["secrets", "keys"]) {
      const file = join(server.home, "vault", "gen-1", space, "b.sealed");
      unlinkSync(file);
      mkdirSync(file);
    }
    const paths = ["/v1/secrets", "/v1/uses", "/v1/broker", "/v1/transit/keys"];
    for (const path of paths) mustSucceed(await send(server, { path }));
    const { keys, damaged } = (await send(server, { path: "/v1/transit/keys" })).json;
    expect([(keys as readonly unknown[]).length, damaged]).to.deep.equal([1, ["b"]]);
  });
});
