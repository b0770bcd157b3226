/** Keys and passphrases in the server's memory, searched for from outside: keys stay in their thread, and a lock wipes them. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { expect } from "chai";
import { later } from "../../tools/rig/clean-up.js";
import { decodeHeader, decodeKeys, headerText } from "../../tools/rig/decoder.js";
import { hitsIn, takeSnapshots } from "../../tools/rig/heap-snapshot.js";
import type { ServerProcess } from "../../tools/rig/process.js";
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
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { changing, mustCreateKey, rotating, unlockWith, untilRotated } from "../support/key-requests.js";
import { canary, describeMemory, type Look, passphrase, type Scene, type Secrets, startWithCanary } from "./search.js";

const another = "another passphrase that the scanner looks for";

/** Short in the normal suite; 20 and 100 in the long form. */
const rounds = Number(process.env["STRONGROOM_ROUNDS"] ?? 1);
const crashes = Number(process.env["STRONGROOM_CRASHES"] ?? 2);

/** Enough that a rotation still runs when the search begins. */
const secretsOfRotation = 100;

type Way = "TCP" | "the Unix socket";

for (const way of ["TCP", "the Unix socket"] as const) {
  describeMemory(`memory after requests over ${way}`, {
    ...rounded("has the master key once and neither KEK nor passphrase while unlocked, and nothing while locked", () =>
      lockedAndUnlocked(way),
    ),
    "has no wrong passphrase": () => wrongPassphrase(way),
    "has no passphrase of a request that was refused unread": () => unreadPassphrases(way),
    // The other scenes do not depend on the way; the long form runs them over both.
    ...(way === "TCP" && rounds === 1 ? {} : onceForBothWays(way)),
  });
}

describeMemory("memory through changes of the keys", {
  ...rounded(
    "has the master key once after a change of the passphrase and a new key, and nothing after a lock",
    changedKeys,
  ),
  ...rounded("has the old and the new master key during a rotation, and the old one nowhere after it", rotation),
});

describeMemory("memory after a passphrase on an open connection", {
  "has no end of a passphrase on an open connection from a client that supports all ciphers": () =>
    openConnections(undefined, "TLSv1.3", false),
  "has no end of a passphrase on an open connection from a client that supports all ciphers of TLS 1.2": () =>
    openConnections(undefined, "TLSv1.2", false),
  "has no end of a passphrase on an open connection from a client that supports only AES": () =>
    openConnections("TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384", "TLSv1.3", true),
  "has no end of a passphrase on an open connection from a client that supports only AES in TLS 1.2": () =>
    openConnections("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2", true),
});

describe("heap snapshots", function () {
  this.timeout(0);

  it("heap snapshots after 200 mixed operations hold the canary, and no passphrase, key, KEK or value", async () => {
    const server = await startWithCanary();
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

function rounded(name: string, scene: Scene): Record<string, Scene> {
  return Object.fromEntries(Array.from({ length: rounds }, (_, n) => [`${name} (round ${n + 1})`, scene]));
}

function onceForBothWays(way: Way): Record<string, Scene> {
  return {
    ...rounded("has nothing after an idle lock", () => idleLock(way)),
    "has no key after the lockout refuses a right passphrase": () => lockout(way),
    [`has nothing after each of ${crashes} crashes of the key worker during requests, and the next unlock works`]: () =>
      crashesDuringRequests(way),
    "has no master key after a lock during a derivation, and nothing once that has ended": () =>
      lockDuringDerivation(way),
  };
}

async function started(way: Way, settings: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  return { ...(await startWithCanary(settings)), overSocket: way === "the Unix socket" };
}

/** Looks for keys and the passphrase of a vault. */
function lookerFor(server: ServerProcess): { unlocked: (when: string) => Look; locked: (when: string) => Look } {
  const { masterKey, kek } = decodeKeys(server.home, passphrase);
  return {
    unlocked: (when) => ({ when, server, once: { masterKey }, gone: { kek, passphrase } }),
    locked: (when) => ({ when, server, gone: { masterKey, kek, passphrase } }),
  };
}

async function* lockedAndUnlocked(way: Way): AsyncGenerator<Look, void> {
  const server = await started(way);
  await mustInit(server, { passphrase });
  const look = lookerFor(server);
  await requests(server, 30);
  yield look.unlocked("after init");
  await mustLock(server);
  yield look.locked("after a lock");
  await mustUnlock(server, passphrase);
  await requests(server, 30);
  yield look.unlocked("after an unlock");
  await mustInit(server, { passphrase: "another, for the forced re-init", force: true });
  yield look.locked("after a forced init");
}

async function* wrongPassphrase(way: Way): AsyncGenerator<Look, void> {
  const server = await started(way);
  await mustInit(server, { passphrase });
  const wrong = "a wrong passphrase, which is a secret too";
  mustRefuse(await send(server, unlockWith(wrong)), 401, "UNAUTHORIZED");
  await requests(server, 30);
  yield { when: "after further requests", server, gone: { wrong }, settles: true };
}

async function* unreadPassphrases(way: Way): AsyncGenerator<Look, void> {
  const server = await started(way);
  const refused: Readonly<Record<string, Partial<Send>>> = {
    "a wrong token": { path: "/v1/unlock", token: "wrong" },
    "an unknown route": { path: "/v1/unlok" },
    "a foreign Host": { path: "/v1/unlock", headers: { host: "evil.test" } },
    "a vault without a header": { path: "/v1/unlock" },
  };
  for (const [why, request] of Object.entries(refused)) {
    const unwelcome = `${why}: a passphrase of a refused request`;
    await send(server, { method: "POST", path: "", ...request, body: { passphrase: unwelcome } });
    await sleep(100);
    yield { when: `after a refusal for ${why}`, server, gone: { unwelcome }, settles: true };
  }
}

async function* idleLock(way: Way): AsyncGenerator<Look, void> {
  const server = await started(way, { STRONGROOM_IDLE_TIMEOUT_MS: "700" });
  await mustInit(server, { passphrase });
  const look = lookerFor(server);
  while ((await mustStatus(server))["locked"] === false) await sleep(50);
  await sleep(200);
  yield look.locked("after the idle lock");
}

async function* lockout(way: Way): AsyncGenerator<Look, void> {
  const server = await started(way);
  await mustInit(server, { passphrase });
  const look = lookerFor(server);
  await mustLock(server);
  await Promise.all(Array.from({ length: 12 }, () => send(server, unlockWith("wrong"))));
  expect((await send(server, unlockWith(passphrase))).status).to.equal(429);
  await mustStatus(server); // a body's rest on the stack is overwritten right after its response
  yield look.locked("after the refusal");
}

async function* crashesDuringRequests(way: Way): AsyncGenerator<Look, void> {
  const server = await started(way);
  await mustInit(server, { passphrase });
  await mustPut(server, "a", "v");
  const look = lookerFor(server);
  for (let crash = 0; crash < crashes; crash++) {
    const under = [...Array<Send>(5).fill({ path: "/v1/secrets/a" }), unlockWith(passphrase)];
    const answers = under.map((request) => send(server, request));
    await sleep(crash % 20);
    await server.order({ do: "crash" });
    await Promise.all(answers);
    if ((await mustStatus(server))["locked"] === false) continue; // the unlock came to the fresh thread
    yield look.locked(`after crash ${crash}`);
    await mustUnlock(server, passphrase);
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
  }
}

async function* lockDuringDerivation(way: Way): AsyncGenerator<Look, void> {
  const server = await started(way, { STRONGROOM_SCRYPT_LOG_N: "17" });
  await mustInit(server, { passphrase });
  const look = lookerFor(server);
  const { masterKey } = decodeKeys(server.home, passphrase);
  closeConnections(server); // the derivation above may have taken longer than the server keeps an idle one
  const refused = send(server, unlockWith(passphrase));
  await sleep(150);
  await mustLock(server);
  mustRefuse(await refused, 403, "VAULT_LOCKED"); // before the search, which closes the connections
  yield { when: "while it is derived", server, gone: { masterKey } };
  mustRefuse(await send(server, unlockWith("wrong")), 401, "UNAUTHORIZED"); // waits for the first derivation
  yield look.locked("once that has ended");
}

async function* changedKeys(): AsyncGenerator<Look, void> {
  const server = await startWithCanary();
  await mustInit(server, { passphrase });
  const before = decodeKeys(server.home, passphrase);
  const { key } = await mustCreateKey(server, "recovery", passphrase);
  mustSucceed(await send(server, changing(key, another)));
  mustSucceed(await send(server, changing(another, passphrase)));
  const { masterKey, kek } = decodeKeys(server.home, passphrase);
  const gone = { kek, before: before.kek, key: keyBytes(key), passphrase, another };
  yield { when: "after the changes", server, once: { masterKey }, gone };
  await mustLock(server);
  yield { when: "after a lock", server, gone: { masterKey, ...gone } };
  mustSucceed(await send(server, changing(passphrase, another)));
  await mustUnlock(server, key);
  yield { when: "after an unlock with the key", server, once: { masterKey }, gone };
}

async function* rotation(): AsyncGenerator<Look, void> {
  const server = await startWithCanary();
  await mustInit(server, { passphrase });
  for (let n = 0; n < secretsOfRotation; n++) await mustPut(server, `s${n}`, "v");
  await mustLock(server); // so that the rotation waits
  mustSucceed(await send(server, rotating([], passphrase)));
  const { masterKey, oldKey, kek } = decodeHeader(headerText(server.home), passphrase);
  if (oldKey === null) throw new Error("the header has no old key");
  const both: Secrets = { masterKey, oldKey };
  const gone = { kek, passphrase, another };
  yield { when: "while the rotation waits", server, gone: { ...both, ...gone } };
  await mustUnlock(server, passphrase);
  yield { when: "while it runs", server, once: both, gone };
  expect((await mustStatus(server))["rotation"], "it was running during the search").not.to.equal(undefined);
  await mustLock(server);
  yield { when: "after a lock", server, gone: { ...both, ...gone } };
  await mustUnlock(server, passphrase);
  await untilRotated(server);
  yield { when: "after the rotation", server, once: { masterKey }, gone: { oldKey, ...gone } };
  await mustLock(server);
  yield { when: "after the last lock", server, gone: { ...both, ...gone } };
}

/** Bytes of an AES block: of this many lengths, one ends each request's TLS record one byte before the end of a block. */
const blockBytes = 16;
const endBytes = 8;

type TlsVersion = "TLSv1.2" | "TLSv1.3";

/** `closes`: whether the server has to end such a connection after a passphrase. */
async function* openConnections(
  ciphers: string | undefined,
  maxVersion: TlsVersion,
  closes: boolean,
): AsyncGenerator<Look, void> {
  const server = await startWithCanary();
  const ends: Record<string, string> = {};
  for (let length = 0; length < blockBytes; length++) {
    const characters = blockBytes + endBytes + length;
    const sent = randomBytes(characters).toString("base64url").slice(0, characters);
    const response = await unlockOn(await connected(server, ciphers, maxVersion), server, sent);
    expect(/^connection: close/im.test(response), response).to.equal(closes);
    ends[`the end of ${characters} bytes`] = sent.slice(-endBytes);
  }
  yield { when: "while the connections are open", server, gone: {}, ends };
}

async function connected(
  { port, certificate }: ServerProcess,
  ciphers: string | undefined,
  maxVersion: TlsVersion,
): Promise<TLSSocket> {
  const own = ciphers === undefined ? {} : { ciphers };
  const socket = connect({ host: "127.0.0.1", port, servername: "localhost", ca: certificate, maxVersion, ...own });
  later(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

/** Returns the response, a refusal: there is no vault. A connection that the server closes is closed. */
async function unlockOn(socket: TLSSocket, { token }: ServerProcess, sent: string): Promise<string> {
  const body = JSON.stringify({ passphrase: sent });
  const head = `POST /v1/unlock HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n`;
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  const [first] = (await once(socket, "data")) as [Buffer];
  const response = first.toString("latin1");
  if (/^connection: close/im.test(response)) await once(socket, "close");
  return response;
}

/** The 256 bits of a key's text, by Crockford's base32 with every fifth letter left out. */
function keyBytes(text: string): Buffer {
  const letters = [...text.slice(3).replaceAll("-", "")].filter((_, i) => i % 5 < 4);
  const bits = letters.map((letter) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(letter).toString(2).padStart(5, "0"));
  const octets = bits.join("").match(/.{8}/g) ?? [];
  return Buffer.from(octets.slice(0, 32).map((octet) => Number.parseInt(octet, 2)));
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
