/** Conditions of the client's changes, and the put that keeps type and description while others write. */
import { expect } from "chai";
import { type PutOptions, StrongroomError } from "strongroom/client";
import { shareTestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { makeClient } from "../support/library.js";

describe("the client's changes", () => {
  const server = shareTestServer({ keepVersions: 100 }, mustInit);
  const client = () => makeClient(server());
  const stored = { value: "old", type: "password", description: "d" } as const;

  const mustFail = async (work: Promise<unknown>, code: string) => {
    const error = await work.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(StrongroomError).and.to.include({ code });
  };

  const kept: readonly (readonly [string, PutOptions, object])[] = [
    ["keeps type and description", {}, { type: "password", description: "d" }],
    ["replaces a type that is given", { type: "other" }, { type: "other", description: "d" }],
    ["replaces a description that is given", { description: "e" }, { type: "password", description: "e" }],
    ["replaces both", { type: "other", description: "e" }, { type: "other", description: "e" }],
    ["drops a type for null", { type: null }, { description: "d" }],
    ["drops a description for null", { description: null }, { type: "password" }],
    ["keeps nothing with replaceMetadata", { replaceMetadata: true }, {}],
    ["keeps only what is given with replaceMetadata", { replaceMetadata: true, type: "other" }, { type: "other" }],
    ["keeps both under ifMatch *", { ifMatch: "*" }, { type: "password", description: "d" }],
  ];
  for (const [what, options, metadata] of kept) {
    it(`put ${what}`, async () => {
      await mustPut(server(), "kept/é", stored);
      await mustPut(server(), "kept/é-longer", { value: "v", type: "api-key" });
      expect((await client().put("kept/e\u0301", "new", options)).metadata).to.deep.equal(metadata);
      expect(await mustGet(server(), "kept/é")).to.deep.include({ value: "new", metadata });
    });
  }

  it("put to a free path stores only the given metadata, with and without ifAbsent", async () => {
    await mustPut(server(), "free/near", stored);
    expect((await client().put("free/n", "v", { ifAbsent: true, type: "other" })).metadata).to.deep.equal({
      type: "other",
    });
    expect((await client().put("free/m", "v")).metadata).to.deep.equal({});
  });

  it("put with ifAbsent creates only", async () => {
    const { version, etag } = await client().put("once", "v", { ifAbsent: true });
    expect(version).to.equal(1);
    await mustFail(client().put("once", "w", { ifAbsent: true }), "PRECONDITION_FAILED");
    expect(await mustGet(server(), "once")).to.include({ value: "v", etag });
  });

  it("put and get return the same version and etag", async () => {
    const { version, etag } = await client().put("tagged", "v");
    const secret = await client().get("tagged");
    expect(secret).to.include({ version, etag });
    expect(JSON.parse(JSON.stringify(secret))).to.include({ version, etag });
  });

  it("version returns the secret as it was, and NOT_FOUND for one that is not kept", async () => {
    for (const value of ["one", "two"]) await client().put("past/é", value);
    const first = await client().version("past/é", 1);
    expect(first.reveal()).to.equal("one");
    expect(first.version).to.equal(1);
    await mustFail(client().version("past/é", 3), "NOT_FOUND");
    await mustFail(client().version("", 1), "BAD_REQUEST");
  });

  const changes = {
    put: (path: string, ifMatch: string) => client().put(path, "new", { ifMatch }),
    "put without metadata": (path: string, ifMatch: string) =>
      client().put(path, "new", { ifMatch, replaceMetadata: true }),
    undo: (path: string, ifMatch: string) => client().undo(path, 1, { ifMatch }),
    prune: (path: string, ifMatch: string) => client().prune(path, { ifMatch }),
    delete: (path: string, ifMatch: string) => client().delete(path, { ifMatch }),
  };
  for (const [name, change] of Object.entries(changes)) {
    it(`${name} with ifMatch succeeds with the current etag only`, async () => {
      const path = `match/${name}`;
      const { etag: former } = await client().put(path, "one");
      const { etag } = await client().put(path, "two");
      await mustFail(change(path, former), "PRECONDITION_FAILED");
      expect((await mustGet(server(), path))["etag"]).to.equal(etag);
      expect(await change(path, etag)).to.include({ ok: true });
      if (name === "delete") await mustFail(change(path, "*"), "PRECONDITION_FAILED");
    });

    it(`${name} rejects an invalid etag`, async () => {
      for (const tag of ["", '"quoted"', "a\r\nb", "ä"]) await mustFail(change("match/x", tag), "BAD_REQUEST");
    });
  }

  const overtaken: readonly (readonly [string, PutOptions, object | null])[] = [
    ["without options", {}, stored],
    ["without a secret there", {}, null],
    ["with options that are undefined", { ifMatch: undefined, ifAbsent: undefined }, stored],
    ["with ifAbsent false, without a secret there", { ifAbsent: false }, null],
    ["with ifMatch *", { ifMatch: "*" }, stored],
  ];
  for (const [at, [name, options, before]] of overtaken.entries()) {
    it(`put ${name} keeps what another writer has set in between`, async () => {
      const path = `overtaken/${at}`;
      if (before !== null) await mustPut(server(), path, { ...before });
      const slow = client();
      const list = slow.list.bind(slow);
      let overtakes = true;
      slow.list = async (query) => {
        const found = await list(query);
        if (overtakes) await mustPut(server(), path, { value: "theirs", type: "api-key", description: "theirs" });
        overtakes = false;
        return found;
      };
      const { metadata } = await slow.put(path, "ours", options);
      expect(metadata).to.deep.equal({ type: "api-key", description: "theirs" });
    });
  }

  it("a put with ifMatch * creates nothing", async () => {
    await mustFail(client().put("missing", "v", { ifMatch: "*" }), "PRECONDITION_FAILED");
  });

  it("concurrent puts of many writers keep what each other has set", async () => {
    const path = "shared";
    await client().put(path, "0", { type: "other", description: "none" });
    const types = ["password", "api-key", "certificate", "oauth-token"] as const;
    const writes = Array.from({ length: 16 }, (_, i) => {
      const own = i % 2 === 0 ? { description: `by ${i}` } : { type: types[(i >> 1) % 4] };
      return client().put(path, `${i}`, own);
    });
    const versions = (await Promise.all(writes)).map(({ version }) => version);
    expect(versions.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 16 }, (_, i) => i + 2));
    const history = (await client().versions(path)).versions;
    for (const [at, { version, metadata }] of history.slice(0, -1).entries()) {
      const before = history[at + 1]?.metadata;
      const writer = Number((await client().version(path, version)).reveal());
      if (writer % 2 === 0) expect(metadata).to.deep.equal({ ...before, description: `by ${writer}` });
      else expect(metadata.description).to.equal(before?.description);
    }
  });
});
