/** Conditional requests (RFC 9110, section 13): tags, 304, 412, and exactly one success for each tag. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { shareTestServer, startTestServer, uncached } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustRefuse,
  mustSucceed,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { blobFile, damage, flipped } from "../support/damage.js";

type Headers = Readonly<Record<string, string>>;

/** Short in the normal suite; 10,000 in the long form. */
const rounds = Number(process.env["STRONGROOM_TAG_ROUNDS"] ?? 15);

describe("conditional requests", () => {
  const server = shareTestServer(uncached, mustInit);
  let paths = 0;
  const newPath = () => `conditions/${paths++}`;
  const put = (path: string, headers: Headers, body: object | string = { value: "v" }) =>
    send(server(), { method: "PUT", path: secretTarget(path), headers, body });
  const get = (path: string, headers: Headers) => send(server(), { path: secretTarget(path), headers });
  const remove = (path: string, headers: Headers) =>
    send(server(), { method: "DELETE", path: secretTarget(path), headers });
  const undo = (path: string, headers: Headers, version: unknown = 1) =>
    send(server(), { method: "POST", path: `/v1/versions/${path}`, headers, body: { version } });
  const changeMetadata = (path: string, headers: Headers) =>
    send(server(), { method: "PATCH", path: `/v1/metadata/${path}`, headers, body: { description: "d" } });
  const currentTag = async (path: string) => String((await mustGet(server(), path))["etag"]);

  async function stored(): Promise<{ readonly path: string; readonly tag: string }> {
    const path = newPath();
    return { path, tag: String((await mustPut(server(), path, "v"))["etag"]) };
  }

  async function mustBeUnchanged(path: string, tag: string): Promise<void> {
    expect(await currentTag(path)).to.equal(tag);
  }

  it("put, get and list return the same tag, and ETag has it in quotes", async () => {
    const path = newPath();
    const written = await put(path, {});
    const read = await get(path, {});
    const tag = String(mustSucceed(written)["etag"]);
    expect(tag).to.match(/^[\w-]{16}$/);
    expect(mustSucceed(read)["etag"]).to.equal(tag);
    expect([written.headers.etag, read.headers.etag]).to.deep.equal([`"${tag}"`, `"${tag}"`]);
    expect(await mustList(server(), `?prefix=${path}`)).to.deep.include.members([
      { ...(await mustList(server(), `?prefix=${path}`))[0], etag: tag, version: 1 },
    ]);
  });

  it("each put has a new tag, also one of the same value", async () => {
    const { path, tag } = await stored();
    expect((await mustPut(server(), path, "v"))["etag"]).not.to.equal(tag);
  });

  for (const [how, header] of [
    ["its tag", (tag: string) => `"${tag}"`],
    ["its tag, weak", (tag: string) => `W/"${tag}"`],
    ["a list with its tag", (tag: string) => `"other", , "${tag}" , "a,b"`],
    ["any", () => "*"],
  ] as const) {
    it(`a get with If-None-Match of ${how} returns 304 without a body`, async () => {
      const { path, tag } = await stored();
      const { status, text, headers } = await get(path, { "if-none-match": header(tag) });
      expect([status, text, headers.etag, headers["cache-control"]]).to.deep.equal([304, "", `"${tag}"`, "no-store"]);
    });
  }

  it("a get with If-None-Match of another tag returns the secret, and of a missing secret 404", async () => {
    const { path } = await stored();
    expect(mustSucceed(await get(path, { "if-none-match": '"other"' }))["value"]).to.equal("v");
    mustRefuse(await get("missing", { "if-none-match": "*" }), 404, "NOT_FOUND");
  });

  it("a 304 does not ask the key worker, which cannot open this one", async () => {
    const { path, tag } = await stored();
    const file = blobFile(server(), path);
    const blob = readFileSync(file);
    damage(file, flipped(blob, 8 * (blob.length - 1)));
    mustRefuse(await get(path, {}), 500, "INTEGRITY");
    expect((await get(path, { "if-none-match": `"${tag}"` })).status).to.equal(304);
  });

  it("a cached secret is judged like one that is read", async () => {
    const cached = await startTestServer();
    await mustInit(cached);
    const { etag } = await mustPut(cached, "a", "v");
    await mustGet(cached, "a");
    const unchanged = { path: "/v1/secrets/a", headers: { "if-none-match": `"${String(etag)}"` } };
    expect((await send(cached, unchanged)).status).to.equal(304);
    await mustPut(cached, "a", "w");
    expect(mustSucceed(await send(cached, unchanged))["value"]).to.equal("w");
  });

  for (const [name, change] of [
    ["put", put],
    ["delete", remove],
    ["undo", undo],
    ["change of the metadata", changeMetadata],
  ] as const) {
    it(`a ${name} with If-Match of its tag, a list with it, or any is done`, async () => {
      for (const header of [(tag: string) => `"${tag}"`, (tag: string) => `"x", "${tag}"`, () => "*"]) {
        const { path, tag } = await stored();
        mustSucceed(await change(path, { "if-match": header(tag) }));
      }
    });

    it(`a ${name} with If-Match of another tag, or of its tag but weak, is refused and changes nothing`, async () => {
      const { path, tag } = await stored();
      for (const header of ['"other"', `W/"${tag}"`]) {
        mustRefuse(await change(path, { "if-match": header }), 412, "PRECONDITION_FAILED");
      }
      await mustBeUnchanged(path, tag);
    });

    it(`a ${name} with If-Match of a missing secret is refused`, async () => {
      const path = newPath();
      for (const header of ["*", '"tag"']) {
        mustRefuse(await change(path, { "if-match": header }), 412, "PRECONDITION_FAILED");
      }
      mustRefuse(await get(path, {}), 404, "NOT_FOUND");
    });
  }

  it("a prune with If-Match of another tag is refused, and of its tag done", async () => {
    const { path } = await stored();
    const { etag } = await mustPut(server(), path, "w");
    const prune = (header: string) =>
      send(server(), { method: "DELETE", path: `/v1/versions/${path}`, headers: { "if-match": header } });
    mustRefuse(await prune('"other"'), 412, "PRECONDITION_FAILED");
    expect(mustSucceed(await prune(`"${String(etag)}"`))["message"]).to.match(/^1 /);
    await mustBeUnchanged(path, String(etag));
  });

  it("a put with If-None-Match: * creates, and is refused where there is a secret", async () => {
    const path = newPath();
    const { etag } = mustSucceed(await put(path, { "if-none-match": "*" }));
    mustRefuse(await put(path, { "if-none-match": "*" }, { value: "w" }), 412, "PRECONDITION_FAILED");
    await mustBeUnchanged(path, String(etag));
  });

  it("a put whose body is invalid is 400, whatever its condition says", async () => {
    mustRefuse(await put(newPath(), { "if-match": "*" }, "{}"), 400, "BAD_REQUEST");
    mustRefuse(await undo(newPath(), { "if-match": "*" }, "1"), 400, "BAD_REQUEST");
  });

  for (const header of ["", "tag", '"tag', 'tag"', '"a" "b"', '*, "a"', 'w/"a"', '"a b"', ","]) {
    it(`the condition ${JSON.stringify(header)} is malformed: 400`, async () => {
      const { path, tag } = await stored();
      mustRefuse(await get(path, { "if-none-match": header }), 400, "BAD_REQUEST");
      for (const change of [put, remove, undo, changeMetadata]) {
        mustRefuse(await change(path, { "if-match": header }), 400, "BAD_REQUEST");
      }
      mustRefuse(await put(path, { "if-none-match": header }), 400, "BAD_REQUEST");
      await mustBeUnchanged(path, tag);
    });
  }

  it("a locked vault refuses with 403, whatever the condition says", async () => {
    const locked = await startTestServer();
    for (const header of ["*", "malformed"]) {
      for (const method of ["GET", "PUT", "DELETE"]) {
        const headers = { "if-match": header, "if-none-match": header };
        mustRefuse(await send(locked, { method, path: "/v1/secrets/a", headers }), 403, "VAULT_LOCKED");
      }
    }
  });

  it("a tag from before a delete does not match the secret that is created after it", async () => {
    const { path, tag } = await stored();
    mustSucceed(await remove(path, {}));
    await mustPut(server(), path, "v");
    mustRefuse(await put(path, { "if-match": `"${tag}"` }), 412, "PRECONDITION_FAILED");
  });

  it(`exactly one of 16 writers with one etag succeeds, over ${rounds} rounds`, async function () {
    this.timeout(0);
    const path = newPath();
    let tag = String((await mustPut(server(), path, "start"))["etag"]);
    for (let round = 0; round < rounds; round++) {
      const writer = (n: number) => put(path, { "if-match": `"${tag}"` }, { value: `${round} of ${n}` });
      const answers: ApiResponse[] = await Promise.all(Array.from({ length: 16 }, (_, n) => writer(n)));
      const winners = answers.flatMap(({ status }, n) => (status === 200 ? [n] : []));
      expect(winners, `round ${round}`).to.have.lengthOf(1);
      for (const answer of answers) if (answer.status !== 200) mustRefuse(answer, 412, "PRECONDITION_FAILED");
      const { value, etag, version } = await mustGet(server(), path);
      expect([value, version]).to.deep.equal([`${round} of ${winners[0]}`, round + 2]);
      tag = String(etag);
    }
  });
});
