/** Earlier versions of a secret: what is kept, listed, opened and removed, and what damage to them does. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { passphrase, shareTestServer, startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  type Json,
  mustGet,
  mustInit,
  mustPut,
  mustRefuse,
  mustSucceed,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { blobFile, damage, flipped } from "../support/damage.js";
import { FakeClock } from "../support/manual-clock.js";
import { misreadingFiles } from "../support/misreading-files.js";

const target = (path: string) => `/v1/versions/${encodeURIComponent(path)}`;

async function mustListVersions(server: TestServer, path: string): Promise<Json[]> {
  return mustSucceed(await send(server, { path: target(path) }))["versions"] as Json[];
}

async function listVersionNumbers(server: TestServer, path: string): Promise<unknown[]> {
  return (await mustListVersions(server, path)).map(({ version }) => version);
}

function readVersion(server: TestServer, path: string, version: number | string) {
  return send(server, { path: `${target(path)}?version=${version}` });
}

function undo(server: TestServer, path: string, version: unknown) {
  return send(server, { method: "POST", path: target(path), body: { version } });
}

function prune(server: TestServer, path: string) {
  return send(server, { method: "DELETE", path: target(path) });
}

async function putAll(server: TestServer, path: string, values: readonly string[]): Promise<void> {
  for (const value of values) await mustPut(server, path, value);
}

describe("histories of secrets", () => {
  const clock = new FakeClock();
  const server = shareTestServer({ ...uncached, clock, idleTimeoutMs: 0 }, mustInit);

  it("a history lists each version's own metadata, etag and times, newest first, without values", async () => {
    const times: string[] = [];
    const tags: unknown[] = [];
    for (const description of ["one", "two", "three"]) {
      clock.advance(1_000);
      times.push(new Date(clock.now()).toISOString());
      tags.push((await mustPut(server(), "all", { value: `value ${description}`, description }))["etag"]);
    }
    const entry = (n: number, description: string) => ({
      metadata: { description },
      createdAt: times[0],
      updatedAt: times[n - 1],
      version: n,
      etag: tags[n - 1],
    });
    expect(mustSucceed(await send(server(), { path: target("all") }))).to.deep.equal({
      path: "all",
      versions: [entry(3, "three"), entry(2, "two"), entry(1, "one")],
    });
    for (const [n, description] of [...["one", "two", "three"].entries()].map(([i, text]) => [i + 1, text] as const)) {
      const read = mustSucceed(await readVersion(server(), "all", n));
      expect(read).to.deep.equal({ path: "all", value: `value ${description}`, ...entry(n, description) });
    }
    expect(mustSucceed(await readVersion(server(), "all", 3))).to.deep.equal(await mustGet(server(), "all"));
  });

  it("a put of the same value and metadata adds no version, and renews the time and the etag", async () => {
    const body = { value: "v", type: "password", description: "d" };
    await mustPut(server(), "same", "first");
    const before = await mustPut(server(), "same", body);
    clock.advance(1_000);
    const after = await mustPut(server(), "same", body);
    expect(after["version"]).to.equal(2);
    expect(after["etag"]).not.to.equal(before["etag"]);
    expect((await mustGet(server(), "same"))["updatedAt"]).to.equal(new Date(clock.now()).toISOString());
    expect(await listVersionNumbers(server(), "same")).to.deep.equal([2, 1]);
    await mustPut(server(), "same", { ...body, description: "another" });
    expect(await listVersionNumbers(server(), "same")).to.deep.equal([3, 2, 1]);
  });

  it("an undo makes the value and metadata of a version the newest, and keeps createdAt", async () => {
    await mustPut(server(), "undo", { value: "päss\n", type: "password" });
    await mustPut(server(), "undo", { value: "new", description: "d" });
    const { createdAt } = await mustGet(server(), "undo");
    const metadata = { type: "password" };
    const answer = mustSucceed(await undo(server(), "undo", 1));
    expect(answer).to.deep.include({ ok: true, path: "undo", bytes: 6, metadata, version: 3 });
    const read = await mustGet(server(), "undo");
    expect(read).to.deep.include({ value: "päss\n", metadata, createdAt, version: 3, etag: answer["etag"] });
    expect(mustSucceed(await readVersion(server(), "undo", 2))["value"]).to.equal("new");
    expect(mustSucceed(await undo(server(), "undo", 3))["version"], "the newest itself").to.equal(3);
  });

  it("a prune removes the earlier versions from the file and keeps the current one as it is", async () => {
    await putAll(server(), "pruned", ["one", "two", "three"]);
    const before = await mustGet(server(), "pruned");
    const { length } = readFileSync(blobFile(server(), "pruned"));
    expect(mustSucceed(await prune(server(), "pruned"))).to.deep.equal({
      ok: true,
      path: "pruned",
      message: "2 earlier versions are deleted",
    });
    expect(readFileSync(blobFile(server(), "pruned")).length).to.be.below(length / 2);
    expect(await mustGet(server(), "pruned")).to.deep.equal(before);
    expect(await listVersionNumbers(server(), "pruned")).to.deep.equal([3]);
    expect(mustSucceed(await prune(server(), "pruned"))["message"]).to.match(/^0 /);
    expect((await mustPut(server(), "pruned", "four"))["version"]).to.equal(4);
  });

  it("a delete removes the history: the next secret at the path has the version 1 and no past", async () => {
    await putAll(server(), "deleted", ["one", "two"]);
    mustSucceed(await send(server(), { method: "DELETE", path: secretTarget("deleted") }));
    expect((await mustPut(server(), "deleted", "new"))["version"]).to.equal(1);
    expect(await listVersionNumbers(server(), "deleted")).to.deep.equal([1]);
  });

  it("a missing secret or version is 404", async () => {
    await mustPut(server(), "one", "v");
    for (const path of ["missing", "one"]) {
      mustRefuse(await readVersion(server(), path, 2), 404, "NOT_FOUND");
      mustRefuse(await undo(server(), path, 2), 404, "NOT_FOUND");
    }
    mustRefuse(await send(server(), { path: target("missing") }), 404, "NOT_FOUND");
    mustRefuse(await prune(server(), "missing"), 404, "NOT_FOUND");
  });

  for (const version of ["0", "-1", "1.0", "one", "", "1000000000000000", "1&version=2"]) {
    it(`the version ${JSON.stringify(version)} in the query is 400`, async () => {
      mustRefuse(await readVersion(server(), "one", version), 400, "BAD_REQUEST");
    });
  }

  for (const version of [0, -1, 1.5, "1", null, true, 1e15, undefined]) {
    it(`the version ${JSON.stringify(version)} in the body is 400`, async () => {
      mustRefuse(await undo(server(), "one", version), 400, "BAD_REQUEST");
    });
  }

  it("a locked vault refuses all requests for versions", async () => {
    const locked = await startTestServer();
    mustRefuse(await send(locked, { path: target("a") }), 403, "VAULT_LOCKED");
    mustRefuse(await undo(locked, "a", "malformed"), 403, "VAULT_LOCKED");
    mustRefuse(await prune(locked, ".."), 403, "VAULT_LOCKED");
  });
});

describe("the settings of the history", () => {
  it("--keep-versions bounds the number of earlier versions", async () => {
    const server = await startTestServer({ keepVersions: 2 });
    await mustInit(server);
    await putAll(server, "a", ["1", "2", "3", "4"]);
    expect(await listVersionNumbers(server, "a")).to.deep.equal([4, 3, 2]);
  });

  it("--keep-versions 0 keeps none, drops those that were kept, and still counts versions", async () => {
    const first = await startTestServer();
    await mustInit(first);
    await putAll(first, "a", ["1", "2"]);
    await first.stop();
    const server = await startTestServer({ home: first.home, keepVersions: 0 });
    mustSucceed(await send(server, { method: "POST", path: "/v1/unlock", body: { passphrase } }));
    expect(await listVersionNumbers(server, "a")).to.deep.equal([2, 1]);
    expect((await mustPut(server, "a", "3"))["version"]).to.equal(3);
    expect(await listVersionNumbers(server, "a")).to.deep.equal([3]);
  });

  it("--keep-version-bytes bounds the size of all but the newest earlier version", async () => {
    const server = await startTestServer({ keepVersionBytes: 1_000 });
    await mustInit(server);
    await putAll(server, "large", ["1", "x".repeat(2_000), "3"]);
    expect(await listVersionNumbers(server, "large"), "the newest, whatever its size").to.deep.equal([3, 2]);
    await mustPut(server, "large", "4");
    expect(await listVersionNumbers(server, "large"), "none behind one that does not fit").to.deep.equal([4, 3]);
    await putAll(server, "small", ["1", "2", "3", "4", "5", "6", "7", "8"]);
    expect((await listVersionNumbers(server, "small")).length).to.be.within(4, 6);
  });
});

describe("damaged earlier versions", () => {
  const server = shareTestServer(uncached, mustInit);

  /** The first of the values is version 1. */
  async function withPast(path: string, ...values: readonly string[]) {
    await putAll(server(), path, values);
    const file = blobFile(server(), path);
    return { file, blob: readFileSync(file) };
  }

  it("a version with a flipped bit is refused, while the current and the other versions stay readable", async () => {
    const { file, blob } = await withPast("flipped", "aa", "bb", "cc");
    damage(file, flipped(blob, 8 * (blob.length - 1)));
    expect((await mustGet(server(), "flipped"))["value"]).to.equal("cc");
    expect(mustSucceed(await readVersion(server(), "flipped", 2))["value"]).to.equal("bb");
    mustRefuse(await readVersion(server(), "flipped", 1), 500, "INTEGRITY");
    mustRefuse(await undo(server(), "flipped", 1), 500, "INTEGRITY");
    expect((await mustPut(server(), "flipped", "dd"))["version"]).to.equal(4);
    expect(mustSucceed(await readVersion(server(), "flipped", 3))["value"]).to.equal("cc");
  });

  it("damaged metadata is counted by the list, and a version that it may belong to is not said to be missing", async () => {
    const { file, blob } = await withPast("metadata", "aa", "bb");
    damage(file, flipped(blob, 8 * (blob.length - 60))); // in the tag of the metadata of version 1
    expect(mustSucceed(await send(server(), { path: target("metadata") }))).to.deep.include({ damaged: 1 });
    expect(await listVersionNumbers(server(), "metadata")).to.deep.equal([2]);
    mustRefuse(await readVersion(server(), "metadata", 1), 500, "INTEGRITY");
    mustRefuse(await readVersion(server(), "metadata", 3), 404, "NOT_FOUND");
  });

  it("a get of a history with any damage returns the stored value or is refused, and a put still works", async function () {
    this.timeout(0);
    const { file, blob } = await withPast("any", "a", "b");
    const present = (blob.length + 5) / 2; // two versions of equal length behind magic and format version
    const damages: (readonly [string, Buffer])[] = [];
    for (let bit = 8 * present; bit < 8 * blob.length; bit += 5) damages.push([`bit ${bit}`, flipped(blob, bit)]);
    for (let length = present; length < blob.length; length += 3) {
      damages.push([`cut to ${length}`, Buffer.from(blob.subarray(0, length))]);
    }
    for (const [what, bytes] of damages) {
      damage(file, bytes);
      const [now, then] = [await send(server(), { path: secretTarget("any") }), await readVersion(server(), "any", 1)];
      if (now.status === 200) expect(now.json["value"], what).to.equal("b");
      else mustRefuse(now, 500, "INTEGRITY");
      expect(then.status, what).to.be.oneOf([404, 500]);
      expect((await mustPut(server(), "any", "c"))["version"], what).to.equal(3);
      expect((await mustGet(server(), "any"))["value"], what).to.equal("c");
    }
  });

  it("a damaged current version stays as it is, and the earlier ones survive an undo", async () => {
    await putAll(server(), "present", ["aa", "bb"]);
    const file = blobFile(server(), "present");
    const blob = readFileSync(file);
    damage(file, flipped(blob, 8 * (blob.length / 2 + 1))); // near the end of the first of two versions of equal length
    mustRefuse(await send(server(), { path: secretTarget("present") }), 500, "INTEGRITY");
    expect(mustSucceed(await undo(server(), "present", 1))["version"]).to.equal(3);
    expect((await mustGet(server(), "present"))["value"]).to.equal("aa");
    expect(await listVersionNumbers(server(), "present")).to.deep.equal([3, 2, 1]);
    mustRefuse(await readVersion(server(), "present", 2), 500, "INTEGRITY");
  });
});

describe("misread versions", () => {
  const { files, misreadOnce, misread } = misreadingFiles();
  const server = shareTestServer({ ...uncached, files }, mustInit);
  const changes: Readonly<Record<string, (path: string) => Promise<ApiResponse>>> = {
    put: (path) => send(server(), { method: "PUT", path: secretTarget(path), body: { value: "next" } }),
    "put of a batch": (path) => {
      const body = { operations: [{ put: path, value: "next" }] };
      return send(server(), { method: "POST", path: "/v1/batch", body });
    },
    undo: (path) => undo(server(), path, 1),
    "change of metadata": (path) => {
      return send(server(), { method: "PATCH", path: `/v1/metadata/${path}`, body: { description: "new" } });
    },
  };

  for (const [what, change] of Object.entries(changes)) {
    for (const part of ["value", "metadata"]) {
      it(`a version stays after a ${what} whose first read had a wrong bit in its ${part}`, async () => {
        const path = `${what.replaceAll(" ", "-")}-${part}`;
        await putAll(server(), path, ["first", "other"]);
        const file = blobFile(server(), path);
        const behind = (readFileSync(file).length - 5) / 2; // bytes of the earlier one, of equal length
        misreadOnce(file, part === "value" ? behind : behind + 60);
        const before = misread();
        mustSucceed(await change(path));
        expect(misread()).to.equal(before + 1);
        expect(mustSucceed(await readVersion(server(), path, 2))["value"]).to.equal("other");
        expect(mustSucceed(await readVersion(server(), path, 1))["value"]).to.equal("first");
      });
    }
  }

  it("a misread byte is not written when earlier versions are pruned", async () => {
    await putAll(server(), "pruned", ["first", "other"]);
    const file = blobFile(server(), "pruned");
    misreadOnce(file, (readFileSync(file).length - 5) / 2);
    mustSucceed(await prune(server(), "pruned"));
    expect((await mustGet(server(), "pruned"))["value"]).to.equal("other");
  });
});
