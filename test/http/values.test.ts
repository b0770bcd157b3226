/** Binary values, changes of metadata alone, and times of expiry. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shareTestServer, startTestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  mustInit,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { mustRotate, untilRotated } from "../support/key-requests.js";

const newPath = (() => {
  let paths = 0;
  return () => `value-${paths++}`;
})();

function mustRefuseSaying(answer: ApiResponse, text: RegExp): void {
  mustRefuse(answer, 400, "BAD_REQUEST");
  expect(answer.json["error"]).to.match(text);
}

/** Few in the normal suite; STRONGROOM_BINARY_VALUES sets another number. */
const rounds = Number(process.env["STRONGROOM_BINARY_VALUES"] ?? 8);

describe("binary values", () => {
  const server = shareTestServer({}, mustInit);
  const put = (path: string, body: object) =>
    send(server(), { method: "PUT", path: `/v1/secrets/${path}`, body: { encoding: "base64", ...body } });
  const get = async (path: string) => mustSucceed(await send(server(), { path: `/v1/secrets/${path}` }));

  it("a binary value is returned byte for byte, and its length counts decoded bytes", async () => {
    for (const length of [0, 1, 2, 3, 4, 5, 255, 4096, 700_000]) {
      const value = randomBytes(length).toString("base64");
      const path = newPath();
      expect(mustSucceed(await put(path, { value }))).to.include({ bytes: length });
      const got = await get(path);
      expect(got["encoding"]).to.equal("base64");
      expect(got["value"] === value, String(length)).to.equal(true);
    }
  });

  const forms: readonly (readonly [name: string, value: string])[] = [
    ["the standard alphabet", "+/+/-A==".replace("-", "A")],
    ["the URL alphabet", "-_-_AA=="],
    ["no padding", "+/+/AA"],
  ];
  for (const [name, value] of forms) {
    it(`a binary value with ${name} is accepted`, async () => {
      const path = newPath();
      mustSucceed(await put(path, { value }));
      expect((await get(path))["value"]).to.equal("+/+/AA==");
    });
  }

  for (const value of ["A", "A===", "AA=", "AAAA=", "A A=", "AA==AA==", "AB==", "AAB", "é"]) {
    it(`a value that is not base64 is refused: ${JSON.stringify(value)}`, async () => {
      const path = newPath();
      mustRefuseSaying(await put(path, { value }), /value must be base64, since/);
      mustRefuse(await send(server(), { path: `/v1/secrets/${path}` }), 404, "NOT_FOUND");
    });
  }

  it("an encoding other than base64 is refused", async () => {
    mustRefuseSaying(await put(newPath(), { value: "AA==", encoding: "hex" }), /encoding must be base64/);
  });

  it("marks binary values in lists and versions, and texts not", async () => {
    const path = newPath();
    mustSucceed(await send(server(), { method: "PUT", path: `/v1/secrets/${path}`, body: { value: "AA==" } }));
    mustSucceed(await put(path, { value: "AA==" }));
    const { entries } = mustSucceed(await send(server(), { path: `/v1/secrets?prefix=${path}` }));
    expect(entries).to.have.nested.property("[0].encoding", "base64");
    const { versions } = mustSucceed(await send(server(), { path: `/v1/versions/${path}` }));
    expect((versions as { encoding?: string }[]).map(({ encoding }) => encoding)).to.deep.equal(["base64", undefined]);
    expect(mustSucceed(await send(server(), { path: `/v1/versions/${path}?version=1` }))).not.to.have.property(
      "encoding",
    );
  });

  it("a binary value equal to the current one makes no new version", async () => {
    const path = newPath();
    mustSucceed(await put(path, { value: "AAE=" }));
    expect(mustSucceed(await put(path, { value: "AAE" }))).to.include({ version: 1 });
  });

  it("a binary value survives a batch, an undo, a copy, a move and a restart", async () => {
    const home = await startTestServer();
    await mustInit(home);
    const value = randomBytes(1000).toString("base64");
    const change = async (request: Send) => mustSucceed(await send(home, request));
    await change({
      method: "POST",
      path: "/v1/batch",
      body: { operations: [{ put: "a", value, encoding: "base64" }] },
    });
    await change({ method: "PUT", path: "/v1/secrets/a", body: { value: "text" } });
    await change({ method: "POST", path: "/v1/versions/a", body: { version: 1 } });
    await change({ method: "POST", path: "/v1/batch", body: { operations: [{ copy: "a", to: "copied" }] } });
    await change({ method: "POST", path: "/v1/batch", body: { operations: [{ move: "a", to: "moved" }] } });
    await home.stop();
    const again = await startTestServer({ home: home.home });
    await mustUnlock(again);
    for (const path of ["copied", "moved"]) {
      expect(mustSucceed(await send(again, { path: `/v1/secrets/${path}` }))).to.include({ value, encoding: "base64" });
    }
    const body = { operations: [{ get: "moved" }] };
    const { results } = mustSucceed(await send(again, { method: "POST", path: "/v1/batch", body }));
    expect(results).to.have.nested.property("[0].value", value);
  });

  it("values of any bytes survive history, a rotation of the master key and a restart", async () => {
    const first = await startTestServer();
    await mustInit(first);
    const values = Array.from({ length: rounds }, (_, i) =>
      randomBytes(i % 50 === 0 ? 20_000 : i % 97).toString("base64"),
    );
    for (const [i, value] of values.entries()) {
      const target = { method: "PUT", path: `/v1/secrets/random/${i}` };
      mustSucceed(await send(first, { ...target, body: { value, encoding: "base64" } }));
      mustSucceed(await send(first, { ...target, body: { value: "a text" } }));
    }
    await mustRotate(first);
    await untilRotated(first);
    await first.stop();
    const again = await startTestServer({ home: first.home });
    await mustUnlock(again);
    for (const [i, value] of values.entries()) {
      const earlier = mustSucceed(await send(again, { path: `/v1/versions/random/${i}?version=1` }));
      expect(earlier).to.include({ encoding: "base64" });
      expect(earlier["value"] === value, String(i)).to.equal(true);
      mustSucceed(await send(again, { method: "POST", path: `/v1/versions/random/${i}`, body: { version: 1 } }));
      const restored = mustSucceed(await send(again, { path: `/v1/secrets/random/${i}` }));
      expect(restored["value"] === value, String(i)).to.equal(true);
    }
  });

  it("a binary value is sealed as bytes: its file is shorter than its base64", async () => {
    const path = newPath();
    mustSucceed(await put(path, { value: randomBytes(30_000).toString("base64") }));
    const file = readFileSync(join(server().vaultPath, "gen-1", "secrets", `${path}.sealed`));
    expect(file.length).to.be.within(30_000, 31_000);
  });
});

describe("metadata changes", () => {
  const server = shareTestServer({}, mustInit);
  const stored = async (body: object = {}) => {
    const path = newPath();
    const metadata = { type: "password", description: "d", expiresAt: "2030-01-01T00:00:00.000Z" };
    mustSucceed(
      await send(server(), { method: "PUT", path: `/v1/secrets/${path}`, body: { value: "v", ...metadata, ...body } }),
    );
    return path;
  };
  const change = (path: string, body: object | string, headers = {}) =>
    send(server(), { method: "PATCH", path: `/v1/metadata/${path}`, body, headers });
  const get = async (path: string) => mustSucceed(await send(server(), { path: `/v1/secrets/${path}` }));

  it("a metadata change keeps the value and what it does not name, and makes a new version", async () => {
    const path = await stored();
    const response = mustSucceed(await change(path, { description: "other" }));
    const metadata = { type: "password", description: "other", expiresAt: "2030-01-01T00:00:00.000Z" };
    expect(response).to.deep.include({ ok: true, path, bytes: 1, metadata, version: 2 });
    expect(await get(path)).to.deep.include({ value: "v", metadata, version: 2, etag: response["etag"] });
  });

  it("a metadata change removes what is null", async () => {
    const path = await stored();
    mustSucceed(await change(path, { type: null, description: null, expiresAt: null }));
    expect((await get(path))["metadata"]).to.deep.equal({});
  });

  it("a metadata change is undone like a put", async () => {
    const path = await stored();
    const before = (await get(path))["metadata"];
    mustSucceed(await change(path, { type: null, expiresAt: "2031-01-01T00:00:00Z" }));
    mustSucceed(await send(server(), { method: "POST", path: `/v1/versions/${path}`, body: { version: 1 } }));
    expect((await get(path))["metadata"]).to.deep.equal(before);
  });

  it("a metadata change keeps a binary value", async () => {
    const path = await stored({ value: "AAE=", encoding: "base64" });
    expect(mustSucceed(await change(path, { type: null }))).to.include({ bytes: 2 });
    expect(await get(path)).to.include({ value: "AAE=", encoding: "base64" });
  });

  it("a metadata change obeys If-Match", async () => {
    const path = await stored();
    mustRefuse(await change(path, { type: null }, { "if-match": '"other"' }), 412, "PRECONDITION_FAILED");
    const { etag } = await get(path);
    mustSucceed(await change(path, { type: null }, { "if-match": `"${etag}"` }));
    mustRefuse(await change("missing", { type: null }, { "if-match": "*" }), 412, "PRECONDITION_FAILED");
  });

  it("a metadata change of a missing secret gets 404, and one with an invalid body 400", async () => {
    mustRefuse(await change("missing", { type: null }), 404, "NOT_FOUND");
    for (const body of [
      {},
      { value: "v" },
      { type: "other kind" },
      { description: 1 },
      { expiresAt: "soon" },
      [],
      "x",
    ]) {
      mustRefuse(await change("missing", body), 400, "BAD_REQUEST");
    }
  });

  it("a metadata change is recorded in the audit log, without what was changed", async () => {
    const path = await stored();
    mustSucceed(await change(path, { description: "secret plan" }));
    const { records } = mustSucceed(await send(server(), { path: "/v1/audit?limit=1000" }));
    const found = (records as { event: string; path?: string }[]).filter((record) => record.path === path);
    expect(found.map(({ event }) => event)).to.deep.equal(["put", "metadata"]);
    expect(JSON.stringify(records)).not.to.contain("secret plan");
  });
});

describe("times of expiry", () => {
  const server = shareTestServer({}, mustInit);
  const put = (path: string, expiresAt: unknown) =>
    send(server(), { method: "PUT", path: `/v1/secrets/${path}`, body: { value: "v", expiresAt } });

  for (const [given, kept] of [
    ["2026-12-31T00:00:00Z", "2026-12-31T00:00:00.000Z"],
    ["2026-12-31T23:30:00.5+02:00", "2026-12-31T21:30:00.500Z"],
    ["2000-01-01T00:00:00.123456Z", "2000-01-01T00:00:00.123Z"],
  ] as const) {
    it(`a time of expiry is kept in UTC: ${given}`, async () => {
      const path = newPath();
      expect(mustSucceed(await put(path, given))["metadata"]).to.deep.equal({ expiresAt: kept });
      const { entries } = mustSucceed(await send(server(), { path: `/v1/secrets?prefix=${path}` }));
      expect(entries).to.have.nested.property("[0].metadata.expiresAt", kept);
    });
  }

  for (const wrong of [
    "",
    "soon",
    "2026-12-31",
    "2026-12-31T00:00:00",
    "2026-13-01T00:00:00Z",
    "1770000000",
    1770000000,
    null,
  ]) {
    it(`an invalid time of expiry is refused: ${JSON.stringify(wrong)}`, async () => {
      mustRefuseSaying(await put(newPath(), wrong), /expiresAt must be an ISO 8601 time/);
    });
  }
});
