/** Secrets in the server's memory, searched for from outside: keys stay in their thread, and a lock wipes them. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { shared } from "../../tools/rig/clean-up.js";
import { decodeKeys } from "../../tools/rig/decoder.js";
import { hitsIn, takeSnapshots } from "../../tools/rig/heap-snapshot.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { type Found, scanProcess, whatStays } from "../../tools/rig/scanner.js";
import {
  closeConnections,
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  openRaw,
  type Send,
  send,
} from "../../tools/rig/test-client.js";

const passphrase = "correct horse battery staple of the scanner";
const canary = "canary-that-the-scanner-must-find";

/** Short in the normal suite; 20 and 100 in the long form. */
const rounds = Number(process.env["STRONGROOM_ROUNDS"] ?? 1);
const crashes = Number(process.env["STRONGROOM_CRASHES"] ?? 2);

const gone: Found = { full: 0, half: 0 };
/** The key schedule for AES instructions begins with the key itself. */
const once: Found = { full: 1, half: 0 };

type Findings = { readonly masterKey: Found; readonly kek: Found; readonly passphrase: Found };

for (const way of ["TCP", "the Unix socket"] as const) {
  describe(`the server's memory, after requests over ${way}`, function () {
    this.timeout(0);
    before(function () {
      if (!existsSync("/proc/self/mem")) this.skip(); // only Linux lets a process be read from outside
    });

    for (let round = 1; round <= rounds; round++) {
      it(`holds the master key once and neither KEK nor passphrase while unlocked, and nothing while locked (round ${round})`, async () => {
        const server = await startWithCanary(way);
        await mustInit(server, { passphrase });
        const keys = decodeKeys(server.home, passphrase);
        await requests(server, 30);
        expect(look(server, keys)).to.deep.equal({ masterKey: once, kek: gone, passphrase: gone });
        await mustLock(server);
        expect(look(server, keys)).to.deep.equal({ masterKey: gone, kek: gone, passphrase: gone });
        await mustUnlock(server, passphrase);
        await requests(server, 30);
        expect(look(server, keys)).to.deep.equal({ masterKey: once, kek: gone, passphrase: gone });
        await mustInit(server, { passphrase: "another, for the forced re-init", force: true });
        expect(look(server, keys)).to.deep.equal({ masterKey: gone, kek: gone, passphrase: gone });
      });
    }

    it("holds no wrong passphrase", async () => {
      const server = await startWithCanary(way);
      await mustInit(server, { passphrase });
      const wrong = "a wrong passphrase, which is a secret too";
      mustRefuse(
        await send(server, { method: "POST", path: "/v1/unlock", body: { passphrase: wrong } }),
        401,
        "UNAUTHORIZED",
      );
      await requests(server, 30);
      await expectGone(server, wrong);
    });

    const unread: readonly (readonly [string, Partial<Send>])[] = [
      ["a wrong token", { path: "/v1/unlock", token: "wrong" }],
      ["an unknown route", { path: "/v1/unlok" }],
      ["a foreign Host", { path: "/v1/unlock", headers: { host: "evil.test" } }],
      ["a vault without a header", { path: "/v1/unlock" }],
    ];
    describe("holds no passphrase of a request refused for", () => {
      const server = shared(() => startWithCanary(way));
      for (const [name, request] of unread) {
        it(name, async () => {
          const unwelcome = `${name}: a passphrase of a refused request`;
          await send(server(), { method: "POST", path: "", ...request, body: { passphrase: unwelcome } });
          await sleep(100);
          await expectGone(server(), unwelcome);
        });
      }
    });

    if (way !== "TCP" && rounds === 1) return; // what follows does not depend on the way: both in the long form

    for (let round = 1; round <= rounds; round++) {
      it(`holds nothing after an idle lock (round ${round})`, async () => {
        const server = await startWithCanary(way, "700");
        await mustInit(server, { passphrase });
        const keys = decodeKeys(server.home, passphrase);
        while ((await mustStatus(server))["locked"] === false) await new Promise((resolve) => setTimeout(resolve, 50));
        await new Promise((resolve) => setTimeout(resolve, 200));
        expect(look(server, keys)).to.deep.equal({ masterKey: gone, kek: gone, passphrase: gone });
      });
    }

    it("holds no key after the lockout refuses a right passphrase", async () => {
      const server = await startWithCanary(way);
      await mustInit(server, { passphrase });
      const keys = decodeKeys(server.home, passphrase);
      await mustLock(server);
      const unlock = (text: string) => send(server, { method: "POST", path: "/v1/unlock", body: { passphrase: text } });
      const guesses = Array.from({ length: 12 }, () => unlock("wrong"));
      await Promise.all(guesses);
      expect((await unlock(passphrase)).status).to.equal(429);
      await mustStatus(server); // what is left of a body on the stack is overwritten right after its response
      expect(look(server, keys)).to.deep.equal({ masterKey: gone, kek: gone, passphrase: gone });
    });

    it(`holds nothing after each of ${crashes} crashes of the key worker during requests, and the next unlock works`, async () => {
      const server = await startWithCanary(way);
      await mustInit(server, { passphrase });
      await mustPut(server, "a", "v");
      const keys = decodeKeys(server.home, passphrase);
      for (let crash = 0; crash < crashes; crash++) {
        const under = [
          ...Array(5).fill({ path: "/v1/secrets/a" }),
          { method: "POST", path: "/v1/unlock", body: { passphrase } },
        ];
        const answers = under.map((request) => send(server, request));
        await new Promise((resolve) => setTimeout(resolve, crash % 20));
        await server.order({ do: "crash" });
        await Promise.all(answers);
        if ((await mustStatus(server))["locked"] === false) continue; // the unlock came to the fresh thread
        expect(look(server, keys)).to.deep.equal({ masterKey: gone, kek: gone, passphrase: gone });
        await mustUnlock(server, passphrase);
        expect((await mustGet(server, "a"))["value"]).to.equal("v");
      }
    });

    it("holds no master key after a lock during a derivation, and nothing once that has ended", async () => {
      const server = await startWithCanary(way, "0", { STRONGROOM_SCRYPT_LOG_N: "17" });
      await mustInit(server, { passphrase });
      const keys = decodeKeys(server.home, passphrase);
      closeConnections(server); // the derivation above may have taken longer than the server keeps an idle one
      const unlock = (text: string) => send(server, { method: "POST", path: "/v1/unlock", body: { passphrase: text } });
      const refused = unlock(passphrase);
      await sleep(150);
      await mustLock(server);
      expect(look(server, keys).masterKey).to.deep.equal(gone);
      mustRefuse(await refused, 403, "VAULT_LOCKED");
      mustRefuse(await unlock("wrong"), 401, "UNAUTHORIZED"); // waits for the first derivation
      expect(look(server, keys)).to.deep.equal({ masterKey: gone, kek: gone, passphrase: gone });
    });
  });

  describe(`the server's memory, after a value over ${way}`, function () {
    this.timeout(0);
    before(function () {
      if (!existsSync("/proc/self/mem")) this.skip(); // as above
    });

    const server = shared(async () => {
      const fresh = await startWithCanary(way);
      await mustInit(fresh, { passphrase });
      await mustPut(fresh, "kept", "another");
      return fresh;
    });
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
    const sized = (body: string) => `Content-Length: ${body.length}\r\n\r\n${body}`;
    const cut = (body: string) => sized(body).slice(0, -1);
    type Row = readonly [
      what: string,
      piecesOf: (body: string, value: string) => readonly string[],
      between?: ((server: ServerProcess) => Promise<unknown>) | null,
      request?: string,
    ];
    const batch = (value: string) =>
      JSON.stringify({ operations: [{ put: "a", value }, { put: "b", value }, { get: "kept" }] });
    const rows: readonly Row[] = [
      ["was stored", (body) => [sized(body)]],
      ["was stored by a batch", (_, value) => [sized(batch(value))], null, "POST /v1/batch"],
      [
        "was refused because the vault was locked before the end of its body",
        (body) => [cut(body), body.slice(-1)],
        mustLock,
      ],
      ["was cut off by the client", (body) => [cut(body)]],
      [
        "came in a chunked body that outgrew its first allocation",
        (body) => [
          `Transfer-Encoding: chunked\r\n\r\n${chunk(body.slice(0, -1))}`,
          `${chunk(`${" ".repeat(9000)}}`)}0\r\n\r\n`,
        ],
      ],
    ];
    for (const [what, piecesOf, between, request = "PUT /v1/secrets/a"] of rows) {
      it(`${what}: holds no copy of it`, async () => {
        const value = `a value that ${what} and must not be found, `.repeat(4);
        const [first = "", ...rest] = piecesOf(JSON.stringify({ value }), value);
        await mustUnlock(server(), passphrase);
        const socket = (await openRaw(server())).on("error", () => {}).resume();
        const head = `${request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server().token}\r\n`;
        socket.write(head + first);
        await sleep(200);
        if (between) await between(server());
        for (const piece of rest) socket.write(piece);
        await sleep(200);
        socket.destroy();
        await sleep(200);
        await expectGone(server(), value);
      });
    }
  });
}

describe("heap snapshots, unlocked and after 200 mixed operations", function () {
  this.timeout(0);

  it("hold no passphrase, master key, KEK or secret value; the canary is found", async () => {
    const server = await startWithCanary("TCP");
    await mustInit(server, { passphrase });
    await mustUnlock(server, passphrase);
    const values = await requests(server, 200);
    const { kek, masterKey } = decodeKeys(server.home, passphrase);
    const { frontEnd, keyWorker } = await takeSnapshots(server);
    expect(hitsIn(frontEnd, canary), "canary").to.be.above(0);
    const secrets = [passphrase, kek, masterKey, ...values];
    expect([hitsIn(frontEnd, ...secrets), hitsIn(keyWorker, ...secrets)]).to.deep.equal([0, 0]);
  });
});

async function startWithCanary(
  way: "TCP" | "the Unix socket",
  idleTimeoutMs = "0",
  more: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  const settings = { STRONGROOM_SERVER_NAMES: canary, STRONGROOM_IDLE_TIMEOUT_MS: idleTimeoutMs, ...more };
  return { ...(await startProcess([], settings)), overSocket: way === "the Unix socket" };
}

/** Asserts that no copy of the text, or of half of it, stays in the server's memory. */
async function expectGone({ child }: ServerProcess, text: string): Promise<void> {
  const stays = await whatStays(() => {
    const { full, half } = scanProcess(child.pid ?? 0, new Map([["text", Buffer.from(text)]])).get("text") ?? {
      full: -1,
      half: -1,
    };
    return full + half === 0 ? [] : [`${full} copies and ${half} halves`];
  });
  expect(stays).to.deep.equal([]);
}

/** Searches for keys and passphrase, and proves with the canary that the search works. */
function look(server: ServerProcess, { masterKey, kek }: ReturnType<typeof decodeKeys>): Findings {
  const wanted = { masterKey, kek, passphrase: Buffer.from(passphrase), canary: Buffer.from(canary) };
  const found = scanProcess(server.child.pid ?? 0, new Map(Object.entries(wanted)));
  expect(found.get("canary")?.full, "the scanner's canary").to.be.above(0);
  const of = (name: string) => found.get(name) ?? { full: -1, half: -1 };
  return { masterKey: of("masterKey"), kek: of("kek"), passphrase: of("passphrase") };
}

/** Puts, gets, lists and batches; returns the values that were written and read. */
async function requests(server: ServerProcess, count: number): Promise<string[]> {
  const values: string[] = [];
  for (let i = 0; i < count; i += 2) {
    const value = `value number ${i} of ${Math.random().toString(36)} that is secret`;
    values.push(value);
    await mustPut(server, `mixed/${i % 40}`, { value, type: "other" });
    if (i % 5 === 0) values.push(await batch(server, `mixed/${i % 40}`));
    else if (i % 3 === 0) await send(server, { path: "/v1/secrets" });
    else expect((await mustGet(server, `mixed/${i % 40}`))["value"]).to.equal(value);
  }
  return values;
}

/** Moves a secret away and back with a new value beside it, reads it, and returns the new value. */
async function batch(server: ServerProcess, path: string): Promise<string> {
  const value = `value of a batch ${Math.random().toString(36)} that is secret`;
  const operations = [{ get: path }, { move: path, to: `${path}/moved` }, { put: `${path}/new`, value }];
  for (const some of [operations, [{ get: `${path}/new` }], [{ move: `${path}/moved`, to: path }]]) {
    mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations: some } }));
  }
  return value;
}
