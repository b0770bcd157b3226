/** docs/reference/http-api.md, Client tokens: records, rotation, revocation, ends, and the document on disk. */
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { expect } from "chai";
import type { FileOperations } from "../../src/files/durable.js";
import { later } from "../../tools/rig/clean-up.js";
import { lightFiles } from "../../tools/rig/light-files.js";
import { passphrase, shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  connectRaw,
  type Json,
  mustCreateToken,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { failingFiles } from "../support/failing-files.js";
import { FakeClock } from "../support/manual-clock.js";

const daySeconds = 24 * 3600;
const dayMs = daySeconds * 1000;

function get(server: TestServer, path: string, token: string) {
  return send(server, { path: `/v1/secrets/${path}`, token });
}

async function mustBeGone(server: TestServer, token: string, reason: string): Promise<void> {
  const answer = await send(server, { path: "/v1/tokens/self", token });
  mustRefuse(answer, 401, "UNAUTHORIZED");
  expect(answer.json["reason"]).to.equal(reason);
}

async function self(server: TestServer, token?: string): Promise<Json> {
  return mustSucceed(await send(server, { path: "/v1/tokens/self", ...(token && { token }) }));
}

async function listed(server: TestServer): Promise<readonly Json[]> {
  return mustSucceed(await send(server, { path: "/v1/tokens" }))["tokens"] as Json[];
}

function rotate(server: TestServer, name: string, body: object | "" = "") {
  return send(server, { method: "POST", path: `/v1/tokens/${name}`, body });
}

function revoke(server: TestServer, name: string) {
  return send(server, { method: "DELETE", path: `/v1/tokens/${name}` });
}

function documentFile({ home }: TestServer): string {
  return join(home, "vault", "gen-1", "tokens.document");
}

type Stored = { readonly tokens: (Json & { can: string[] })[]; readonly ended: Json[] };

function stored(server: TestServer): Stored {
  return JSON.parse(readFileSync(documentFile(server), "utf8"));
}

/** Shares a server in a `describe`, with a clock that ends every lockout before each test. */
function shareUnlocked(): { readonly server: () => TestServer; readonly clock: FakeClock } {
  const clock = new FakeClock();
  const server = shareTestServer({ clock, idleTimeoutMs: 0 }, (fresh) => mustInit(fresh));
  beforeEach(() => clock.advance(300_000));
  return { server, clock };
}

describe("POST /v1/tokens", () => {
  const { server, clock } = shareUnlocked();

  it("returns a new token's value once, with a record of defaults", async () => {
    const answer = await send(server(), { method: "POST", path: "/v1/tokens", body: { name: "defaults" } });
    const { token, ok, ...record } = mustSucceed(answer);
    expect(token).to.match(/^src_[A-Za-z0-9_-]{49}$/);
    expect(ok).to.equal(true);
    const createdAt = new Date(clock.now()).toISOString();
    const expiresAt = new Date(clock.now() + 90 * dayMs).toISOString();
    const want = { name: "defaults", can: ["list", "get"], paths: [], createdAt, expiresAt, lastUsedAt: null };
    expect(record).to.deep.equal(want);
    expect(await listed(server())).to.deep.include(want);
    expect(JSON.stringify(await listed(server()))).not.to.contain(token);
    expect(readFileSync(documentFile(server()), "utf8")).not.to.contain(token);
    expect(await self(server(), String(token))).to.include({ name: "defaults", expiresAt });
  });

  it("refuses to create a token whose name is taken, expired or not, or root: 409 ALREADY_EXISTS", async () => {
    await mustCreateToken(server(), { name: "short", ttlSeconds: 1 });
    clock.advance(2_000);
    for (const name of ["defaults", "short", "root"]) {
      const answer = await send(server(), { method: "POST", path: "/v1/tokens", body: { name } });
      mustRefuse(answer, 409, "ALREADY_EXISTS");
      expect(answer.json["error"]).to.equal(`a token named ${name} already exists: choose another name, or rotate it`);
    }
  });

  const invalid: Readonly<Record<string, object | string>> = {
    "no JSON": "{",
    "an array": "[]",
    "invalid UTF-8": '{"name":"\xff"}',
    "no name": {},
    "a name in capitals": { name: "CI" },
    "a name of 65 characters": { name: "a".repeat(65) },
    "a name that begins with a dot": { name: ".ci" },
    "an empty scope": { name: "x", can: [] },
    "an unknown scope": { name: "x", can: ["list", "everything"] },
    "a scope that is no list": { name: "x", can: "list" },
    "a path that is no text": { name: "x", paths: [1] },
    "an invalid path": { name: "x", paths: ["a//b"] },
    "a lone slash": { name: "x", paths: ["/"] },
    "an empty path": { name: "x", paths: [""] },
    "65 paths": { name: "x", paths: Array.from({ length: 65 }, (_, i) => `p${i}`) },
    "a negative time": { name: "x", ttlSeconds: -1 },
    "a fraction of a second": { name: "x", ttlSeconds: 1.5 },
    "a time that is text": { name: "x", ttlSeconds: "90" },
    "more than 100 years": { name: "x", ttlSeconds: 3_153_600_001 },
  };
  for (const [name, body] of Object.entries(invalid)) {
    it(`refuses to create a token with ${name}: 400 BAD_REQUEST`, async () => {
      const bytes = typeof body === "string" ? Buffer.from(body, "latin1") : body;
      const answer = await send(server(), { method: "POST", path: "/v1/tokens", body: bytes });
      mustRefuse(answer, 400, "BAD_REQUEST");
    });
  }

  it("normalizes the paths of a token to NFC", async () => {
    await mustCreateToken(server(), { name: "nfc", paths: ["cafe\u0301/", "cafe\u0301/"] });
    expect((await listed(server())).find(({ name }) => name === "nfc")?.["paths"]).to.deep.equal(["caf\u00e9/"]);
  });

  it("a token is neither created nor rotated while the vault is locked: 403 VAULT_LOCKED", async () => {
    await mustCreateToken(server(), { name: "locked" });
    await mustLock(server());
    const invalidBody = { method: "POST", path: "/v1/tokens", body: "{" };
    mustRefuse(await send(server(), invalidBody), 403, "VAULT_LOCKED");
    mustRefuse(await rotate(server(), "locked"), 403, "VAULT_LOCKED");
    await mustUnlock(server());
  });

  it("unknown token values count towards the lockout", async () => {
    for (let i = 0; i < 10; i++) mustRefuse(await get(server(), "a", `src_${"A".repeat(43)}`), 401, "UNAUTHORIZED");
    mustRefuse(await send(server(), { path: "/v1/secrets" }), 429, "RATE_LIMITED");
  });
});

describe("expiry and revocation", () => {
  const { server, clock } = shareUnlocked();

  it("an expired token gets 401 with the reason for 30 days, then as any unknown value", async () => {
    const { token } = await mustCreateToken(server(), { name: "short", ttlSeconds: 60 });
    clock.advance(59_999);
    await self(server(), token);
    clock.advance(1);
    await mustBeGone(server(), token, "expired");
    clock.advance(30 * dayMs - 1);
    for (let i = 0; i < 1_000; i++) await mustBeGone(server(), token, "expired"); // no one is locked out
    await self(server());
    clock.advance(1);
    const answer = await send(server(), { path: "/v1/tokens/self", token });
    expect(answer.json).to.include({ code: "UNAUTHORIZED" }).and.not.to.have.property("reason");
    expect((await listed(server())).map(({ name }) => name)).not.to.include("short");
  });

  it("the name of a token is free 30 days after it has expired", async () => {
    await mustCreateToken(server(), { name: "reused", ttlSeconds: 60 });
    clock.advance(60_000 + 30 * dayMs);
    mustRefuse(await rotate(server(), "reused"), 404, "NOT_FOUND");
    mustRefuse(await revoke(server(), "reused"), 404, "NOT_FOUND");
    await mustCreateToken(server(), { name: "reused" });
  });

  it("a token is valid again once a clock that was years ahead is set right", async () => {
    const time = new FakeClock();
    const own = await startTestServer({ clock: time, idleTimeoutMs: 0 });
    await mustInit(own);
    const { token } = await mustCreateToken(own, { name: "ci" });
    time.jump(10 * 365 * dayMs);
    mustRefuse(await send(own, { path: "/v1/tokens/self", token }), 401, "UNAUTHORIZED");
    await mustCreateToken(own, { name: "other" }); // is stored with all that the document has
    await own.stop();
    time.jump(-10 * 365 * dayMs);
    const again = await startTestServer({ clock: time, home: own.home, idleTimeoutMs: 0 });
    await mustUnlock(again);
    expect(await self(again, token)).to.include({ name: "ci" });
  });

  it("a token with a lifetime of 0 never expires", async () => {
    const { token } = await mustCreateToken(server(), { name: "endless", ttlSeconds: 0 });
    clock.jump(100 * 365 * dayMs);
    expect(await self(server(), token)).to.include({ expiresAt: null });
    clock.jump(-100 * 365 * dayMs);
  });

  it("a header announces the expiry of a token in its last 7 days", async () => {
    const { token } = await mustCreateToken(server(), { name: "announced", ttlSeconds: 10 * daySeconds });
    clock.advance(3 * dayMs - 1);
    const header = async () => (await get(server(), "none", token)).headers["strongroom-token-expires"];
    expect(await header()).to.equal(undefined);
    clock.advance(1);
    expect(await header()).to.equal(new Date(clock.now() + 7 * dayMs).toISOString());
  });

  it("a revoked token gets 401 with the reason, and does not count towards the lockout", async () => {
    const { token } = await mustCreateToken(server(), { name: "revoked" });
    mustSucceed(await revoke(server(), "revoked"));
    for (let i = 0; i < 12; i++) await mustBeGone(server(), token, "revoked");
    mustRefuse(await revoke(server(), "revoked"), 404, "NOT_FOUND");
    await mustCreateToken(server(), { name: "revoked" });
    await mustBeGone(server(), token, "revoked");
  });

  it("a revocation holds after a restart", async () => {
    const first = await startTestServer();
    await mustInit(first);
    const [gone, kept] = [
      await mustCreateToken(first, { name: "gone" }),
      await mustCreateToken(first, { name: "kept" }),
    ];
    mustSucceed(await revoke(first, "gone"));
    await first.stop();
    const second = await startTestServer({ home: first.home });
    await mustBeGone(second, gone.token, "revoked");
    mustRefuse(await get(second, "a", kept.token), 403, "VAULT_LOCKED");
    await mustUnlock(second);
    mustRefuse(await get(second, "a", kept.token), 404, "NOT_FOUND");
    expect(await listed(second)).to.have.length(1);
  });

  it("a put whose body arrives after its token's revocation gets 401", async () => {
    const { name, token } = await mustCreateToken(server(), { name: "slow", can: ["put"] });
    const { port, certificate: ca } = server();
    const options = { host: "127.0.0.1", port, servername: "localhost", ca, method: "PUT" };
    const headers = { authorization: `Bearer ${token}`, "content-length": 13, expect: "100-continue" };
    const slow = request({ ...options, path: "/v1/secrets/late", headers });
    await new Promise((resolve) => slow.once("continue", resolve).flushHeaders());
    mustSucceed(await revoke(server(), name));
    const status = new Promise((resolve) => slow.once("response", (response) => resolve(response.resume().statusCode)));
    slow.end('{"value":"v"}');
    expect(await status).to.equal(401);
    mustRefuse(await send(server(), { path: "/v1/secrets/late" }), 404, "NOT_FOUND");
  });
});

describe("POST /v1/tokens/:name", () => {
  const { server, clock } = shareUnlocked();

  it("a rotation without an overlap ends the old value immediately", async () => {
    const old = await mustCreateToken(server(), { name: "ci", can: ["get"], paths: ["app/"], ttlSeconds: 100 });
    clock.advance(50_000);
    const { token, expiresAt, ...rest } = mustSucceed(await rotate(server(), "ci"));
    await mustBeGone(server(), old.token, "rotated");
    expect(await self(server(), String(token))).to.include({ name: "ci", expiresAt });
    expect(rest).to.deep.include({ can: ["get"], paths: ["app/"] });
    expect(expiresAt).to.equal(new Date(clock.now() + 100_000).toISOString());
  });

  it("a rotation keeps the old value for the overlap, but not beyond its own expiry", async () => {
    const first = await mustCreateToken(server(), { name: "twice", ttlSeconds: 100 });
    const second = mustSucceed(await rotate(server(), "twice", { overlapSeconds: 60 }));
    clock.advance(30_000);
    const third = mustSucceed(await rotate(server(), "twice", { overlapSeconds: 500 }));
    for (const text of [first.token, second["token"], third["token"]]) await self(server(), String(text));
    clock.advance(30_000);
    await mustBeGone(server(), first.token, "rotated");
    await self(server(), String(second["token"]));
    clock.advance(40_000);
    await mustBeGone(server(), String(second["token"]), "rotated");
    await self(server(), String(third["token"]));
  });

  it("a revocation ends all values of a token", async () => {
    const { token } = await mustCreateToken(server(), { name: "both" });
    const renewed = mustSucceed(await rotate(server(), "both", { overlapSeconds: 60 }));
    mustSucceed(await revoke(server(), "both"));
    for (const text of [token, renewed["token"]]) await mustBeGone(server(), String(text), "revoked");
  });

  it("a rotation with a ninth running overlap is refused, and the error says when the first ends", async () => {
    const first = await mustCreateToken(server(), { name: "many" });
    const endsAt = new Date(clock.now() + 1_000_000).toISOString();
    for (let i = 0; i < 8; i++) mustSucceed(await rotate(server(), "many", { overlapSeconds: 1_000 + i }));
    const refused = await rotate(server(), "many", { overlapSeconds: 60 });
    mustRefuse(refused, 400, "BAD_REQUEST");
    expect(refused.json["error"]).to.contain(endsAt);
    for (let i = 0; i < 9; i++) mustSucceed(await rotate(server(), "many"));
    await self(server(), first.token);
    clock.advance(1_000_000);
    await mustBeGone(server(), first.token, "rotated");
    mustSucceed(await rotate(server(), "many", { overlapSeconds: 60 }));
  });

  it("a rotation renews an expired token", async () => {
    const { token } = await mustCreateToken(server(), { name: "expired", ttlSeconds: 10 });
    clock.advance(20_000);
    const renewed = mustSucceed(await rotate(server(), "expired", { overlapSeconds: 60 }));
    await self(server(), String(renewed["token"]));
    await mustBeGone(server(), token, "rotated");
  });

  it("a rotation of an unknown name gets 404, and one with an invalid overlap 400", async () => {
    mustRefuse(await rotate(server(), "unknown"), 404, "NOT_FOUND");
    for (const overlapSeconds of [-1, 2_592_001, "1h"])
      mustRefuse(await rotate(server(), "ci", { overlapSeconds }), 400, "BAD_REQUEST");
  });

  it("replaces the root token and its file, also while the vault is locked", async () => {
    const own = await startTestServer();
    const renewed = mustSucceed(await rotate(own, "root", { overlapSeconds: 60 }));
    const file = readFileSync(join(own.home, "token"), "utf8").trim();
    expect(renewed["token"]).to.equal(file).and.to.match(/^srt_/);
    await mustInit({ ...own, token: file });
    expect(await self(own)).to.include({ name: "root" });
    mustSucceed(await rotate({ ...own, token: file }, "root"));
    await mustBeGone(own, file, "rotated");
    await own.stop();
    const next = await startTestServer({ home: own.home });
    expect(await self(next)).to.include({ name: "root" });
  });

  it("keeps the root token when its file cannot be written", async () => {
    const own = await startTestServer();
    rmSync(join(own.home, "token"));
    mkdirSync(join(own.home, "token"));
    mustRefuse(await rotate(own, "root"), 503, "UNAVAILABLE");
    await self(own);
  });

  for (const step of ["rename", "sync"] as const)
    it(`accepts the root token in its file after a ${step} that failed but may have taken effect`, async () => {
      let [isFailing, home] = [false, ""];
      const rename: FileOperations["rename"] = async (from, to) => {
        await lightFiles.rename(from, to);
        if (isFailing && step === "rename") throw Object.assign(new Error("EIO"), { code: "EIO" });
      };
      const lstat = (async (path: string) => {
        if (isFailing && step === "rename") throw Object.assign(new Error("EIO"), { code: "EIO" });
        return lightFiles.lstat(path);
      }) as FileOperations["lstat"];
      const open: FileOperations["open"] = async (path, ...more) => {
        const file = await lightFiles.open(path, ...more);
        if (isFailing && step === "sync" && path === home) {
          file.sync = () => Promise.reject(Object.assign(new Error("EIO"), { code: "EIO" }));
        }
        return file;
      };
      const own = await startTestServer({ files: { ...lightFiles, rename, lstat, open } });
      [isFailing, home] = [true, own.home];
      mustRefuse(await rotate(own, "root"), 503, "UNAVAILABLE");
      isFailing = false;
      await self(own);
      const file = readFileSync(join(own.home, "token"), "utf8").trim();
      expect(file).not.to.equal(own.token);
      await self(own, file);
      const { token } = mustSucceed(await rotate(own, "root")) as { token: string };
      await self(own, token);
      for (const old of [own.token, file]) await mustBeGone(own, old, "rotated");
    });

  it("refuses to replace a root token that comes from a setting", async () => {
    const own = await startTestServer({ token: "a-token-of-at-least-32-characters" });
    mustRefuse(await rotate(own, "root"), 400, "BAD_REQUEST");
  });
});

describe("the document of tokens", () => {
  it("the document of client tokens is not written before the first of them", async () => {
    const server = await startTestServer();
    await mustInit(server);
    mustRefuse(await revoke(server, "none"), 404, "NOT_FOUND");
    await server.stop();
    expect(() => readFileSync(documentFile(server))).to.throw("ENOENT");
  });

  it("stores within a minute when a token was last used", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock, idleTimeoutMs: 0 });
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "used" });
    clock.advance(1_000);
    await self(server, token);
    const usedAt = clock.now();
    expect((await listed(server))[0]).to.include({ lastUsedAt: new Date(usedAt).toISOString() });
    expect(stored(server).tokens[0]).to.include({ lastUsedAt: null });
    clock.advance(60_000);
    await mustCreateToken(server, { name: "after" }); // waits for the write before
    expect(stored(server).tokens.find(({ name }) => name === "used")).to.include({ lastUsedAt: usedAt });
    await self(server, token);
    await server.stop();
    expect(stored(server).tokens.find(({ name }) => name === "used")).to.include({ lastUsedAt: clock.now() });
  });

  const edits: Readonly<Record<string, (document: Stored) => void>> = {
    "a wider scope": ({ tokens }) => tokens[0]?.can.push("put"),
    "a wider path": ({ tokens }) => Object.assign(tokens[0] ?? {}, { paths: [] }),
    "a later end": ({ tokens }) => Object.assign(tokens[0] ?? {}, { expiresAt: null }),
    "another name": ({ tokens }) => Object.assign(tokens[0] ?? {}, { name: "other" }),
    "another text": ({ tokens }) => Object.assign(tokens[0] ?? {}, { digest: "A".repeat(43) }),
    "an unknown member": ({ tokens }) => Object.assign(tokens[0] ?? {}, { note: "" }),
    "an invalid member": ({ tokens }) => Object.assign(tokens[0] ?? {}, { can: ["everything"] }),
    "no MAC": ({ tokens }) => Object.assign(tokens[0] ?? {}, { mac: "A".repeat(43) }),
  };
  for (const [name, edit] of Object.entries(edits)) {
    it(`a token's record with ${name} is rejected, and the log says so`, async () => {
      const first = await startTestServer();
      await mustInit(first);
      await mustPut(first, "app/a", "v");
      const { token } = await mustCreateToken(first, { name: "edited", paths: ["app/"] });
      const intact = await mustCreateToken(first, { name: "intact" });
      await first.stop();
      const document = stored(first);
      edit(document);
      writeFileSync(documentFile(first), JSON.stringify(document));
      const second = await startTestServer({ home: first.home });
      await mustUnlock(second);
      mustRefuse(await get(second, "app/a", token), 401, "UNAUTHORIZED");
      mustSucceed(await get(second, "app/a", intact.token));
      expect(second.logged()).to.contain('"event":"tokens-refused"').and.to.contain('"count":1');
      expect((await listed(second)).map((record) => record["name"])).to.deep.equal(["intact"]);
      const refused = document.tokens[0]?.["name"];
      mustSucceed(await revoke(second, String(refused)));
      expect(stored(second).tokens.map((record) => record["name"])).to.deep.equal(["intact"]);
    });
  }

  it("a token reads the audit log only after an unlock has checked its record; it can lock before", async () => {
    const first = await startTestServer();
    await mustInit(first);
    const { token } = await mustCreateToken(first, { name: "own", can: ["audit", "metrics", "lock"] });
    await mustLock(first);
    mustSucceed(await send(first, { path: "/v1/audit", token }));
    await first.stop();
    const second = await startTestServer({ home: first.home });
    mustRefuse(await send(second, { path: "/v1/audit", token }), 403, "VAULT_LOCKED");
    mustSucceed(await send(second, { path: "/v1/audit" }));
    expect((await send(second, { path: "/v1/metrics", token })).status).to.equal(200);
    mustSucceed(await send(second, { method: "POST", path: "/v1/lock", token }));
    await mustUnlock(second);
    await mustLock(second);
    mustSucceed(await send(second, { path: "/v1/audit", token }));
  });

  it("a token's record of another vault is rejected at the unlock", async () => {
    const [one, two] = [await startTestServer(), await startTestServer()];
    for (const server of [one, two]) await mustInit(server);
    const { token } = await mustCreateToken(one, { name: "moved" });
    await Promise.all([one.stop(), two.stop()]);
    writeFileSync(documentFile(two), readFileSync(documentFile(one)));
    const server = await startTestServer({ home: two.home });
    mustRefuse(await get(server, "a", token), 403, "VAULT_LOCKED");
    await mustUnlock(server);
    mustRefuse(await get(server, "a", token), 401, "UNAUTHORIZED");
  });

  it("a damaged document of tokens does not block start or unlock, and is not replaced", async () => {
    const first = await startTestServer();
    await mustInit(first);
    const { token } = await mustCreateToken(first, { name: "lost" });
    await first.stop();
    writeFileSync(documentFile(first), "{");
    const second = await startTestServer({ home: first.home });
    await mustUnlock(second);
    mustRefuse(await get(second, "a", token), 401, "UNAUTHORIZED");
    expect(second.logged()).to.contain('"event":"tokens-unreadable"');
    const create = { method: "POST", path: "/v1/tokens", body: { name: "new" } };
    mustRefuse(await send(second, create), 500, "INTEGRITY");
    mustRefuse(await rotate(second, "lost"), 500, "INTEGRITY");
    mustRefuse(await revoke(second, "lost"), 404, "NOT_FOUND");
    expect(readFileSync(documentFile(second), "utf8")).to.equal("{");
  });

  for (const again of ["the unlock", "a revocation"]) {
    it(`a document of tokens that was unreadable at the start is read at ${again}`, async () => {
      const first = await startTestServer();
      await mustInit(first);
      const { token } = await mustCreateToken(first, { name: "late" });
      await first.stop();
      const document = readFileSync(documentFile(first));
      rmSync(documentFile(first));
      mkdirSync(documentFile(first));
      const second = await startTestServer({ home: first.home });
      expect(second.logged()).to.contain('"event":"tokens-unreadable"');
      rmSync(documentFile(first), { recursive: true });
      writeFileSync(documentFile(first), document, { mode: 0o600 });
      if (again === "a revocation") mustSucceed(await revoke(second, "late"));
      await mustUnlock(second);
      if (again === "a revocation") await mustBeGone(second, token, "revoked");
      else mustRefuse(await get(second, "a", token), 404, "NOT_FOUND");
    });
  }

  it("a revocation in a damaged document of tokens gets 500 INTEGRITY, and still ends the token", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "one" });
    writeFileSync(documentFile(server), "{");
    mustRefuse(await revoke(server, "one"), 500, "INTEGRITY");
    await mustBeGone(server, token, "revoked");
    expect(readFileSync(documentFile(server), "utf8")).to.equal("{");
  });

  it("a document of tokens that another program changed is read again, and revocations hold", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "one" });
    const before = readFileSync(documentFile(server));
    mustSucceed(await revoke(server, "one"));
    writeFileSync(documentFile(server), before);
    const two = await mustCreateToken(server, { name: "two" });
    await mustBeGone(server, token, "revoked");
    await self(server, two.token);
    expect(stored(server).tokens.map(({ name }) => name)).to.deep.equal(["two"]);
  });

  it("the records of tokens get new MACs in a rotation of the master key, and stay valid during it", async () => {
    const first = await startTestServer();
    await mustInit(first);
    await mustPut(first, "a", "v");
    const { token } = await mustCreateToken(first, { name: "ci" });
    const before = stored(first).tokens[0]?.["mac"];
    const rotation = { method: "POST", path: "/v1/rotate", body: { passphrase, keys: [] } };
    mustSucceed(await send(first, rotation));
    mustSucceed(await get(first, "a", token));
    while ((await mustStatus(first))["rotation"] !== undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(stored(first).tokens[0]?.["mac"]).not.to.equal(before);
    await first.stop();
    const second = await startTestServer({ home: first.home });
    await mustUnlock(second);
    mustSucceed(await get(second, "a", token));
    expect(second.logged()).not.to.contain("tokens-refused");
  });

  it("a forced init removes all client tokens, which then count as revoked", async () => {
    const first = await startTestServer();
    await mustInit(first);
    const { token } = await mustCreateToken(first, { name: "old" });
    await mustInit(first, { passphrase, force: true });
    await mustBeGone(first, token, "revoked");
    expect(await listed(first)).to.deep.equal([]);
    await mustCreateToken(first, { name: "old" });
    await first.stop();
    const second = await startTestServer({ home: first.home });
    await mustBeGone(second, token, "revoked");
  });
});

describe("tokens on a failing disk", () => {
  it("a revocation that cannot be written gets 503, ends the token, and is stored by a later one", async () => {
    const { files, fail, repair } = failingFiles();
    const server = await startTestServer({ files });
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "ci" });
    fail("rename", "EROFS");
    mustRefuse(await revoke(server, "ci"), 503, "UNAVAILABLE");
    await mustBeGone(server, token, "revoked");
    mustRefuse(await revoke(server, "ci"), 503, "UNAVAILABLE");
    repair();
    mustSucceed(await revoke(server, "ci"));
    await mustBeGone(server, token, "revoked");
    expect(stored(server).tokens).to.deep.equal([]);
  });

  it("a token is neither created nor rotated while its document cannot be written", async () => {
    const { files, fail, repair } = failingFiles();
    const server = await startTestServer({ files });
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "ci" });
    fail("rename", "ENOSPC");
    mustRefuse(await send(server, { method: "POST", path: "/v1/tokens", body: { name: "new" } }), 503, "UNAVAILABLE");
    mustRefuse(await rotate(server, "ci"), 503, "UNAVAILABLE");
    await self(server, token);
    repair();
    expect(await listed(server)).to.have.length(1);
    expect(await mustList({ ...server, token })).to.deep.equal([]);
  });
});

describe("a client token's paths", () => {
  const { server } = shareUnlocked();
  let token = "";

  before(async () => {
    for (const path of ["app", "app/a", "app/b", "apple", "other/exact", "other/exact/below", "zoo"])
      await mustPut(server(), path, `value of ${path}`);
    const can = ["list", "get", "put", "delete"];
    ({ token } = await mustCreateToken(server(), { name: "scoped", can, paths: ["app/", "other/exact", "new/"] }));
  });

  const outside = ["app", "apple", "other/exact/below", "zoo", "missing", "app2/a"];
  const operations: Readonly<Record<string, (path: string) => { method: string; path: string; body?: object }>> = {
    get: (path) => ({ method: "GET", path: `/v1/secrets/${path}` }),
    put: (path) => ({ method: "PUT", path: `/v1/secrets/${path}`, body: { value: "v" } }),
    delete: (path) => ({ method: "DELETE", path: `/v1/secrets/${path}` }),
    versions: (path) => ({ method: "GET", path: `/v1/versions/${path}` }),
    version: (path) => ({ method: "GET", path: `/v1/versions/${path}?version=1` }),
    undo: (path) => ({ method: "POST", path: `/v1/versions/${path}`, body: { version: 1 } }),
    changeMetadata: (path) => ({ method: "PATCH", path: `/v1/metadata/${path}`, body: { type: null } }),
    prune: (path) => ({ method: "DELETE", path: `/v1/versions/${path}` }),
    destroyVersion: (path) => ({ method: "DELETE", path: `/v1/versions/${path}?version=1` }),
    trash: (path) => ({ method: "POST", path: `/v1/trash/${path}` }),
    untrash: (path) => ({ method: "POST", path: `/v1/untrash/${path}` }),
    destroyTrashed: (path) => ({ method: "DELETE", path: `/v1/trash/${path}` }),
  };
  for (const [name, request] of Object.entries(operations)) {
    it(`${name} outside of a token's paths gets 403 FORBIDDEN, whether there is a secret or not`, async () => {
      const answers = await Promise.all(outside.map((path) => send(server(), { ...request(path), token })));
      for (const answer of answers) mustRefuse(answer, 403, "FORBIDDEN");
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
    });
  }

  it("conditions outside of a token's paths get 403 FORBIDDEN", async () => {
    for (const headers of [{ "if-match": "*" }, { "if-none-match": "*" }] as const) {
      for (const path of ["zoo", "missing"]) {
        for (const name of ["get", "put", "delete"])
          mustRefuse(await send(server(), { ...operations[name]?.(path), headers, token } as never), 403, "FORBIDDEN");
      }
    }
  });

  const malformed: Readonly<
    Record<string, { method?: string; path: string; body?: object | string; headers?: object }>
  > = {
    "a condition": { path: "/v1/secrets/zoo", headers: { "if-none-match": "no quotes" } },
    "a version": { path: "/v1/versions/zoo?version=none" },
    "a put's body": { method: "PUT", path: "/v1/secrets/zoo", body: "{" },
    "a put's type": { method: "PUT", path: "/v1/secrets/zoo", body: { value: "v", type: "none" } },
    "an undo's body": { method: "POST", path: "/v1/versions/zoo", body: {} },
    "a change of the metadata's body": { method: "PATCH", path: "/v1/metadata/zoo", body: {} },
  };
  for (const [name, request] of Object.entries(malformed)) {
    it(`a token's paths are checked before ${name}: 403 FORBIDDEN`, async () => {
      mustRefuse(await send(server(), { ...request, token } as never), 403, "FORBIDDEN");
    });
  }

  it("a path and a list's query are checked before a token's paths: 400 BAD_REQUEST", async () => {
    for (const path of ["/v1/secrets/zoo//a", "/v1/secrets?limit=0&prefix=zoo"])
      mustRefuse(await send(server(), { path, token }), 400, "BAD_REQUEST");
  });

  it("everything inside of a token's paths is allowed", async () => {
    expect(mustSucceed(await get(server(), "app/a", token))["value"]).to.equal("value of app/a");
    mustSucceed(await send(server(), { method: "PUT", path: "/v1/secrets/new/x/y", body: { value: "v" }, token }));
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/new/x/y", token }));
    mustRefuse(await get(server(), "app/missing", token), 404, "NOT_FOUND");
    mustSucceed(await send(server(), { path: "/v1/versions/other/exact?version=1", token }));
  });

  const lists: Readonly<Record<string, readonly string[]>> = {
    "": ["app/a", "app/b", "other/exact"],
    "?prefix=app": ["app/a", "app/b"],
    "?prefix=app/a": ["app/a"],
    "?prefix=other/exact": ["other/exact"],
    "?prefix=zoo": [],
    "?after=app/a": ["app/b", "other/exact"],
    "?after=apple": ["other/exact"],
    "?after=other/exact": [],
  };
  for (const [query, paths] of Object.entries(lists)) {
    it(`a list ${query || "without a query"} shows only a token's paths`, async () => {
      const entries = await mustList({ ...server(), token }, query);
      expect(entries.map(({ path }) => path)).to.deep.equal(paths);
    });
  }

  it("pages of a list contain only a token's paths", async () => {
    const page = async (query: string) =>
      mustSucceed(await send(server(), { path: `/v1/secrets?limit=${query}`, token }));
    expect(await page("2")).to.include({ next: "app/b" });
    expect(await page("2&after=app/b")).not.to.have.property("next");
    expect(await page("3")).not.to.have.property("next");
  });

  const batches: readonly (readonly [string, object[], string])[] = [
    [
      "a put outside",
      [
        { put: "app/c", value: "v" },
        { put: "zoo", value: "v" },
      ],
      "403 FORBIDDEN 1",
    ],
    ["a move out", [{ move: "app/a", to: "zoo2" }], "403 FORBIDDEN 0"],
    ["a move in", [{ move: "zoo", to: "app/zoo" }], "403 FORBIDDEN 0"],
    ["a copy out", [{ copy: "app/a", to: "zoo2" }], "403 FORBIDDEN 0"],
    ["a copy in", [{ copy: "missing", to: "app/zoo" }], "403 FORBIDDEN 0"],
    ["a delete outside", [{ delete: "missing" }], "403 FORBIDDEN 0"],
    ["a get outside among changes", [{ get: "zoo" }, { put: "app/c", value: "v" }], "403 FORBIDDEN 0"],
    ["an invalid path after one outside", [{ delete: "zoo" }, { delete: "a//b" }], "400 BAD_REQUEST 1"],
    ["a move inside", [{ copy: "app/a", to: "new/a" }], "200 undefined undefined"],
  ];
  for (const [name, operations, want] of batches) {
    it(`a token with paths gets ${want} for a batch with ${name}`, async () => {
      const { status, json } = await send(server(), { method: "POST", path: "/v1/batch", body: { operations }, token });
      expect(`${status} ${json["code"]} ${json["index"]}`).to.equal(want);
    });
  }

  it("each get of a batch is checked against a token's paths for itself", async () => {
    const operations = [{ get: "app/a" }, { get: "zoo" }, { get: "missing" }];
    const answer = await send(server(), { method: "POST", path: "/v1/batch", body: { operations }, token });
    const [inside, ...others] = mustSucceed(answer)["results"] as Json[];
    expect(inside?.["value"]).to.equal("value of app/a");
    for (const other of others) expect(other["code"]).to.equal("FORBIDDEN");
    expect(others[0]).to.deep.equal(others[1]);
  });

  it("a batch requires the scopes of its operations", async () => {
    const putter = await mustCreateToken(server(), { name: "putter", can: ["put"] });
    const run = (operations: object[]) =>
      send(server(), { method: "POST", path: "/v1/batch", body: { operations }, token: putter.token });
    mustRefuse(await run([{ get: "app/a" }]), 403, "FORBIDDEN");
    mustRefuse(await run([{ move: "app/a", to: "app/c" }]), 403, "FORBIDDEN");
    mustRefuse(await run([{ copy: "app/a", to: "app/c" }]), 403, "FORBIDDEN");
    mustSucceed(await run([{ put: "app/p", value: "v" }]));
  });
});

describe("connections", () => {
  it("connections of a revoked token are closed first when a server has too many", async () => {
    const server = await startTestServer({
      maxConnections: 8,
      limits: { keepAliveTimeout: 600_000, sendTimeout: 600_000 },
    });
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "ci" });
    const request = `GET /v1/tokens/self HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const ask = async (socket: TLSSocket) => {
      socket.write(request);
      return String(((await once(socket, "data")) as [Buffer])[0]).slice(9, 12);
    };
    const open = async () => {
      const socket = connectRaw(server).on("error", () => {});
      later(() => void socket.destroy());
      await once(socket, "secureConnect");
      return socket;
    };
    const sockets: TLSSocket[] = [];
    for (let n = 0; n < 3; n++) {
      const socket = await open();
      expect(await ask(socket)).to.equal("200");
      sockets.push(socket);
    }
    mustSucceed(await send(server, { method: "DELETE", path: "/v1/tokens/ci" }));
    const closed = once(sockets[0] as TLSSocket, "close");
    for (const socket of sockets) expect(await ask(socket)).to.equal("401");
    await open();
    await closed;
  });
});
