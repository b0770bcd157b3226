/** Transit keys and what they encrypt in the server's memory, searched for from outside: a lock leaves nothing. */
import { generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { expect } from "chai";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { type Found, scanProcess } from "../../tools/rig/scanner.js";
import { mustInit, mustLock, mustSucceed, send } from "../../tools/rig/test-client.js";

const gone: Found = { full: 0, half: 0 };
const canary = randomBytes(32).toString("hex");
const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64");

const pairs = {
  ed25519: generateKeyPairSync("ed25519").privateKey,
  "ecdsa-p256": generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
  "rsa-2048": generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
};
const symmetric = { "aes256-gcm96": randomBytes(32), hmac: randomBytes(32) };
const der = (key: KeyObject) => key.export({ format: "der", type: "pkcs8" });
const plaintext = randomBytes(48);

/** Raw parts in both byte orders, as OpenSSL holds its numbers, and the DER of each key. */
function secrets(): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>([["the plaintext", plaintext], ...Object.entries(symmetric)]);
  for (const [type, key] of Object.entries(pairs)) {
    const { d = "", p, q } = key.export({ format: "jwk" });
    for (const [name, text] of Object.entries({ d, p, q })) {
      if (text === undefined) continue;
      const bytes = Buffer.from(text, "base64url");
      found.set(`${type} ${name}`, bytes);
      found.set(`${type} ${name}, little endian`, Buffer.from(bytes).reverse());
    }
    found.set(`${type} DER`, der(key).subarray(0, 1024));
  }
  return found;
}

describe("the server's memory after transit keys were used", function () {
  this.timeout(0);
  before(function () {
    if (!existsSync("/proc/self/mem")) this.skip(); // only Linux lets a process be read from outside
  });

  async function post(server: ServerProcess, path: string, body: object) {
    return mustSucceed(await send(server, { method: "POST", path: `/v1/transit/${path}`, body }));
  }

  async function useAll(server: ServerProcess): Promise<void> {
    const input = base64("a message");
    for (let round = 0; round < 5; round++) {
      for (const type of Object.keys(pairs)) {
        await post(server, `sign/${type}`, { input });
        if (type === "ecdsa-p256")
          await post(server, `sign/${type}`, { input: base64(randomBytes(32)), prehashed: true });
      }
      await post(server, "hmac/hmac", { input });
      for (const type of ["aes256-gcm96", "rsa-2048"]) {
        const { ciphertext } = await post(server, `encrypt/${type}`, { plaintext: base64(plaintext) });
        const back = await post(server, `decrypt/${type}`, { ciphertext });
        expect(back["plaintext"]).to.equal(base64(plaintext));
      }
      const batch = Array.from({ length: 250 }, () => ({ plaintext: base64(plaintext) })); // more than one slice
      const { results } = await post(server, "encrypt/aes256-gcm96", { batch });
      const back = await post(server, "decrypt/aes256-gcm96", { batch: results });
      expect(back["results"]).to.deep.equal(batch);
    }
  }

  it("holds no key in any form and no plaintext once it is locked, and keys while it is unlocked", async () => {
    const server = await startProcess([], { STRONGROOM_IDLE_TIMEOUT_MS: "0", STRONGROOM_SERVER_NAMES: canary });
    await mustInit(server);
    for (const [type, key] of Object.entries(pairs))
      await post(server, `keys/${type}`, { type, key: base64(der(key)) });
    for (const [type, key] of Object.entries(symmetric)) await post(server, `keys/${type}`, { type, key: base64(key) });
    await useAll(server);
    const patterns = secrets();
    const unlocked = scanProcess(server.child.pid ?? 0, new Map([...patterns, ["canary", Buffer.from(canary)]]));
    expect(unlocked.get("canary")?.full, "the canary").to.be.above(0);
    expect(unlocked.get("rsa-2048 p, little endian")?.full, "an RSA prime while unlocked").to.be.above(0);
    for (const name of ["aes256-gcm96", "hmac"]) expect(unlocked.get(name), name).to.deep.equal(gone);
    await mustLock(server);
    const left = [...scanProcess(server.child.pid ?? 0, patterns)].filter(([, { full, half }]) => full + half > 0);
    expect(left).to.deep.equal([]);
  });
});
