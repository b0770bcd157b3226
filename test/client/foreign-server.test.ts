/** The client library and the command with a foreign or broken server: what is not of the API becomes an error of the client. */
import { once } from "node:events";
import { chmodSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { StrongroomClient } from "strongroom/client";
import { readCommit, readManifest } from "../../src/manifest.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { strongroom } from "../cli/run-command.js";
import { clientMethods, mustFail } from "../support/library.js";

type Foreign = {
  readonly home: string;
  readonly client: StrongroomClient;
  /** @param others responses of 200 by path, where they differ */
  respond: (status: number, body: unknown, others?: Readonly<Record<string, object>>) => void;
};

const time = "2026-01-02T03:04:05.678Z";
const metadata = { type: "password", expiresAt: time };
const secret = { path: "a", value: "v", metadata, createdAt: time, updatedAt: time, version: 1, etag: "e" };
const entry = { path: "a", metadata, createdAt: time, updatedAt: time, version: 1, etag: "e" };
const token = { name: "ci", can: ["get"], paths: ["a"], createdAt: time, expiresAt: null, lastUsedAt: time };
const status = {
  ...{ initialized: true, locked: false, secretCount: 1, vaultPath: "/v", serverRunning: true, port: 13_100 },
  ...{ idleTimeoutMs: 0, lastActivity: time, lastLock: { reason: "start", at: time }, version: "1.0.0" },
};

/** Members that may be missing, and times that may be null. */
const legal = /(?:next|damaged|type|expiresAt|publicKey|versions\.1) undefined$|tokens.*At null$/;

/** A response as it must be, and what asks for it. */
const samples: Readonly<
  Record<string, readonly [sample: object, ask: (client: StrongroomClient) => Promise<unknown>]>
> = {
  "a secret": [secret, async (client) => (await client.get("a")).reveal().length],
  "a list": [{ entries: [entry, entry], next: "a", damaged: ["b"] }, (client) => client.list()],
  "a batch": [
    { ok: true, results: [secret, { error: "no", code: "NOT_FOUND" }] },
    async (client) => (await client.getMany(["a", "b"])).map((found) => found?.reveal().length),
  ],
  "the status": [status, (client) => client.status()],
  "the tokens": [{ tokens: [token] }, (client) => client.listTokens()],
  "a transit key": [
    {
      ...{ name: "k", type: "ed25519", latestVersion: 1, minDecryptionVersion: 1, exportable: false },
      ...{ deletionAllowed: false, versions: { 1: { createdAt: time, publicKey: "PEM" } } },
    },
    (client) => client.showTransitKey("k"),
  ],
};

/** Yields the value without each member, inner ones included, and with values of other types in its place. */
function* listChanges(value: unknown): Generator<{ readonly changed: unknown; readonly what: string }> {
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const put = (to: unknown) => (Array.isArray(value) ? value.with(Number(name), to) : { ...value, [name]: to });
    for (const to of others(member)) yield { changed: put(to), what: `${name} ${JSON.stringify(to)}` };
    for (const { changed, what } of listChanges(member)) yield { changed: put(changed), what: `${name}.${what}` };
  }
}

function others(member: unknown): unknown[] {
  const all: readonly unknown[] = [undefined, null, 7, -1, "7", true, [], [null], {}, { constructor: null }];
  return all.filter((each) => typeof each !== typeof member || Array.isArray(each) !== Array.isArray(member));
}

describe("foreign or broken servers", () => {
  let server: Foreign;
  before(async function () {
    needs(this, process.platform !== "win32", "Unix");
    server = await startForeign();
  });

  async function startForeign(): Promise<Foreign> {
    const home = temporaryDirectory();
    let next: { readonly status: number; readonly body: string; readonly others: Readonly<Record<string, object>> } = {
      ...{ status: 200, body: "", others: {} },
    };
    const http = createServer(({ url = "" }, response) => {
      const { status, body, others } = next;
      const other = others[url];
      const [code, text] = other === undefined ? [status, body] : [200, JSON.stringify(other)];
      response.writeHead(code, { "content-type": "application/json" }).end(text);
    });
    const socket = join(home, "strongroom.sock");
    http.listen(socket);
    await once(http, "listening");
    chmodSync(socket, 0o600);
    const client = new StrongroomClient({ home, socket, token: "t" });
    later(async () => {
      await client.close();
      http.close();
    });
    const respond = (status: number, body: unknown, others: Readonly<Record<string, object>> = {}) => {
      next = { status, body: typeof body === "string" ? body : JSON.stringify(body), others };
    };
    return { home, client, respond };
  }

  const given: Readonly<Record<string, readonly unknown[]>> = {
    batch: [[{ get: "a" }]],
    getMany: [["a"]],
    resolve: ["strongroom://a#b"],
    transitBatch: ["encrypt", "k", [{ plaintext: "a" }]],
    setUse: ["a", { host: "h" }],
    decideApproval: ["a", { approve: true }],
    verifyAudit: [[]],
    putBytes: ["a", new Uint8Array(1)],
    init: ["p"],
    configureTransitKey: ["k", {}],
  };
  const withoutOne = ["metrics", "close", "pages"]; // a text, nothing, and lists
  it("every method throws PROTOCOL for JSON of another shape", async () => {
    for (const method of clientMethods().filter((name) => !withoutOne.includes(name))) {
      const call = Reflect.get(server.client, method) as (...args: readonly unknown[]) => Promise<unknown>;
      for (const body of [
        "null",
        "[]",
        "7",
        '"text"',
        "{}",
        '{"__proto__":{"path":"a"}}',
        '{"ok":"yes","entries":{}}',
      ]) {
        server.respond(200, body);
        const error = await mustFail(call.apply(server.client, [...(given[method] ?? ["a", "b"])]), "PROTOCOL", /./);
        expect(error.message, `${method}, ${body}`).to.match(/response|has no/);
      }
    }
  });

  for (const [name, [sample, ask]] of Object.entries(samples)) {
    it(`each change of ${name} returns a result or throws PROTOCOL`, async () => {
      server.respond(200, sample);
      await ask(server.client);
      let refused = 0;
      for (const { changed, what } of listChanges(sample)) {
        server.respond(200, changed);
        const failure = await ask(server.client).catch((error: unknown) => error);
        if (!(failure instanceof Error)) expect(what).to.match(legal);
        else expect(failure, `${what}: ${failure.stack}`).to.include({ name: "StrongroomError", code: "PROTOCOL" });
        refused += Number(failure instanceof Error);
      }
      expect(refused).to.be.greaterThan(10);
    });
  }

  it("a PROTOCOL error says what is wrong and what to do, and never repeats a value", async () => {
    server.respond(200, { ...secret, etag: 5, value: "canary" });
    const error = await mustFail(
      server.client.get("a"),
      "PROTOCOL",
      /check the address .*response\.etag is not a string/,
    );
    expect(error.message).not.to.contain("canary");
    server.respond(200, { ok: "canary" });
    await mustFail(
      server.client.lock(),
      "PROTOCOL",
      /response\.ok is not true or false; the change may still have happened/,
    );
    server.respond(200, { ...status, lastLock: {} });
    await mustFail(server.client.status(), "PROTOCOL", /response\.lastLock\.reason is missing/);
  });

  it("members and values that a later version adds are accepted", async () => {
    server.respond(200, { ...secret, metadata: { type: "passkey", further: [1] }, further: {} });
    expect((await server.client.get("a")).metadata.type).to.equal("passkey");
  });

  it("an error of another shape, or with an unknown code, throws PROTOCOL", async () => {
    for (const body of [null, [], { error: 5, code: "NOT_FOUND" }, { error: "no", code: "NOT_FOUND", index: "1" }]) {
      server.respond(404, body);
      await mustFail(server.client.get("a"), "PROTOCOL", /not a Strongroom server/);
    }
    server.respond(200, { ok: true, results: [{ error: "it is too late", code: "TOO_LATE" }] });
    await mustFail(server.client.getMany(["a"]), "PROTOCOL", /it is too late/);
    for (const code of ["TOO_LATE", "constructor", "__proto__"]) {
      server.respond(409, { error: "it is too late", code });
      await mustFail(server.client.get("a"), "PROTOCOL", /it is too late/);
    }
  });

  const commands: Readonly<Record<string, readonly [args: readonly string[], status: number, body: unknown]>> = {
    get: [["get", "a"], 200, { ...secret, value: null }],
    ls: [["ls"], 200, { entries: [null] }],
    status: [["status"], 200, []],
    "token ls": [["token", "ls"], 200, { tokens: [{ ...token, expiresAt: "soon" }] }],
    "agent run": [["agent", "run", "--no-sandbox", "--use", "a", "--", "true"], 200, { token: "t", port: 70_000 }],
    describe: [["describe", "a"], 409, { error: "it is too late", code: "TOO_LATE" }],
    find: [["find", "a"], 409, { error: "it is too late", code: "constructor" }],
  };
  for (const [name, [args, code, body]] of Object.entries(commands)) {
    it(`${name} exits with 1 and one line for an invalid response`, async () => {
      server.respond(code, body);
      const { code: exit, stderr, stdout } = await strongroom(server, args, { environment: { STRONGROOM_TOKEN: "t" } });
      expect({ exit, stdout }, stderr).to.deep.equal({ exit: 1, stdout: "" });
      expect(stderr)
        .to.match(/^strongroom: [^\n]+\n$/)
        .and.not.to.match(/unexpectedly/);
    });
  }

  const { version: ownVersion } = readManifest();
  const ownCommit = readCommit();
  const noEndpoint = { error: "there is no such endpoint", code: "NOT_FOUND" };
  const nothing = /^strongroom: there is no such endpoint; [^\n]*lists all secrets\n$/;
  const older =
    /; the server is version 0\.0\.9, older than this command \([\d.]+\): restart it with {2}strongroom up --restart\n$/;
  const another =
    /; the server is another build of version [\d.]+ \(commit 0123456789ab, this command: [\w-]+\): restart it with {2}strongroom up --restart\n$/;
  for (const [what, version, commit, says] of [
    ["version 0.0.9", "0.0.9", undefined, older],
    ["version 99.0.0", "99.0.0", "0123456789ab", nothing],
    ["another commit", ownVersion, "0123456789ab", ownCommit === null ? nothing : another],
    ["the same commit", ownVersion, ownCommit, nothing],
    ["no commit", ownVersion, undefined, nothing],
  ] as const) {
    it(`a failed request reports an older or another build only for one: ${what}`, async () => {
      const document = { openapi: "3.1.1", info: { "x-commit": commit }, paths: {} };
      server.respond(404, noEndpoint, { "/v1/status": { ...status, version }, "/v1/openapi.json": document });
      const ended = await strongroom(server, ["use", "ls"], { environment: { STRONGROOM_TOKEN: "t" } });
      expect(ended.code).to.equal(4);
      expect(ended.stderr).to.match(says);
    });
  }
});
