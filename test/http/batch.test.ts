/** Batches (docs/reference/http-api.md, Batches): gets each for itself, changes all or nothing. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { shareTestServer, startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  type Json,
  mustCreateToken,
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustSucceed,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { blobFile, damage, flipped } from "../support/damage.js";
import { FakeClock } from "../support/manual-clock.js";

type Operation = Readonly<Record<string, unknown>>;

function batch(server: TestServer, operations: readonly Operation[]): Promise<ApiResponse> {
  return send(server, { method: "POST", path: "/v1/batch", body: { operations } });
}

async function mustBatch(server: TestServer, operations: readonly Operation[]): Promise<Json[]> {
  const { ok, results } = mustSucceed(await batch(server, operations));
  expect(ok).to.equal(true);
  expect(results).to.have.lengthOf(operations.length);
  return results as Json[];
}

async function listVersions(server: TestServer, path: string): Promise<Json[]> {
  return mustSucceed(await send(server, { path: `/v1/versions/${path}` }))["versions"] as Json[];
}

for (const [memory, options] of [
  ["with a cache", {}],
  ["without a cache", uncached],
] as const) {
  describe(`a batch, ${memory}`, () => {
    const clock = new FakeClock();
    const server = shareTestServer({ ...options, clock, idleTimeoutMs: 0 }, mustInit);
    let folders = 0;

    /** Returns a folder of its own for each test, with the secrets a and b. */
    async function folder(): Promise<string> {
      const name = `folder-${folders++}`;
      for (const path of ["a", "b"]) {
        await mustPut(server(), `${name}/${path}`, `first ${path}`);
        clock.advance(1_000);
        await mustPut(server(), `${name}/${path}`, { value: `value ${path}`, type: "password", description: path });
      }
      clock.advance(1_000);
      return name;
    }

    async function readFolder(name: string): Promise<unknown[]> {
      const entries = await mustList(server(), `?prefix=${name}/`);
      return Promise.all(entries.map(({ path }) => mustGet(server(), path)));
    }

    it("a batch of gets returns each secret as a get does, in order, and a missing one as a refusal", async () => {
      const name = await folder();
      const [b, missing, a, again] = await mustBatch(server(), [
        { get: `${name}/b` },
        { get: `${name}/missing` },
        { get: `${name}/a` },
        { get: `${name}/b` },
      ]);
      expect(a).to.deep.equal(await mustGet(server(), `${name}/a`));
      expect(b).to.deep.equal(await mustGet(server(), `${name}/b`));
      expect(again).to.deep.equal(b);
      expect(missing).to.deep.equal({ code: "NOT_FOUND", error: `there is no secret at ${name}/missing` });
    });

    it("a batch of gets refuses an invalid path, a failed condition and a damaged secret each for itself", async () => {
      const name = await folder();
      const { etag } = await mustGet(server(), `${name}/a`);
      await mustPut(server(), `${name}/damaged`, "v");
      const file = blobFile(server(), `${name}/damaged`);
      const blob = readFileSync(file);
      damage(file, flipped(blob, 8 * (blob.length - 1)));
      const results = await mustBatch(server(), [
        { get: `${name}//a` },
        { get: `${name}/a`, ifMatch: etag },
        { get: `${name}/a`, ifMatch: "*" },
        { get: `${name}/a`, ifMatch: "another" },
        { get: `${name}/missing`, ifMatch: "*" },
        { get: `${name}/a`, ifNoneMatch: "*" },
        { get: `${name}/damaged` },
      ]);
      expect(results.map(({ code, value }) => code ?? value)).to.deep.equal([
        "BAD_REQUEST",
        "value a",
        "value a",
        "PRECONDITION_FAILED",
        "PRECONDITION_FAILED",
        "PRECONDITION_FAILED",
        options === uncached ? "INTEGRITY" : "v", // from memory
      ]);
    });

    it("an empty batch returns no results", async () => {
      expect(await mustBatch(server(), [])).to.deep.equal([]);
    });

    it("a put in a batch keeps the history, makes a version and responds as a single put does", async () => {
      const name = await folder();
      const body = { value: "v \u{1f511}\n", type: "api-key", description: "d" };
      const [changed, created, same] = await mustBatch(server(), [
        { put: `${name}/a`, ...body },
        { put: `${name}/new`, value: "" },
        { put: `${name}/b`, value: "value b", type: "password", description: "b" },
      ]);
      const { path, value, metadata, version, etag } = await mustGet(server(), `${name}/a`);
      expect(value).to.equal(body.value);
      expect(changed).to.deep.equal({ ok: true, path, bytes: 7, metadata, version, etag });
      expect([version, created?.["version"], same?.["version"]]).to.deep.equal([3, 1, 2]);
      expect((await listVersions(server(), path as string)).map((one) => one["version"])).to.deep.equal([3, 2, 1]);
      expect(created).to.include({ path: `${name}/new`, bytes: 0 });
    });

    it("deletes secrets in a batch, and says so", async () => {
      const name = await folder();
      const [deleted] = await mustBatch(server(), [{ delete: `${name}/a` }, { delete: `${name}/b`, ifMatch: "*" }]);
      expect(deleted).to.deep.equal({ ok: true, path: `${name}/a`, message: "the secret is deleted" });
      expect(await mustList(server(), `?prefix=${name}/`)).to.deep.equal([]);
    });

    it("moves a secret with its value, metadata, times, version and history", async () => {
      const name = await folder();
      const { path: _, etag, ...before } = await mustGet(server(), `${name}/a`);
      const versions = await listVersions(server(), `${name}/a`);
      clock.advance(1_000);
      const [moved] = await mustBatch(server(), [{ move: `${name}/a`, to: `${name}/deep/c` }]);
      const { path, etag: newTag, ...after } = await mustGet(server(), `${name}/deep/c`);
      expect(after).to.deep.equal(before);
      expect(newTag).not.to.equal(etag);
      const { metadata, version } = after;
      expect(moved).to.deep.equal({ ok: true, path, bytes: 7, metadata, version, etag: newTag });
      mustRefuse(await send(server(), { path: secretTarget(`${name}/a`) }), 404, "NOT_FOUND");
      const untagged = (all: readonly Json[]) => all.map(({ etag: __, ...rest }) => rest);
      expect(untagged(await listVersions(server(), `${name}/deep/c`))).to.deep.equal(untagged(versions));
      const first = await send(server(), { path: `/v1/versions/${name}/deep/c?version=1` });
      expect(mustSucceed(first)["value"]).to.equal("first a");
    });

    it("copies the current version as a new secret, without its history", async () => {
      const name = await folder();
      const before = await mustGet(server(), `${name}/a`);
      clock.advance(1_000);
      const [copied] = await mustBatch(server(), [{ copy: `${name}/a`, to: `${name}/c` }]);
      const now = new Date(clock.now()).toISOString();
      const copy = await mustGet(server(), `${name}/c`);
      const { metadata, value } = before;
      const state = { version: 1, etag: copied?.["etag"] };
      expect(copy).to.deep.equal({ path: `${name}/c`, value, metadata, createdAt: now, updatedAt: now, ...state });
      expect(copied).to.deep.equal({ ok: true, path: `${name}/c`, bytes: 7, metadata, ...state });
      expect(await listVersions(server(), `${name}/c`)).to.have.lengthOf(1);
      expect(await mustGet(server(), `${name}/a`)).to.deep.equal(before);
    });

    for (const kind of ["move", "copy"]) {
      it(`a ${kind} replaces a secret at its target with its history, unless ifNoneMatch forbids it`, async () => {
        const name = await folder();
        const before = await readFolder(name);
        const refused = await batch(server(), [{ [kind]: `${name}/a`, to: `${name}/b`, ifNoneMatch: "*" }]);
        mustRefuse(refused, 412, "PRECONDITION_FAILED");
        expect(await readFolder(name)).to.deep.equal(before);
        await mustBatch(server(), [{ [kind]: `${name}/a`, to: `${name}/b` }]);
        expect((await mustGet(server(), `${name}/b`))["value"]).to.equal("value a");
        expect(await listVersions(server(), `${name}/b`)).to.have.lengthOf(kind === "move" ? 2 : 1);
      });
    }

    it("a batch reads, copies and moves the secrets as they were before it", async () => {
      const name = await folder();
      const [read] = await mustBatch(server(), [
        { get: `${name}/a` },
        { put: `${name}/a`, value: "new" },
        { copy: `${name}/a`, to: `${name}/old` },
        { move: `${name}/b`, to: `${name}/c` },
        { get: `${name}/b` },
      ]);
      expect(read?.["value"]).to.equal("value a");
      const values = (await readFolder(name)).map((secret) => (secret as Json)["value"]);
      expect(values).to.deep.equal(["new", "value b", "value a"]);
    });

    const refusals: readonly (readonly [string, (name: string, tag: string) => Operation, number, string])[] = [
      ["a get of a missing secret", (name) => ({ get: `${name}/missing` }), 404, "NOT_FOUND"],
      ["a delete of a missing secret", (name) => ({ delete: `${name}/missing` }), 404, "NOT_FOUND"],
      ["a move of a missing secret to the trash", (name) => ({ trash: `${name}/missing` }), 404, "NOT_FOUND"],
      ["a flag that is none", (name) => ({ move: `${name}/b`, to: "x", trashReplaced: 1 }), 400, "BAD_REQUEST"],
      ["a move of a missing secret", (name) => ({ move: `${name}/missing`, to: `${name}/x` }), 404, "NOT_FOUND"],
      ["a copy of a missing secret", (name) => ({ copy: `${name}/missing`, to: `${name}/x` }), 404, "NOT_FOUND"],
      ["a put if absent", (name) => ({ put: `${name}/b`, value: "w", ifNoneMatch: "*" }), 412, "PRECONDITION_FAILED"],
      ...["get", "put", "delete", "trash", "move", "copy"].flatMap((kind) => {
        const operation = (path: string, ifMatch: string) => ({ [kind]: path, to: `${path}2`, value: "w", ifMatch });
        const code = "PRECONDITION_FAILED";
        return [
          [`a ${kind} with another tag`, (name: string) => operation(`${name}/b`, "another"), 412, code],
          [`a ${kind} with a tag of a missing secret`, (name: string) => operation(`${name}/x`, "*"), 412, code],
        ] as const;
      }),
      ["an invalid path", (name) => ({ put: `${name}/../x`, value: "w" }), 400, "BAD_REQUEST"],
      ["an invalid target", (name) => ({ move: `${name}/b`, to: "/x" }), 400, "BAD_REQUEST"],
      ["a second change of a path", (name) => ({ delete: `${name}/new` }), 400, "BAD_REQUEST"],
      ["a copy to where another change is", (name) => ({ copy: `${name}/b`, to: `${name}/new` }), 400, "BAD_REQUEST"],
      ["a copy to itself", (name) => ({ copy: `${name}/b`, to: `${name}/b` }), 400, "BAD_REQUEST"],
      ["a move to itself", (name) => ({ move: `${name}/b`, to: `${name}/b` }), 400, "BAD_REQUEST"],
      ["an unknown operation", (name) => ({ take: `${name}/b` }), 400, "BAD_REQUEST"],
      ["two operations in one", (name) => ({ get: `${name}/a`, delete: `${name}/b` }), 400, "BAD_REQUEST"],
      ["a put without a value", (name) => ({ put: `${name}/b` }), 400, "BAD_REQUEST"],
      ["a put of a type that is unknown", (name) => ({ put: `${name}/b`, value: "", type: "key" }), 400, "BAD_REQUEST"],
      ["a move without a target", (name) => ({ move: `${name}/b` }), 400, "BAD_REQUEST"],
      ["a condition that is no tag", (name) => ({ delete: `${name}/b`, ifMatch: 1 }), 400, "BAD_REQUEST"],
      ["another ifNoneMatch", (name, tag) => ({ delete: `${name}/b`, ifNoneMatch: tag }), 400, "BAD_REQUEST"],
    ];
    for (const [reason, operation, status, code] of options === uncached ? refusals : []) {
      it(`a batch with ${reason} is refused as a whole, with the operation's index`, async () => {
        const name = await folder();
        const before = await readFolder(name);
        const tag = String((await mustGet(server(), `${name}/b`))["etag"]);
        const answer = await batch(server(), [
          { get: `${name}/a` },
          { put: `${name}/new`, value: "v" },
          { delete: `${name}/a` },
          operation(name, tag),
        ]);
        mustRefuse(answer, status, code);
        expect(answer.json["index"]).to.equal(3);
        expect(await readFolder(name)).to.deep.equal(before);
      });
    }

    it("a batch with a damaged secret is refused as a whole, with its index, unless it is cached", async () => {
      const name = await folder();
      const file = blobFile(server(), `${name}/b`);
      const blob = readFileSync(file);
      damage(file, flipped(blob, 8 * (blob.length - 1))); // in the oldest version
      const answer = await batch(server(), [{ delete: `${name}/a` }, { move: `${name}/b`, to: `${name}/c` }]);
      if (options === uncached) {
        mustRefuse(answer, 500, "INTEGRITY");
        expect(answer.json).to.include({ index: 1 }).and.to.have.property("requestId");
        expect(await mustList(server(), `?prefix=${name}/`)).to.have.lengthOf(2);
      } else mustSucceed(answer); // from memory
    });

    it("a batch carries out operations whose conditions hold", async () => {
      const name = await folder();
      const { etag } = await mustGet(server(), `${name}/a`);
      await mustBatch(server(), [
        { put: `${name}/a`, value: "w", ifMatch: etag },
        { put: `${name}/new`, value: "w", ifNoneMatch: "*" },
        { move: `${name}/b`, to: `${name}/c`, ifMatch: "*", ifNoneMatch: "*" },
      ]);
      const paths = (await mustList(server(), `?prefix=${name}/`)).map(({ path }) => path.slice(name.length + 1));
      expect(paths).to.deep.equal(["a", "c", "new"]);
    });

    it("paths in a batch are not percent-decoded, and are normalized to NFC", async () => {
      const name = await folder();
      await mustBatch(server(), [{ put: `${name}/%41 cafe\u0301`, value: "v" }]);
      expect((await mustGet(server(), `${name}/%41 caf\u00e9`))["value"]).to.equal("v");
    });

    it("a batch takes the last of operations given twice, and ignores unknown fields", async () => {
      const name = await folder();
      const body = `{"operations":[{"delete":"${name}/a"}],"x":[1,{"operations":[]}],"operations":[{"get":"${name}/b","value":1}]}`;
      const { results } = mustSucceed(await send(server(), { method: "POST", path: "/v1/batch", body }));
      expect((results as Json[]).map(({ value }) => value)).to.deep.equal(["value b"]);
      expect(await mustList(server(), `?prefix=${name}/`)).to.have.lengthOf(2);
    });
  });
}

describe("unneeded values in a batch", () => {
  const server = shareTestServer({}, mustInit);
  for (const filler of [
    "[".repeat(70_000) + "]".repeat(70_000),
    `[0${",0".repeat(70_000)}]`,
    `{"a":1${',"a":1'.repeat(70_000)}}`,
  ])
    it(`a batch with far more values than it needs is refused before they are read: ${filler.slice(0, 8)}…`, async () => {
      const body = `{"other":${filler},"operations":[]}`;
      mustRefuse(await send(server(), { method: "POST", path: "/v1/batch", body }), 400, "BAD_REQUEST");
    });
});

describe("the limits of a batch", () => {
  const maxBatchBytes = 300_000;
  const server = shareTestServer({ maxBatchBytes, maxValueBytes: 50_000 }, mustInit);
  const post = (body: string) => send(server(), { method: "POST", path: "/v1/batch", body });

  it("a batch of 1000 operations is carried out, and one of 1001 is refused", async () => {
    const put = (i: number) => ({ put: `many/${i}`, value: "v" });
    const refused = await batch(
      server(),
      Array.from({ length: 1001 }, (_, i) => put(i)),
    );
    mustRefuse(refused, 400, "BAD_REQUEST");
    expect(refused.json["error"]).to.contain("1000");
    await mustBatch(
      server(),
      Array.from({ length: 1000 }, (_, i) => put(i)),
    );
    const gets = Array.from({ length: 1000 }, (_, i) => ({ get: `many/${999 - i}` }));
    const results = await mustBatch(server(), gets);
    expect(results.map(({ path }) => path)).to.deep.equal(gets.map(({ get }) => get));
  });

  it("a batch whose body exceeds its limit of bytes is refused", async () => {
    const body = '{"operations":[]}';
    mustSucceed(await post(body.padEnd(maxBatchBytes)));
    const refused = await post(body.padEnd(maxBatchBytes + 1));
    mustRefuse(refused, 400, "BAD_REQUEST");
    expect(refused.json["error"]).to.contain(String(maxBatchBytes));
  });

  it("a token that cannot put sends up to 2 MiB, enough for 1000 gets of the longest paths", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "reader", can: ["get", "delete"] });
    const segment = "a".repeat(102);
    const paths = Array.from({ length: 1000 }, (_, i) => `${`${segment}/`.repeat(9)}${segment.slice(10)}${10_000 + i}`);
    expect(paths[0]).to.have.lengthOf(1024);
    const body = JSON.stringify({ operations: paths.map((path) => ({ get: path, ifNoneMatch: "*" })) });
    const post = (length: number) =>
      send(server, { method: "POST", path: "/v1/batch", token, body: body.padEnd(length) });
    mustSucceed(await post(2 * 2 ** 20));
    const refused = await post(2 * 2 ** 20 + 1);
    mustRefuse(refused, 400, "BAD_REQUEST");
    expect(refused.json["error"]).to.contain(String(2 * 2 ** 20));
    mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: body.padEnd(2 * 2 ** 20 + 1) }));
  });

  it("a batch refuses gets once the secrets that it returns exceed its limit of bytes", async () => {
    for (let i = 0; i < 40; i += 5) {
      const values = Array.from({ length: 5 }, (_, n) => ({ put: `large/${i + n}`, value: "v".repeat(40_000) }));
      await mustBatch(server(), values);
    }
    const gets = Array.from({ length: 40 }, (_, i) => ({ get: `large/${i}` }));
    const results = await mustBatch(server(), gets);
    const refused = results.findIndex(({ code }) => code === "BAD_REQUEST");
    expect(refused).to.be.within(1, 39);
    expect(results[refused]?.["error"]).to.contain(String(maxBatchBytes));
    const answer = await batch(server(), [...gets, { put: "large/new", value: "v" }]);
    mustRefuse(answer, 400, "BAD_REQUEST");
    expect(answer.json["index"]).to.equal(refused);
  });

  it("a batch limits the bytes that it returns also among its first 32 gets, which are read together", async () => {
    await mustPut(server(), "escaped", "\u0001".repeat(50_000)); // 300,000 bytes of JSON
    const gets = Array.from({ length: 32 }, () => ({ get: "escaped" }));
    const results = await mustBatch(server(), gets);
    expect(results.map(({ code }) => code ?? "read")).to.deep.equal(["read", ...Array(31).fill("BAD_REQUEST")]);
    const answer = await batch(server(), [...gets, { put: "large/new", value: "v" }]);
    mustRefuse(answer, 400, "BAD_REQUEST");
    expect(answer.json["index"]).to.equal(1);
  });

  for (const body of [
    "",
    "[]",
    "{}",
    '{"operations":{}}',
    '{"operations":1}',
    '{"operations":[]',
    '{"operations":[]}x',
  ]) {
    it(`a batch of the body ${JSON.stringify(body)} is refused as a whole, without an index`, async () => {
      const answer = await post(body);
      mustRefuse(answer, 400, "BAD_REQUEST");
      expect(answer.json).not.to.have.property("index");
    });
  }

  for (const element of ["1", "null", "[]", '"get"', "{}", '{"get":1}', '{"get":""}', '{"get":"\\ud800"}']) {
    it(`a batch with the operation ${element} is refused, with the operation's index`, async () => {
      const answer = await post(`{"operations":[{"get":"a"},${element}]}`);
      mustRefuse(answer, 400, "BAD_REQUEST");
      expect(answer.json["index"]).to.equal(1);
    });
  }
});

describe("concurrent batches", () => {
  const server = shareTestServer({}, mustInit);

  it("concurrent batches of the same paths in any order do not deadlock", async () => {
    const paths = Array.from({ length: 20 }, (_, i) => `order/${i}`);
    const writers = Array.from({ length: 16 }, (_, writer) => {
      const order = paths.map((_, i) => paths[(i * 7 + writer * 3) % 20]);
      return mustBatch(
        server(),
        order.map((put) => ({ put, value: String(writer) })),
      );
    });
    await Promise.all([...writers, ...paths.map((path) => mustPut(server(), path, "single"))]);
    const values = (
      await mustBatch(
        server(),
        paths.map((get) => ({ get })),
      )
    ).map(({ value }) => value);
    expect(values).to.have.lengthOf(20);
  });

  it("one of concurrent batches with the same etags succeeds, and a reader sees no mixture", async () => {
    await mustBatch(server(), [
      { put: "pair/a", value: "start" },
      { put: "pair/b", value: "start" },
    ]);
    for (let round = 0; round < 5; round++) {
      const pair = await mustBatch(server(), [
        { get: "pair/a" },
        { get: "pair/b" },
        { put: "pair/reader", value: "r" },
      ]);
      expect(pair[0]?.["value"]).to.equal(pair[1]?.["value"]);
      const [a, b] = pair.map(({ etag }) => etag);
      const writers = Array.from({ length: 8 }, (_, writer) =>
        batch(server(), [
          { put: "pair/b", value: `${round} ${writer}`, ifMatch: b },
          { put: "pair/a", value: `${round} ${writer}`, ifMatch: a },
        ]),
      );
      const statuses = (await Promise.all(writers)).map(({ status }) => status).sort();
      expect(statuses).to.deep.equal([200, ...Array(7).fill(412)]);
    }
  });

  it("a batch is refused while the vault is locked, whatever its body", async () => {
    const locked = await startTestServer();
    await mustInit(locked);
    await mustLock(locked);
    mustRefuse(await batch(locked, [{ get: "a" }]), 403, "VAULT_LOCKED");
    mustRefuse(await send(locked, { method: "POST", path: "/v1/batch", body: "{" }), 403, "VAULT_LOCKED");
  });
});
