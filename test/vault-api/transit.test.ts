/** Transit for Vault's clients: names of fields, forms of results, errors. */
import { createHash, createPublicKey, createVerify, verify } from "node:crypto";
import { expect } from "chai";
import { shared } from "../../tools/rig/clean-up.js";
import { startVaultServer, type VaultRequest, vault } from "../../tools/rig/vault-client.js";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const message = base64("attack at dawn");
const ciphertext = /^vault:v1:[A-Za-z0-9+/]+=*$/;

describe("transit for Vault's clients", () => {
  const server = shared(() => startVaultServer());

  const ask = (method: string, path: string, request: VaultRequest = {}) =>
    vault(server(), method, `transit/${path}`, request);

  /** Returns `data` of a response. */
  async function must(path: string, body: object = {}) {
    const answer = await ask("POST", path, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json.data;
  }

  async function mustFail(path: string, body: object, error: string): Promise<void> {
    const answer = await ask("POST", path, { body });
    expect([answer.status, answer.json.errors]).to.deep.equal([400, [error]]);
  }

  before(async () => {
    const types = ["aes256-gcm96", "ed25519", "ecdsa-p256", "rsa-2048", "hmac"];
    for (const type of types) await must(`keys/${type}`, { type, exportable: "true" });
    await must("keys/plain");
  });

  it("shows keys as Vault does", async () => {
    const { data } = (await ask("GET", "keys/plain")).json;
    const version = { "1": data.keys["1"] };
    expect(data).to.deep.equal({
      ...{ name: "plain", type: "aes256-gcm96", keys: version, latest_version: 1, derived: false, exportable: false },
      ...{ min_available_version: 0, min_decryption_version: 1, min_encryption_version: 0, deletion_allowed: false },
      ...{ supports_decryption: true, supports_derivation: true, supports_encryption: true, supports_signing: false },
      ...{ allow_plaintext_backup: false, auto_rotate_period: 0, imported_key: false },
    });
    expect(data.keys["1"]).to.be.closeTo(Date.now() / 1000, 600);
    const ed25519 = (await ask("GET", "keys/ed25519")).json.data.keys["1"];
    expect(Buffer.from(ed25519.public_key, "base64")).to.have.length(32);
    expect((await ask("GET", "keys/ecdsa-p256")).json.data.keys["1"]).to.include({ name: "P-256" });
    expect((await ask("GET", "keys/missing")).status).to.equal(404);
  });

  it("lists the keys of a mount, and returns 404 where there are none", async () => {
    const { keys } = (await ask("LIST", "keys")).json.data;
    expect(keys).to.include.members(["plain", "hmac"]);
    const whole = (await vault(server(), "GET", "secret/keys?list=true")).json.data.keys;
    expect(whole).to.include("transit/plain");
    const none = await vault(server(), "LIST", "elsewhere/keys");
    expect([none.status, none.json]).to.deep.equal([404, { errors: [] }]);
  });

  it("an operation of Vault is not taken for the end of a key's name", async () => {
    await must("keys/whole");
    const words = ["trim", "import", "import_version", "soft-delete", "soft-delete-restore", "csr", "set-certificate"];
    const requests = words.flatMap((word) => [
      ["POST", `keys/whole/${word}`],
      ["PUT", `keys/whole/${word}`],
      ["POST", `keys/new/${word}`],
      ["GET", `keys/whole/${word}`],
      ["DELETE", `keys/whole/${word}`],
      ["POST", `keys/whole/${word}/rotate`],
      ["POST", `keys/whole/${word}/config`],
      ["POST", `keys/whole%2f${word}`],
    ]);
    for (const [method = "", path = ""] of requests) {
      const answer = await ask(method, path, { body: { min_available_version: 1 } });
      expect([answer.status, answer.json.errors.length], `${method} ${path}`).to.deep.equal([404, 1]);
      expect(answer.json.errors[0], `${method} ${path}`).to.match(/^unsupported path: ./);
    }
    expect((await ask("GET", "keys/whole/rotate")).json.errors[0]).to.match(/must not end in/);
    expect((await ask("DELETE", "keys/whole/config")).json.errors[0]).to.match(/must not end in/);
    expect((await ask("LIST", "keys")).json.data.keys.filter((name: string) => name.includes("/"))).to.deep.equal([]);
    await must("keys/trim");
    expect((await ask("GET", "keys/trim")).json.data.name).to.equal("trim");
    expect((await ask("GET", "keys/whole")).json.data.latest_version).to.equal(1);
  });

  describe("key_version", () => {
    before(async () => {
      await must("keys/aged");
      for (let version = 2; version <= 4; version++) await must("keys/aged/rotate");
      await must("keys/aged/config", { min_decryption_version: 2 });
      await must("keys/rsa-aged", { type: "rsa-2048" });
      await must("keys/rsa-aged/rotate");
    });

    for (const [name, key_version] of [
      ["aged", 2],
      ["aged", "3"],
      ["aged", 4],
      ["rsa-aged", 1],
    ] as const) {
      it(`version ${key_version} of ${name} encrypts, also a data key and a rewrapped ciphertext`, async () => {
        const made = await must(`encrypt/${name}`, { plaintext: message, key_version });
        const again = await must(`rewrap/${name}`, { ciphertext: made.ciphertext, key_version });
        const wrapped = await must(`datakey/plaintext/${name}`, { key_version });
        for (const each of [made, again, wrapped]) {
          expect(each).to.include({ key_version: Number(key_version) });
          expect(each.ciphertext).to.match(new RegExp(`^vault:v${key_version}:`));
        }
        expect(await must(`decrypt/${name}`, { ciphertext: again.ciphertext })).to.deep.equal({ plaintext: message });
        const { plaintext } = await must(`decrypt/${name}`, { ciphertext: wrapped.ciphertext });
        expect(plaintext).to.equal(wrapped.plaintext);
      });
    }

    it("key_version is accepted from min_decryption_version to the newest only", async () => {
      const { ciphertext: newest } = await must("encrypt/aged", { plaintext: message });
      const problem = "key_version must be a whole number from 2 to 4";
      for (const key_version of [1, "1", 5, -1, "x", 1.5, true, "9".repeat(30)]) {
        await mustFail("encrypt/aged", { plaintext: message, key_version }, problem);
        await mustFail("rewrap/aged", { ciphertext: newest, key_version }, problem);
        await mustFail("datakey/wrapped/aged", { key_version }, problem);
      }
    });

    it("each input of a batch has a key_version of its own", async () => {
      const batch_input = [1, 2, 3, 4, 5, 0, "2"].map((key_version) => ({ plaintext: message, key_version }));
      const partial = { batch_input, partial_failure_response_code: 200 };
      const { batch_results } = await must("encrypt/aged", partial);
      const versions = batch_results.map((result: { key_version?: number }) => result.key_version);
      expect(versions).to.deep.equal([undefined, 2, 3, 4, undefined, 4, 2]);
    });
  });

  it("a key that is created twice is kept, with a warning", async () => {
    const answer = await ask("POST", "keys/plain", { body: { type: "ed25519", exportable: true } });
    expect(answer.json.warnings).to.deep.equal(["key plain already existed"]);
    expect(answer.json.data).to.include({ type: "aes256-gcm96", exportable: false });
  });

  it("encrypts, decrypts and rewraps, with associated data, a version as text, and null fields", async () => {
    await must("keys/turning");
    const aad = { associated_data: base64("row 7") };
    const made = await must("encrypt/turning", { plaintext: message, key_version: "1", context: null, ...aad });
    expect(made.ciphertext).to.match(ciphertext);
    expect(made.key_version).to.equal(1);
    expect(await must("decrypt/turning", { ciphertext: made.ciphertext, ...aad })).to.deep.equal({
      plaintext: message,
    });
    await mustFail("decrypt/turning", { ciphertext: made.ciphertext }, "cipher: message authentication failed");
    expect(await must("keys/turning/rotate")).to.include({ latest_version: 2 });
    const again = await must("rewrap/turning", { ciphertext: made.ciphertext, ...aad });
    expect(again.ciphertext).to.match(/^vault:v2:/);
    expect(again.key_version).to.equal(2);
    await must("keys/turning/config", { min_decryption_version: "2" });
    const old = "ciphertext or signature version is disallowed by policy (too old)";
    await mustFail("decrypt/turning", { ciphertext: made.ciphertext, ...aad }, old);
    expect((await ask("GET", "keys/turning")).json.data.keys).to.have.all.keys("2");
  });

  it("key version 0 is the newest one", async () => {
    expect(await must("encrypt/plain", { plaintext: message, key_version: 0 })).to.include({ key_version: 1 });
  });

  it("reports what is missing or malformed in Vault's words", async () => {
    await mustFail("random/moon/8", {}, "the source must be platform, seal or all");
    for (const hash of ["sha1", "sha3-256"])
      await mustFail(
        `sign/ecdsa-p256/${hash}`,
        { input: message },
        "hash_algorithm must be one of sha2-256, sha2-384, sha2-512",
      );
    await mustFail("encrypt/plain", {}, "missing plaintext to encrypt");
    await mustFail("decrypt/plain", {}, "missing ciphertext to decrypt");
    await mustFail("decrypt/plain", { ciphertext: "hello" }, "invalid ciphertext: no prefix");
    await mustFail("decrypt/plain", { ciphertext: "vault:v9:AAAA" }, "invalid ciphertext: version is too new");
    await mustFail("encrypt/none", { plaintext: message }, "encryption key not found");
    await mustFail("sign/none", { input: message }, "signing key not found");
    await mustFail("verify/none", { input: message, signature: "x" }, "signature verification key not found");
    await mustFail("sign/plain", { input: message }, "key type aes256-gcm96 does not support signing");
    await mustFail("encrypt/ed25519", { plaintext: message }, "message encryption not supported for key type ed25519");
    await mustFail("keys/none/rotate", {}, "key not found");
    await mustFail("keys/none/config", {}, "no existing key named none could be found");
    await mustFail("encrypt/plain", { batch_input: [] }, "missing batch input to process");
    await mustFail("datakey/other/plain", {}, "Invalid path, must be 'plaintext' or 'wrapped'");
  });

  it("unsupported options are refused unless they have their default", async () => {
    const nothing = {
      derived: false,
      convergent_encryption: "false",
      auto_rotate_period: "0",
      context: "",
      key_size: 0,
    };
    expect((await ask("POST", "keys/neutral", { body: nothing })).status).to.equal(200);
    for (const wish of [{ derived: true }, { derived: "true" }, { auto_rotate_period: "1h" }, { key_size: 64 }]) {
      const answer = await ask("POST", "keys/refused", { body: wish });
      expect(answer.json.errors[0]).to.match(/^\w+ is not supported/);
    }
    expect((await ask("GET", "keys/refused")).status).to.equal(404);
    const nonce = await ask("POST", "encrypt/plain", { body: { plaintext: message, nonce: base64("n") } });
    expect(nonce.status).to.equal(400);
  });

  it("returns the reference of each input of a batch", async () => {
    const batch_input = [{ plaintext: message, reference: 'a "b"' }, { plaintext: message }];
    const { batch_results: made } = await must("encrypt/plain", { batch_input });
    expect(made.map(({ reference }: { reference: string }) => reference)).to.deep.equal(['a "b"', ""]);
    const back = await must("decrypt/plain", {
      batch_input: made.map(({ ciphertext: text }: { ciphertext: string }) => ({ ciphertext: text })),
    });
    expect(back.batch_results).to.deep.equal(Array(2).fill({ plaintext: message, reference: "" }));
  });

  it("returns 400 for a batch with an invalid input, or the status that the client wants", async () => {
    const batch_input = [{ plaintext: message }, { plaintext: "%" }];
    const answer = await ask("POST", "encrypt/plain", { body: { batch_input } });
    expect(answer.status).to.equal(400);
    expect(answer.json.data.batch_results[0].ciphertext).to.match(ciphertext);
    expect(answer.json.data.batch_results[1].error).to.be.a("string");
    const partial = { batch_input, partial_failure_response_code: 207 };
    expect((await ask("POST", "encrypt/plain", { body: partial })).status).to.equal(207);
  });

  it("signs with a hash in the path or in the body, and verifies", async () => {
    for (const [path, body] of Object.entries({
      "sign/ecdsa-p256/sha2-512": {},
      "sign/ecdsa-p256": { hash_algorithm: "sha2-512" },
    })) {
      const { signature, key_version } = await must(path, { input: message, ...body });
      expect(key_version).to.equal(1);
      const pem = (await ask("GET", "keys/ecdsa-p256")).json.data.keys["1"].public_key;
      const der = Buffer.from(signature.split(":")[2], "base64");
      expect(createVerify("sha512").update("attack at dawn").verify(pem, der)).to.equal(true);
      const check = { input: message, signature, algorithm: "sha2-512" };
      expect(await must("verify/ecdsa-p256", check)).to.deep.equal({ valid: true });
      expect(await must("verify/ecdsa-p256/sha2-256", { input: message, signature })).to.deep.equal({ valid: false });
    }
  });

  it("signs a digest, with PKCS #1 or PSS, as sigstore asks", async () => {
    const input = createHash("sha256").update("attack at dawn").digest("base64");
    const body = { input, prehashed: true, signature_algorithm: "pkcs1v15", marshaling_algorithm: "asn1" };
    const { signature } = await must("sign/rsa-2048/sha2-256", body);
    const pem = (await ask("GET", "keys/rsa-2048")).json.data.keys["1"].public_key;
    const bytes = Buffer.from(signature.split(":")[2], "base64");
    expect(verify("sha256", Buffer.from("attack at dawn"), createPublicKey(pem), bytes)).to.equal(true);
    expect(await must("verify/rsa-2048/sha2-256", { ...body, signature })).to.deep.equal({ valid: true });
  });

  it("signs with a salt of the wanted length", async () => {
    const input = createHash("sha256").update("attack at dawn").digest("base64");
    for (const salt_length of ["0", 20, "-1", "hash", "auto"]) {
      for (const body of [
        { input: message, salt_length },
        { input, prehashed: true, salt_length },
      ]) {
        const { signature } = await must("sign/rsa-2048", body);
        expect(await must("verify/rsa-2048", { ...body, signature })).to.deep.equal({ valid: true });
      }
    }
    for (const salt_length of ["129", "-2", "long"]) {
      expect((await ask("POST", "sign/rsa-2048", { body: { input: message, salt_length } })).status).to.equal(400);
    }
  });

  it("signs with Ed25519 what a client calls a digest", async () => {
    const { signature } = await must("sign/ed25519", { input: message, prehashed: true });
    expect(await must("verify/ed25519", { input: message, signature })).to.deep.equal({ valid: true });
  });

  it("applies the options of a batch to its inputs", async () => {
    const batch_input = [{ input: message, reference: "1" }];
    const { batch_results: signed } = await must("sign/ecdsa-p256", {
      ...{ batch_input, marshaling_algorithm: "jws", hash_algorithm: "sha2-384" },
    });
    expect(signed[0].signature).to.match(/^vault:v1:[A-Za-z0-9_-]{86}$/);
    const check = { batch_input: [{ input: message, signature: signed[0].signature, reference: "1" }] };
    const options = { marshaling_algorithm: "jws", hash_algorithm: "sha2-384" };
    expect((await must("verify/ecdsa-p256", { ...check, ...options })).batch_results).to.deep.equal([
      { valid: true, reference: "1" },
    ]);
  });

  it("makes and verifies MACs", async () => {
    for (const name of ["hmac", "plain"]) {
      const { hmac } = await must(`hmac/${name}/sha2-512`, { input: message });
      expect(hmac).to.match(ciphertext);
      expect(await must(`verify/${name}/sha2-512`, { input: message, hmac })).to.deep.equal({ valid: true });
      expect(await must(`verify/${name}`, { input: message, hmac, algorithm: "sha2-256" })).to.deep.equal({
        valid: false,
      });
    }
  });

  it("makes data keys, in plain or only wrapped", async () => {
    const plain = await must("datakey/plaintext/plain", { bits: "512" });
    expect(Buffer.from(plain.plaintext, "base64")).to.have.length(64);
    expect(await must("decrypt/plain", { ciphertext: plain.ciphertext })).to.deep.equal({ plaintext: plain.plaintext });
    expect(await must("datakey/wrapped/plain")).to.have.all.keys("ciphertext", "key_version");
  });

  it("returns random bytes and hashes", async () => {
    expect((await must("random/16", { format: "hex" })).random_bytes).to.match(/^[0-9a-f]{32}$/);
    expect(Buffer.from((await must("random")).random_bytes, "base64")).to.have.length(32);
    expect(Buffer.from((await must("random/platform/8")).random_bytes, "base64")).to.have.length(8);
    const sum = createHash("sha256").update("attack at dawn");
    expect(await must("hash", { input: message })).to.deep.equal({ sum: sum.digest("hex") });
    const sha3 = createHash("sha3-384").update("attack at dawn").digest("base64");
    expect(await must("hash/sha3-384", { input: message, format: "base64" })).to.deep.equal({ sum: sha3 });
  });

  it("exports exportable keys in Vault's formats, and no others", async () => {
    const exported = async (path: string) => (await ask("GET", `export/${path}`)).json;
    const key = (await exported("encryption-key/aes256-gcm96")).data;
    expect(key).to.deep.include({ name: "aes256-gcm96", type: "aes256-gcm96" });
    expect(Buffer.from(key.keys["1"], "base64")).to.have.length(32);
    expect((await exported("signing-key/ecdsa-p256/latest")).data.keys["1"]).to.match(
      /^-----BEGIN EC PRIVATE KEY-----\n/,
    );
    expect((await exported("signing-key/rsa-2048/1")).data.keys["1"]).to.match(/^-----BEGIN RSA PRIVATE KEY-----\n/);
    expect(Buffer.from((await exported("signing-key/ed25519")).data.keys["1"], "base64")).to.have.length(64);
    expect(Buffer.from((await exported("hmac-key/hmac")).data.keys["1"], "base64")).to.have.length(32);
    expect((await exported("public-key/ecdsa-p256")).data.keys["1"]).to.match(/^-----BEGIN PUBLIC KEY-----\n/);
    expect((await exported("encryption-key/plain")).errors).to.deep.equal(["private key material is not exportable"]);
    expect((await exported("other-key/plain")).errors).to.deep.equal(["invalid export type"]);
    expect((await ask("GET", "export/encryption-key/missing")).status).to.equal(404);
  });

  it("deletes a key only where that is allowed", async () => {
    await must("keys/going");
    const refused = await ask("DELETE", "keys/going");
    const problem = "error deleting policy going: deletion is not allowed for this key";
    expect([refused.status, refused.json.errors]).to.deep.equal([400, [problem]]);
    await must("keys/going/config", { deletion_allowed: "true" });
    expect((await ask("DELETE", "keys/going")).status).to.equal(204);
    const gone = await ask("DELETE", "keys/going");
    expect(gone.json.errors).to.deep.equal(["error deleting policy going: could not delete key; not found"]);
  });

  it("transit keys are those of the native API: by mount and name, or under the mount secret", async () => {
    const { ciphertext: made } = await must("encrypt/plain", { plaintext: message });
    const answer = await vault(server(), "POST", "secret/decrypt/transit/plain", { body: { ciphertext: made } });
    expect(answer.json.data).to.deep.equal({ plaintext: message });
    expect((await vault(server(), "GET", "secret/keys/transit/plain")).json.data.name).to.equal("transit/plain");
  });
});
