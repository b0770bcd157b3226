/**
 * Values, transit keys and credentials in the server's memory, searched for from outside after they were written, read, used
 * and sent on.
 */
import { generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { bech32 } from "@scure/base";
import { expect } from "chai";
import type { ServerProcess } from "../../tools/rig/process.js";
import {
  type Json,
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  mustUnlock,
  openRaw,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { type VaultServer, vault } from "../../tools/rig/vault-client.js";
import { wrapFileKey } from "../support/age-stanza.js";
import { mustCreateKey, rotating, untilRotated } from "../support/key-requests.js";
import { throughBroker } from "./broker-scene.js";
import { everyRequest } from "./requests-scene.js";
import { describeMemory, type Look, passphrase, startWithCanary } from "./search.js";

/** Puts over an earlier value, and a third as many of each other change. Short in the normal suite; 200 in the long form. */
const puts = Number(process.env["STRONGROOM_PUTS"] ?? 24);

/** Gets of a value each, and as many again in batches and of versions. Short in the normal suite; 200 in the long form. */
const gets = Number(process.env["STRONGROOM_GETS"] ?? 22);

/** Checked secrets beside the fixed ones, of 24 to 63 characters. None in the normal suite; 10,000 in the long form. */
const checked = Number(process.env["STRONGROOM_CHECKED_SECRETS"] ?? 0);

/** Requests through the broker. Short in the normal suite; 200 in the long form. */
const brokerRequests = Number(process.env["STRONGROOM_BROKER_REQUESTS"] ?? 24);

describeMemory("memory after values", {
  "has no value once the vault is locked after gets and puts": () => changes(replaceAndGet, puts),
  "has no value once the vault is locked after undos, batches, moves, other metadata and a rotation": () =>
    changes(changeOtherwise, puts / 3, rotate),
  "has no value once the vault is locked after writes of Vault's clients": () =>
    changes(writeThroughVaultPort, puts / 3),
  "has no value or key after responses with them over TCP, unlocked and locked": responses,
  "has no value, plaintext or key after every request of the table, unlocked and locked": everyRequest,
  "has no value after checks of all of them, unlocked and locked": checks,
  "has no transit key in any form and no plaintext once locked, and keys while unlocked": transitKeys,
  "has no value of a request over TCP": () => requestsWithValues(false),
  "has no value of a request over the Unix socket": () => requestsWithValues(true),
  "has no credential after requests through the broker, unlocked and locked": () => throughBroker(brokerRequests),
});

/** Each secret gets a value of its own length: a block of freed memory is found again by its size. */
const paths = Array.from({ length: 12 }, (_, i) => `app/${i}`);
const shortest = 30;
const step = 15;

/** All values that were sent, and what to search for of each: nothing else has it. */
class Values {
  readonly samples: Record<string, string> = {};

  /** Returns a value of this secret's length. */
  random(path: string): string {
    const value = randomBytes(shortest + step * paths.indexOf(path)).toString("base64url");
    this.samples[`value ${Object.keys(this.samples).length} of ${path}`] = value.slice(0, 40);
    return value;
  }

  objectFor(path: string): { readonly a: string; readonly b: { readonly c: string } } {
    const value = this.random(path);
    return { a: value, b: { c: value } };
  }

  textFor(path: string): string {
    return JSON.stringify(this.objectFor(path));
  }
}

async function* changes(
  change: (server: VaultServer, path: string, values: Values) => Promise<void>,
  times: number,
  finish = async (_: VaultServer) => {},
): AsyncGenerator<Look, void> {
  const server = await withVaultPort();
  const values = new Values();
  for (const path of paths) await mustPut(server, path, values.textFor(path));
  for (let n = 0; n < times; n += paths.length) for (const path of paths) await change(server, path, values);
  await finish(server);
  await mustLock(server);
  yield { when: "after a lock", server, gone: values.samples };
}

async function withVaultPort(): Promise<VaultServer & ServerProcess> {
  const server = await startWithCanary({ STRONGROOM_VAULT_PORT: "0" });
  await mustInit(server, { passphrase });
  return { ...server, vaultPort: Number((await mustStatus(server))["vaultPort"]) };
}

async function rotate(server: VaultServer): Promise<void> {
  mustSucceed(await send(server, rotating([], passphrase)));
  await untilRotated(server);
}

async function replaceAndGet(server: VaultServer, path: string, values: Values): Promise<void> {
  await mustPut(server, path, values.textFor(path));
  for (let i = 0; i < 3; i++) await mustGet(server, path);
}

async function changeOtherwise(server: VaultServer, path: string, values: Values): Promise<void> {
  const before = (await mustGet(server, path))["version"];
  const batch = (operation: object): Send => ({ method: "POST", path: "/v1/batch", body: { operations: [operation] } });
  const description = `not secret: ${Object.keys(values.samples).length}`;
  const requests: readonly Send[] = [
    batch({ put: path, value: values.textFor(path) }),
    { method: "PATCH", path: `/v1/metadata/${path}`, body: { description } },
    { path: `/v1/versions/${path}?version=${before}` },
    { method: "POST", path: `/v1/versions/${path}`, body: { version: before } },
    batch({ copy: path, to: `${path}/copy` }),
    batch({ delete: `${path}/copy` }),
    batch({ move: path, to: `${path}/moved` }),
    batch({ move: `${path}/moved`, to: path }),
  ];
  for (const request of requests) mustSucceed(await send(server, request));
}

async function writeThroughVaultPort(server: VaultServer, path: string, values: Values): Promise<void> {
  const own = `secret/data/${path}`;
  const change = { b: { d: values.random(path) } };
  expect((await vault(server, "POST", own, { body: { data: values.objectFor(path) } })).status).to.equal(200);
  const before = await vault(server, "GET", own);
  expect((await vault(server, "PATCH", own, { body: { data: change } })).status).to.equal(200);
  const query = `?version=${before.json.data.metadata.version}`;
  expect((await vault(server, "GET", own + query)).status).to.equal(200);
  expect((await vault(server, "GET", `secret/subkeys/${path}`)).status).to.equal(200);
}

/** Small ones, one that is sent by itself, and one whose escapes make it longer. */
const answered = new Map([
  ...Array.from({ length: 8 }, (_, i) => [`small/${i}`, randomBytes(36).toString("base64url")] as const),
  ["large", randomBytes(40_000).toString("base64url")],
  ["larger", randomBytes(150_000).toString("base64url")],
  ["lines", Array.from({ length: 20 }, () => `${randomBytes(36).toString("base64url")}\n`).join("")],
]);

async function* responses(): AsyncGenerator<Look, void> {
  const server = await withVaultPort();
  for (const [path, value] of answered) await mustPut(server, path, value);
  const names = [...answered.keys()];
  for (let n = 0; n < gets; n++) await mustGet(server, names[n % names.length] ?? "");
  for (let n = 0; n < gets; n += names.length) {
    const operations = names.map((path) => ({ get: path }));
    mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations } }));
    for (const path of names) mustSucceed(await send(server, { path: `/v1/versions/${path}?version=1` }));
  }
  for (const [path, value] of answered) await useOfVaultsClients(server, path, value);
  const samples = Object.fromEntries([...answered].map(([path, value]) => [path, value.slice(0, 40)]));
  yield { when: "while unlocked", server, gone: samples, settles: true };
  const { key } = await mustCreateKey(server, "recovery", passphrase);
  await mustLock(server);
  yield { when: "after a lock", server, gone: { ...samples, key } };
}

/** Writes, patches and reads a value as clients of Vault do, as text and as members of objects. */
async function useOfVaultsClients(server: VaultServer, path: string, value: string): Promise<void> {
  const own = `secret/data/vault/${path}`;
  expect((await vault(server, "POST", own, { body: { data: { value } } })).status).to.equal(200);
  expect((await vault(server, "POST", own, { body: { data: { a: value, b: { c: value } } } })).status).to.equal(200);
  expect((await vault(server, "PATCH", own, { body: { data: { b: { d: "1" } } } })).status).to.equal(200);
  for (const query of ["", "?version=2"]) {
    expect((await vault(server, "GET", `${own}${query}`)).text).to.contain(value.slice(0, 40));
  }
  expect((await vault(server, "GET", `secret/subkeys/vault/${path}`)).status).to.equal(200);
}

/** Sizes on both sides of a hash's block, of the part that is judged, and of what is encoded. */
const checkedSizes = [16, 32, 40, 63, 64, 65, 100, 1_000, 50_000, 100_000];

/** Most values to search for: each makes the search longer. */
const mostSought = 1000;

async function* checks(): AsyncGenerator<Look, void> {
  const sizes = checkedSizes.flatMap((size) => [size, size, size, size]);
  const values = sizes.map((size) => randomBytes(size).toString("base64url").slice(0, size));
  for (let i = 0; i < checked; i++) values.push(randomBytes(18 + (i % 30)).toString("base64url"));
  const first = await startWithCanary();
  await mustInit(first);
  for (let from = 0; from < values.length; from += 1_000) {
    const operations = values.slice(from, from + 1_000).map((value, i) => ({ put: `checked/${from + i}`, value }));
    mustSucceed(await send(first, { method: "POST", path: "/v1/batch", body: { operations } }));
  }
  await first.stop();
  const server = await startWithCanary({ STRONGROOM_HOME: first.home });
  await mustUnlock(server);
  for (let n = 0; n < 5; n++) expect(await checkAll(server)).to.equal(values.length);
  const step = Math.ceil(values.length / mostSought);
  const sought = values.flatMap((value, i) => (i % step === 0 ? [[`value ${i}`, value.slice(0, 40)]] : []));
  yield { when: "while unlocked", server, gone: Object.fromEntries(sought) };
  await mustLock(server);
  yield { when: "after a lock", server, gone: Object.fromEntries(sought) };
}

/** Returns how many secrets were checked. */
async function checkAll(server: ServerProcess): Promise<number> {
  const body = { key: randomBytes(32).toString("base64"), parts: ["strength", "reuse", "search", "breach"] };
  let count = 0;
  for (let after: unknown = ""; after !== undefined; ) {
    const page = mustSucceed(await send(server, { method: "POST", path: "/v1/check", body: { ...body, after } }));
    count += (page["entries"] as unknown[]).length;
    after = page["next"];
  }
  return count;
}

const pairs = {
  ed25519: generateKeyPairSync("ed25519").privateKey,
  "ecdsa-p256": generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
  "rsa-2048": generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
};
const identity = generateKeyPairSync("x25519").privateKey;
const symmetric = { "aes256-gcm96": randomBytes(32), hmac: randomBytes(32) };
const plaintext = randomBytes(48);
const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64");
const der = (key: KeyObject) => key.export({ format: "der", type: "pkcs8" });

async function* transitKeys(): AsyncGenerator<Look, void> {
  const server = await startWithCanary();
  await mustInit(server);
  for (const [type, key] of Object.entries({ ...pairs, x25519: identity }))
    await transit(server, `keys/${type}`, { type, key: base64(der(key)) });
  for (const [type, key] of Object.entries(symmetric))
    await transit(server, `keys/${type}`, { type, key: base64(key) });
  for (let round = 0; round < 5; round++) await useAllKeys(server);
  const fileKeys = await unwrapFileKeys(server);
  const numbers = privateNumbers();
  const prime = "rsa-2048 p, little endian";
  const number = "x25519 d";
  const held = { once: { [number]: numbers[number] ?? "" }, some: { [prime]: numbers[prime] ?? "" } };
  yield { when: "while unlocked", server, gone: { ...symmetric, ...fileKeys, ...identityTexts() }, ...held };
  await mustLock(server);
  yield {
    when: "after a lock",
    server,
    gone: { ...numbers, ...symmetric, ...fileKeys, ...identityTexts(), plaintext },
  };
}

/** Raw parts in both byte orders, as OpenSSL holds its numbers, and the DER of each key. */
function privateNumbers(): Record<string, Uint8Array> {
  const found: Record<string, Uint8Array> = {};
  for (const [type, key] of Object.entries({ ...pairs, x25519: identity })) {
    const { d, p, q } = key.export({ format: "jwk" });
    for (const [name, text] of Object.entries({ d, p, q })) {
      if (text === undefined) continue;
      const bytes = Buffer.from(text, "base64url");
      found[`${type} ${name}`] = bytes;
      found[`${type} ${name}, little endian`] = Buffer.from(bytes).reverse();
    }
    found[`${type} DER`] = der(key).subarray(0, 1024);
  }
  return found;
}

/** Unwraps 100 file keys, some in a batch; returns them by their numbers. */
async function unwrapFileKeys(server: ServerProcess): Promise<Record<string, Uint8Array>> {
  const { versions } = mustSucceed(await send(server, { path: "/v1/transit/keys/x25519" }));
  const { publicKey = "" } = (versions as Record<string, { readonly publicKey?: string }>)["1"] ?? {};
  const fileKeys = Array.from({ length: 100 }, () => randomBytes(16));
  const stanzas = fileKeys.map((fileKey) => wrapFileKey(publicKey, fileKey));
  const opened = fileKeys.map((fileKey) => ({ fileKey: base64(fileKey) }));
  for (const [i, stanza] of stanzas.slice(0, 50).entries())
    expect(await transit(server, "unwrap/x25519", stanza)).to.deep.equal(opened[i]);
  const { results } = await transit(server, "unwrap/x25519", { batch: stanzas.slice(50) });
  expect(results).to.deep.equal(opened.slice(50));
  return Object.fromEntries(
    fileKeys.flatMap((key, i) => [
      [`file key ${i}`, key],
      [`text of file key ${i}`, Buffer.from(base64(key).slice(0, -3))],
    ]),
  );
}

/** How age writes the identity. */
function identityTexts(): Record<string, string> {
  const text = bech32.encodeFromBytes("age-secret-key-", der(identity).subarray(-32));
  return { "identity's text": text, "identity's text in capitals": text.toUpperCase() };
}

async function useAllKeys(server: ServerProcess): Promise<void> {
  const input = base64("a message");
  for (const type of Object.keys(pairs)) await transit(server, `sign/${type}`, { input });
  await transit(server, "sign/ecdsa-p256", { input: base64(randomBytes(32)), prehashed: true });
  await transit(server, "hmac/hmac", { input });
  for (const type of ["aes256-gcm96", "rsa-2048"]) {
    const { ciphertext } = await transit(server, `encrypt/${type}`, { plaintext: base64(plaintext) });
    const back = await transit(server, `decrypt/${type}`, { ciphertext });
    expect(back["plaintext"]).to.equal(base64(plaintext));
  }
  const batch = Array.from({ length: 250 }, () => ({ plaintext: base64(plaintext) })); // more than one slice
  const { results } = await transit(server, "encrypt/aes256-gcm96", { batch });
  const back = await transit(server, "decrypt/aes256-gcm96", { batch: results });
  expect(back["results"]).to.deep.equal(batch);
}

async function transit(server: ServerProcess, path: string, body: object): Promise<Json> {
  return mustSucceed(await send(server, { method: "POST", path: `/v1/transit/${path}`, body }));
}

type RawRequest = {
  readonly target?: string;
  readonly pieces: (body: string, value: string) => readonly string[];
  readonly between?: (server: ServerProcess) => Promise<unknown>;
};

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const sized = (body: string) => `Content-Length: ${body.length}\r\n\r\n${body}`;
const cut = (body: string) => sized(body).slice(0, -1);
const twoPuts = (value: string) =>
  JSON.stringify({ operations: [{ put: "a", value }, { put: "b", value }, { get: "kept" }] });

const rawRequests: Readonly<Record<string, RawRequest>> = {
  "was stored": { pieces: (body) => [sized(body)] },
  "was stored by a batch": { target: "POST /v1/batch", pieces: (_, value) => [sized(twoPuts(value))] },
  "was refused because the vault was locked before the end of its body": {
    pieces: (body) => [cut(body), body.slice(-1)],
    between: mustLock,
  },
  "was cut off by the client": { pieces: (body) => [cut(body)] },
  "came in a chunked body that outgrew its first allocation": {
    pieces: (body) => [
      `Transfer-Encoding: chunked\r\n\r\n${chunk(body.slice(0, -1))}`,
      `${chunk(`${" ".repeat(9000)}}`)}0\r\n\r\n`,
    ],
  },
};

async function* requestsWithValues(overSocket: boolean): AsyncGenerator<Look, void> {
  const server = { ...(await startWithCanary()), overSocket };
  await mustInit(server, { passphrase });
  await mustPut(server, "kept", "another");
  for (const [what, { target = "PUT /v1/secrets/a", pieces, between }] of Object.entries(rawRequests)) {
    const value = `a value that ${what} and must not be found, `.repeat(4);
    const [first = "", ...rest] = pieces(JSON.stringify({ value }), value);
    await mustUnlock(server, passphrase);
    const socket = (await openRaw(server)).on("error", () => {}).resume();
    socket.write(`${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n${first}`);
    await sleep(200);
    await between?.(server);
    for (const piece of rest) socket.write(piece);
    await sleep(200);
    socket.destroy();
    await sleep(200);
    yield { when: `after a value that ${what}`, server, gone: { value }, settles: true };
  }
}
