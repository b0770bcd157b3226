/** The client library's methods, as a program that uses the package calls them. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { expect } from "chai";
import type { Secret, StrongroomClient } from "strongroom/client";
import { operations } from "../../src/contract/operations.js";
import { contract, operationCodes } from "../../tools/rig/contract-judge.js";
import { passphrase, shareTestServer, startTestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut, mustStatus } from "../../tools/rig/test-client.js";
import { clientMethods, makeClient, mustFail } from "../support/library.js";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Only the page sends them. */
const reviewOperations = ["reviewFacts", "tradeReviewCode", "reviewStorm"];

describe("the client library", () => {
  const server = shareTestServer({}, mustInit);

  it("the client has a method for every operation of the contract", () => {
    const others = Object.keys(operations).filter((operation) => !reviewOperations.includes(operation));
    expect(clientMethods()).to.include.members(others);
  });

  it("tokens and audit have the methods for client tokens and the log under shorter names", () => {
    const { tokens, audit } = makeClient(server());
    expect(Object.keys(tokens)).to.deep.equal(["create", "list", "self", "rotate", "revoke"]);
    expect(Object.keys(audit)).to.deep.equal(["read", "verify"]);
  });

  it("init creates a vault and unlocks it, and with force replaces it", async () => {
    const fresh = await startTestServer();
    const client = makeClient(fresh);
    expect(await client.init(passphrase)).to.deep.include({ ok: true, vaultPath: fresh.vaultPath });
    await client.put("a", "v");
    expect((await client.init(passphrase, { force: true })).message).to.contain("gen-1");
    expect(await mustStatus(fresh)).to.include({ locked: false, secretCount: 0 });
  });

  it("lock and unlock change the status", async () => {
    const client = makeClient(server());
    expect(await client.lock()).to.include({ ok: true });
    expect(await client.status()).to.include({ initialized: true, locked: true, port: server().port });
    expect(await client.unlock(passphrase)).to.include({ ok: true });
    expect((await client.status()).locked).to.equal(false);
  });

  it("audit reads records and judges checkpoints", async () => {
    const client = makeClient(server());
    await client.put("audited", "v");
    await client.lock();
    await client.unlock(passphrase);
    const { records, head } = await client.audit.read({ limit: 1000 });
    expect(records.find(({ path }) => path === "audited")).to.include({ event: "put", token: "root", status: 200 });
    expect(head?.seq).to.equal(records.at(-1)?.seq);
    const [{ seq = 0 } = {}] = (await client.audit.read({ after: 2, limit: 1 })).records;
    expect(seq).to.equal(3);
    const claimed = { log: head?.log ?? "", seq, time: "", chain: head?.chain ?? "", mac: "" };
    const keys = [String(records.find(({ event }) => event === "checkpoint")?.key), "another"];
    const { verdicts } = await client.audit.verify(keys.map((key) => ({ ...claimed, key })));
    expect(verdicts).to.deep.equal(["wrong", "unknown"]);
  });

  it("tokens creates, lists, rotates and revokes client tokens, and says which one is used", async () => {
    const client = makeClient(server());
    const warnings: Date[] = [];
    const created = await client.tokens.create("ci", { can: ["list"], paths: ["app/"], ttlSeconds: 6 * 86_400 });
    const own = makeClient(server(), { token: created.token, onTokenExpiring: (at) => warnings.push(at) });
    expect(await own.tokens.self()).to.deep.include({ name: "ci", can: ["list"], paths: ["app/"] });
    await own.list();
    expect(warnings.map((at) => at.toISOString())).to.deep.equal([created.expiresAt]);
    const forbidden = await own.get("a").catch((error: unknown) => error);
    expect(forbidden).to.include({ code: "FORBIDDEN", status: 403 });
    expect((await client.tokens.list()).tokens.map(({ name }) => name)).to.deep.equal(["ci"]);
    const { token } = await client.tokens.rotate("ci", { overlapSeconds: 60 });
    expect(await client.tokens.revoke("ci")).to.include({ ok: true, name: "ci" });
    const dead = await makeClient(server(), { token })
      .list()
      .catch((error: unknown) => error);
    expect(dead).to.include({ code: "UNAUTHORIZED", credential: "token", reason: "revoked" });
    const odd = await client.tokens.revoke("no/name").catch((error: unknown) => error);
    expect(odd).to.include({ code: "BAD_REQUEST" });
    expect(await client.tokens.self()).to.include({ name: "root" });
  });

  for (const [kind, fail] of [
    ["throws", () => expect.fail("of the program")],
    ["rejects", async () => expect.fail("of the program")],
  ] as const) {
    it(`an onTokenExpiring that ${kind} becomes a warning of the process, and the request succeeds`, async () => {
      const tokens = makeClient(server()).tokens;
      const { token } = await tokens.create(kind, { can: ["list"], ttlSeconds: 86_400 });
      const warned = once(process, "warning");
      const own = makeClient(server(), { token, onTokenExpiring: fail });
      expect((await own.list({ prefix: "none/" })).entries).to.deep.equal([]);
      const [warning] = await warned;
      expect(warning).to.include({ name: "StrongroomWarning" });
      expect(warning.detail).to.contain("of the program");
    });
  }

  it("onLocked is called once for all requests that a locked vault refuses, which are then sent again", async () => {
    const asked: string[] = [];
    const own: StrongroomClient = makeClient(server(), {
      onLocked: async ({ code }) => {
        asked.push(code);
        return (await own.unlock(passphrase)).ok;
      },
    });
    await own.put("while/locked", "v");
    await own.lock();
    const stored = Promise.all([own.get("while/locked"), own.put("while/locked", "w"), own.list()]);
    expect((await stored)[0].path).to.equal("while/locked");
    expect(asked).to.deep.equal(["VAULT_LOCKED"]);
    await own.lock();
    await own.get("while/locked");
    expect(asked).to.have.length(2);
  });

  it("onLocked that does not unlock is called once, and the requests throw what the server said", async () => {
    const calls: number[] = [];
    const own = makeClient(server(), { onLocked: async () => calls.push(1) < 0 });
    await own.lock();
    for (let n = 0; n < 2; n++) {
      expect(await own.get("any").catch((error: unknown) => error)).to.include({ code: "VAULT_LOCKED" });
    }
    expect(calls).to.have.length(1);
    await own.unlock(passphrase);
  });

  it("put needs a token that can list, unless it replaces the metadata", async () => {
    const { token } = await makeClient(server()).tokens.create("writer", { can: ["put"] });
    const own = makeClient(server(), { token });
    expect(await own.put("written", "v").catch((error: unknown) => error)).to.include({ code: "FORBIDDEN" });
    expect(await own.put("written", "v", { replaceMetadata: true })).to.include({ ok: true });
  });

  it("versions, undo and prune work on the earlier versions of a secret", async () => {
    const client = makeClient(server());
    await client.put("history/é", "first");
    await client.put("history/é", "second");
    expect((await client.undo("history/é", 1)).version).to.equal(3);
    expect((await client.get("history/é")).reveal()).to.equal("first");
    const { versions } = await client.versions("history/é");
    expect(versions.map(({ version }) => version)).to.deep.equal([3, 2, 1]);
    expect((await client.prune("history/é")).message).to.match(/^2 /);
  });

  it("destroyVersion keeps number and times, and the four methods of the trash work", async () => {
    const client = makeClient(server());
    for (const value of ["first", "second"]) await client.put("trash/é", value);
    expect((await client.destroyVersion("trash/é", 1)).message).to.equal("version 1 is destroyed");
    expect((await client.versions("trash/é")).versions[1]).to.include({ version: 1, destroyed: true });
    const { deletedAt } = await client.trash("trash/é");
    expect((await client.listTrash({ prefix: "trash/" })).entries[0]).to.include({ path: "trash/é", deletedAt });
    expect(await client.untrash("trash/é")).to.include({ path: "trash/é" });
    const { etag } = await client.get("trash/é");
    await client.trash("trash/é", { ifMatch: etag });
    expect((await client.destroyTrashed("trash/é", { ifMatch: etag })).message).to.equal("the secret is destroyed");
    expect((await client.listTrash()).entries).to.deep.equal([]);
  });

  it("changePassphrase, createKey, keys and deleteKey change the ways into the vault", async () => {
    const fresh = await startTestServer();
    const client = makeClient(fresh);
    await client.init(passphrase);
    const { id, key } = await client.createKey(passphrase, "recovery");
    await client.changePassphrase(key, "a new passphrase");
    expect(await client.unlock("a new passphrase")).to.include({ ok: true });
    expect((await client.keys()).keys.map(({ label }) => label)).to.deep.equal(["passphrase", "recovery"]);
    expect((await client.rotate("a new passphrase", [key])).removed).to.deep.equal([]);
    await client.deleteKey(id);
    const failed = await client.unlock(key).catch((error: unknown) => error);
    expect(failed).to.include({ code: "UNAUTHORIZED", credential: "passphrase" });
  });

  it("shutdown stops the server", async () => {
    const fresh = await startTestServer();
    expect(await makeClient(fresh).shutdown()).to.include({ ok: true });
    await fresh.stopped;
  });

  it("openapi returns the server's contract", async () => {
    const { info, ...rest } = await makeClient(server()).openapi();
    const { info: documented, ...others } = contract;
    expect(rest).to.deep.equal(others);
    expect(info).to.deep.include(documented); // and has the commit of the build, if it has one
  });

  it("put, get and delete keep value and metadata", async () => {
    const client = makeClient(server());
    const metadata = { type: "password", description: "d" } as const;
    expect(await client.put("one/two", "v", metadata)).to.deep.include({
      ok: true,
      path: "one/two",
      bytes: 1,
      metadata,
    });
    const secret = await client.get("one/two");
    expect(secret.reveal()).to.equal("v");
    expect(secret).to.deep.include({ path: "one/two", metadata });
    expect(secret.createdAt).to.equal(secret.updatedAt);
    expect(await client.delete("one/two")).to.include({ ok: true, path: "one/two" });
    expect((await client.list({ prefix: "one/" })).entries).to.deep.equal([]);
  });

  it("getOrUndefined returns a secret, undefined for a missing one, and throws any other error", async () => {
    const client = makeClient(server());
    await mustPut(server(), "maybe", "v");
    expect((await client.getOrUndefined("maybe"))?.reveal()).to.equal("v");
    expect(await client.getOrUndefined("no/such")).to.equal(undefined);
    const failed = await client.getOrUndefined("/").catch((error: unknown) => error);
    expect(failed).to.include({ name: "StrongroomError", code: "BAD_REQUEST" });
  });

  it("every method is documented with its errors and an example, an operation with all of its codes", () => {
    const source = readFileSync("src/client/client.ts", "utf8");
    for (const method of ["constructor", ...clientMethods()]) {
      const found = new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\n {2}(?:async )?\\*?${method}\\(`).exec(source);
      expect(found?.[1], method)
        .to.match(/@throws|throws nothing/)
        .and.match(/@example\n[\s\S]*(?:client\.\w|new StrongroomClient)/);
      for (const code of operationCodes(method)) expect(found?.[1], method).to.match(new RegExp(`\\b${code}\\b`));
    }
  });

  it("putBytes stores any bytes, which revealBytes returns; reveal returns their base64", async () => {
    const client = makeClient(server());
    for (const length of [0, 1, 2, 3, 1000]) {
      const value = new Uint8Array(randomBytes(length));
      const { bytes: stored } = await client.putBytes("binary", value, { type: "certificate" });
      const secret = await client.get("binary");
      expect([stored, secret.encoding]).to.deep.equal([length, "base64"]);
      expect(secret.revealBytes()).to.deep.equal(value);
      expect(secret.reveal()).to.equal(Buffer.from(value).toString("base64"));
      expect(JSON.stringify(secret)).to.contain('"encoding":"base64"');
    }
    await client.put("binary", "text");
    expect((await client.get("binary")).revealBytes()).to.deep.equal(bytes("text"));
  });

  it("field returns a part of a JSON value, and resolve what a reference names", async () => {
    const client = makeClient(server());
    await client.put("json/a#b", '{"user":{"name":"me"},"id":12345678901234567890}');
    const secret = await client.get("json/a#b");
    expect([secret.field("user.name"), secret.field("id")]).to.deep.equal(["me", "12345678901234567890"]);
    expect(() => secret.field("user.mail")).to.throw("json/a#b has no field user.mail: it has user.name");
    expect(await client.resolve("strongroom://json/a%23b#user.name")).to.equal("me");
    expect(await client.resolve("strongroom://json/a%23b")).to.equal(secret.reveal());
    await mustFail(client.resolve("strongroom://json/a%23b#none"), "NOT_FOUND", /no field none/);
    for (const wrong of ["json/a", "strongroom://", "strongroom://a#", "strongroom://a#b#c", "strongroom://%zz"]) {
      await mustFail(client.resolve(wrong), "BAD_REQUEST", /a reference must be/);
    }
  });

  it("a batch stores and reads binary values and times of expiry", async () => {
    const client = makeClient(server());
    await client.batch([{ put: "batched", value: "AAE=", encoding: "base64", expiresAt: new Date("2030-01-01") }]);
    const [secret] = await client.getMany(["batched"]);
    expect(secret?.revealBytes()).to.deep.equal(new Uint8Array([0, 1]));
    expect(secret?.metadata).to.deep.equal({ expiresAt: "2030-01-01T00:00:00.000Z" });
  });

  it("put keeps the time of expiry, null drops it, and changeMetadata changes only that", async () => {
    const client = makeClient(server());
    const expiresAt = "2030-01-01T00:00:00.000Z";
    expect((await client.put("expiring", "v", { expiresAt: new Date(expiresAt) })).metadata).to.deep.equal({
      expiresAt,
    });
    expect((await client.put("expiring", "w")).metadata).to.deep.equal({ expiresAt });
    expect((await client.put("expiring", "w", { expiresAt: null })).metadata).to.deep.equal({});
    const { metadata, etag } = await client.changeMetadata("expiring", { expiresAt, description: "d" });
    expect(metadata).to.deep.equal({ description: "d", expiresAt });
    const changed = await client.changeMetadata("expiring", { description: null }, { ifMatch: etag });
    expect(changed.metadata).to.deep.equal({ expiresAt });
    const failed = await client.changeMetadata("expiring", { type: null }, { ifMatch: etag }).catch(({ code }) => code);
    expect(failed).to.equal("PRECONDITION_FAILED");
    expect((await client.get("expiring")).reveal()).to.equal("w");
  });

  const hard = [
    ["quotes and backslashes", '"\\"'],
    ["every control character", String.fromCharCode(...Array.from({ length: 32 }, (_, i) => i), 127)],
    ["characters of one to four bytes", "aé€😀"],
    ["nothing", ""],
    ["a megabyte", "x".repeat(2 ** 20)],
  ] as const;
  for (const [name, value] of hard) {
    it(`a value of ${name} is stored unchanged, from a string and from bytes`, async () => {
      const client = makeClient(server());
      await client.put("text", value);
      await client.put("bytes", bytes(value));
      expect((await mustGet(server(), "text"))["value"] === value).to.equal(true);
      expect((await client.get("bytes")).reveal() === value).to.equal(true);
    });
  }

  it("a passphrase in bytes equals the same text, and is left to the caller to wipe", async () => {
    const fresh = await startTestServer();
    const client = makeClient(fresh);
    const text = 'pass "é" \\ \u0001';
    const given = bytes(text);
    await client.init(given);
    expect(given).to.deep.equal(bytes(text));
    await client.lock();
    await client.unlock(text);
    await client.unlock(given);
  });

  it("paths mean the same to client and server", async () => {
    const client = makeClient(server());
    for (const path of ["a b", "a+b", "ä/ö", "100%", "q?x=1&y#z", "😀"]) {
      await client.put(path, path);
      expect((await mustGet(server(), path))["path"]).to.equal(path);
      expect((await client.get(path)).reveal()).to.equal(path);
      const { entries } = await client.list({ prefix: path });
      expect(entries.map((entry) => entry.path)).to.deep.equal([path]);
      await client.delete(path);
    }
  });

  it("pages returns a whole list, and requests each page on demand", async () => {
    const client = makeClient(server());
    const paths = Array.from({ length: 7 }, (_, i) => `page/${i}`);
    for (const path of paths) await mustPut(server(), path, "v");
    const found: string[][] = [];
    for await (const { entries } of client.pages({ prefix: "page/", limit: 3 })) {
      found.push(entries.map(({ path }) => path));
    }
    expect(found).to.deep.equal([paths.slice(0, 3), paths.slice(3, 6), paths.slice(6)]);
    for await (const { next } of client.pages({ prefix: "page/", limit: 3 })) {
      expect(next).to.equal("page/2");
      break;
    }
  });

  it("list takes after and limit", async () => {
    const client = makeClient(server());
    for (const path of ["after/a", "after/b", "after/c"]) await mustPut(server(), path, "v");
    const { entries, next } = await client.list({ prefix: "after/", after: "after/a", limit: 1 });
    expect(entries.map(({ path }) => path)).to.deep.equal(["after/b"]);
    expect(next).to.equal("after/b");
  });

  it("await using closes the client", async () => {
    const client = makeClient(server());
    await client.status();
    await client[Symbol.asyncDispose]();
    const error = await client.status().catch((reason: unknown) => reason);
    expect(error).to.include({ code: "ABORTED" });
  });
});

describe("client objects", () => {
  const server = shareTestServer();

  it("operations before init that require a vault reject with BAD_REQUEST", async () => {
    const client = makeClient(server());
    const works = [
      client.unlock("p"),
      client.changePassphrase("p", "q"),
      client.keys(),
      client.createKey("p", "label"),
      client.rotate("p"),
      client.snapshot(),
    ];
    for (const result of await Promise.allSettled(works)) {
      expect(result).to.have.nested.property("reason.code", "BAD_REQUEST");
      expect(result).to.have.nested.property("reason.message").that.contains("not initialized");
    }
  });

  it("a client object never shows its token", async () => {
    const { token } = server();
    const client = makeClient(server(), { token });
    await client.status();
    expect(inspect(client, { showHidden: true, depth: 9 }) + JSON.stringify(client)).not.to.contain(token);
    const errors = [client.get("a"), client.list({ signal: AbortSignal.abort() })];
    for (const result of await Promise.allSettled(errors)) {
      expect(inspect(result, { showHidden: true, depth: 9 }))
        .to.contain("StrongroomError")
        .and.not.contain(token);
    }
  });
});

describe("secret objects", () => {
  const server = shareTestServer({}, mustInit);
  const canary = "value-canary";

  const printers: readonly (readonly [string, (secret: Secret) => string])[] = [
    [
      "inspect, with everything hidden shown",
      (secret) => inspect(secret, { showHidden: true, getters: true, depth: 9 }),
    ],
    [
      "inspect of what holds it",
      (secret) => inspect({ list: [secret], map: new Map([[secret, secret]]) }, { depth: 9 }),
    ],
    ["String", (secret) => String(secret)],
    ["a template", (secret) => `${secret}`],
    ["JSON.stringify", (secret) => JSON.stringify({ secret })],
    ["a copy by spreading", (secret) => JSON.stringify({ ...secret })],
    ["structuredClone", (secret) => inspect(structuredClone(secret), { showHidden: true })],
    ["an error's message", (secret) => String(new Error(`cannot use ${secret}`).stack)],
  ];
  for (const [name, print] of printers) {
    it(`a secret object shows its path and never its value by ${name}`, async () => {
      await mustPut(server(), "shown/path", canary);
      const secret = await makeClient(server()).get("shown/path");
      expect(print(secret)).to.contain("shown/path").and.not.contain(canary);
      expect(secret.reveal()).to.equal(canary);
    });
  }
});
