/** getMany and batch of the client library. */
import { expect } from "chai";
import { type BatchOperation, StrongroomError } from "strongroom/client";
import { shareTestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustPut } from "../../tools/rig/test-client.js";
import { blobFile, damage } from "../support/damage.js";
import { heldFiles } from "../support/held-files.js";
import { makeClient } from "../support/library.js";

describe("the client's requests for many secrets", () => {
  const { files, hold } = heldFiles();
  const server = shareTestServer({ files, cacheBytes: 0, maxBatchBytes: 65_536 }, async (started) => {
    await mustInit(started);
    for (let i = 0; i < 12; i++) await mustPut(started, `large/${i}`, `${i}:${"x".repeat(20_000)}`);
    for (const path of ["a", "é"]) await mustPut(started, path, { value: `value of ${path}`, type: "other" });
  });
  const client = () => makeClient(server());

  const mustFail = async (work: Promise<unknown>, expected: object) => {
    const error = await work.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(StrongroomError).and.to.include(expected);
  };

  it("getMany returns secrets in the order of the paths, repeated ones too, and undefined for missing ones", async () => {
    const found = await client().getMany(["e\u0301", "none", "a", "é"]);
    expect(found.map((secret) => secret?.reveal())).to.deep.equal([
      "value of é",
      undefined,
      "value of a",
      "value of é",
    ]);
    expect(found[2]).to.deep.include({ path: "a", metadata: { type: "other" }, version: 1 });
    expect(await client().getMany([])).to.deep.equal([]);
  });

  it("getMany reads more secrets than one request may, and more bytes than one response may have", async () => {
    const missing = Array.from({ length: 1000 }, (_, i) => `none/${i}`);
    const found = await client().getMany(["a", ...missing, "é"]);
    expect(found).to.have.lengthOf(1002);
    expect([found[0]?.path, found[1], found.at(-1)?.path]).to.deep.equal(["a", undefined, "é"]);
    const paths = Array.from({ length: 12 }, (_, i) => `large/${i}`);
    const large = await client().getMany(paths);
    expect(large.map((secret) => secret?.reveal().split(":")[0])).to.deep.equal(paths.map((_, i) => `${i}`));
  });

  it("getMany reads the first of several large secrets, also when its file is read last", async () => {
    const paths = Array.from({ length: 12 }, (_, i) => `large/${i}`);
    const first = hold("/large/0.");
    const reading = client().getMany(paths);
    await first.reached;
    await mustGet(server(), "large/11"); // whose read of the batch has ended by then
    first.release();
    expect((await reading).map((secret) => secret?.reveal().split(":")[0])).to.deep.equal(paths.map((_, i) => `${i}`));
  });

  it("getMany throws for an invalid path and for a damaged secret", async () => {
    await mustFail(client().getMany(["a", "b//c", "é"]), { code: "BAD_REQUEST" });
    await mustPut(server(), "damaged", "v");
    damage(blobFile(server(), "damaged"), Buffer.from("no blob"));
    await mustFail(client().getMany(["a", "damaged"]), { code: "INTEGRITY" });
  });

  it("batch does all kinds of operations, and returns a result for each", async () => {
    for (const path of ["all/old", "all/gone", "all/read"]) await mustPut(server(), path, path);
    const results = await client().batch([
      { put: "all/new", value: new TextEncoder().encode('"é"\n'), type: "api-key", description: "d", ifAbsent: true },
      { move: "all/old", to: "all/moved" },
      { copy: "all/read", to: "all/copied" },
      { delete: "all/gone" },
      { get: "all/read" },
    ]);
    const metadata = { type: "api-key", description: "d" };
    expect(results[0]).to.deep.include({ ok: true, path: "all/new", bytes: 5, metadata, version: 1 });
    expect(results[1]).to.include({ path: "all/moved" });
    expect(results[2]).to.include({ path: "all/copied" });
    expect(results[3]).to.include({ path: "all/gone" });
    expect(results[4]).to.include({ path: "all/read" }).and.not.to.have.property("value");
    const paths = (await mustList(server(), "?prefix=all/")).map(({ path }) => path);
    expect(paths).to.deep.equal(["all/copied", "all/moved", "all/new", "all/read"]);
    expect(await mustGet(server(), "all/new")).to.deep.include({ value: '"é"\n', metadata });
  });

  const first = { put: "refused/new", value: "v" };
  const refused: readonly (readonly [string, BatchOperation, object])[] = [
    ["a missing secret", { delete: "none" }, { code: "NOT_FOUND", index: 1 }],
    ["an invalid path", { put: "b//c", value: "v" }, { code: "BAD_REQUEST", index: 1 }],
    ["a secret that exists", { put: "a", value: "v", ifAbsent: true }, { code: "PRECONDITION_FAILED", index: 1 }],
    ["another tag", { delete: "a", ifMatch: "AAAAAAAAAAAAAAAA" }, { code: "PRECONDITION_FAILED", index: 1 }],
    ["a target that exists", { move: "a", to: "é", ifAbsent: true }, { code: "PRECONDITION_FAILED", index: 1 }],
    ["a path that is changed twice", { delete: "refused/new" }, { code: "BAD_REQUEST", index: 1 }],
    ["a lone surrogate", { put: "b", value: "\ud800" }, { code: "BAD_REQUEST", index: undefined }],
  ];
  for (const [what, operation, error] of refused) {
    it(`batch changes nothing for ${what}`, async () => {
      await mustFail(client().batch([first, operation]), error);
      expect(await client().getOrUndefined("refused/new")).to.equal(undefined);
      expect(await mustGet(server(), "a")).to.include({ version: 1 });
    });
  }

  it("batch of gets alone returns why one of them is refused", async () => {
    const [found, missing, changed] = await client().batch([
      { get: "a" },
      { get: "none" },
      { get: "a", ifMatch: "AAAA" },
    ]);
    expect(found).to.include({ path: "a" });
    expect(missing).to.include({ code: "NOT_FOUND" });
    expect(changed).to.include({ code: "PRECONDITION_FAILED" });
  });
});
