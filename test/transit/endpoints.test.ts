/** Transit keys over HTTP: made, used, rotated, listed, exported and deleted, and what is refused. */
import {
  createHash,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  publicEncrypt,
  randomBytes,
  verify,
} from "node:crypto";
import { expect } from "chai";
import { shareTestServer } from "../../tools/rig/server.js";
import {
  type Json,
  mustInit,
  mustLock,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { mustRotate, untilRotated } from "../support/key-requests.js";

const base64 = (data: string | Uint8Array) => Buffer.from(data).toString("base64");
const decodeRaw = (text: unknown) => Buffer.from(String(text).replace(/^vault:v\d+:/, ""), "base64");

describe("transit keys over HTTP", () => {
  const server = shareTestServer();
  before(() => mustInit(server()));

  const post = (path: string, body: object = {}, token?: string) =>
    send(server(), { method: "POST", path: `/v1/transit/${path}`, body, ...(token !== undefined && { token }) });
  const must = async (path: string, body: object = {}): Promise<Json> => mustSucceed(await post(path, body));
  const show = (name: string) => send(server(), { path: `/v1/transit/keys/${name}` });

  type Version = { readonly createdAt: string; readonly publicKey?: string };
  async function readPublicKey(name: string, version = 1): Promise<string> {
    const { versions } = mustSucceed(await show(name)) as { versions: Record<number, Version> };
    return versions[version]?.publicKey ?? "";
  }

  it("a key encrypts and decrypts, also with additional data, and gives no plaintext back under another", async () => {
    expect(await must("keys/app/aes")).to.deep.include({ name: "app/aes", type: "aes256-gcm96", latestVersion: 1 });
    const aad = base64("invoice 47");
    const { ciphertext } = await must("encrypt/app/aes", { plaintext: base64("hello"), aad });
    expect(await must("decrypt/app/aes", { ciphertext, aad })).to.deep.equal({ plaintext: base64("hello") });
    mustRefuse(await post("decrypt/app/aes", { ciphertext }), 400, "BAD_REQUEST");
    await must("keys/app/other");
    mustRefuse(await post("decrypt/app/other", { ciphertext, aad }), 400, "BAD_REQUEST");
    const flipped = decodeRaw(ciphertext);
    flipped.writeUInt8(flipped.readUInt8(20) ^ 1, 20);
    const changed = `vault:v1:${base64(flipped)}`;
    mustRefuse(await post("decrypt/app/aes", { ciphertext: changed, aad }), 400, "BAD_REQUEST");
    mustRefuse(await post("decrypt/app/aes", { ciphertext: "vault:v9:AAAA", aad }), 400, "BAD_REQUEST");
  });

  it("signatures with Ed25519 and ECDSA are verified by node:crypto", async () => {
    await must("keys/sign/ed", { type: "ed25519" });
    await must("keys/sign/ec", { type: "ecdsa-p256" });
    const message = Buffer.from("message");
    const ed = await must("sign/sign/ed", { input: base64(message) });
    expect(verify(null, message, await readPublicKey("sign/ed"), decodeRaw(ed["signature"]))).to.equal(true);
    const digest = createHash("sha256").update(message).digest();
    const bodies = [
      { input: base64(message) },
      { input: base64(message), marshaling: "jws" },
      { input: base64(digest), prehashed: true },
      { input: base64(digest), prehashed: true, marshaling: "jws" },
    ];
    const key = await readPublicKey("sign/ec");
    for (const body of bodies) {
      const { signature } = await must("sign/sign/ec", body);
      const dsaEncoding = "marshaling" in body ? "ieee-p1363" : "der";
      expect(verify("sha256", message, { key, dsaEncoding }, decodeRaw(signature)), JSON.stringify(body)).to.equal(
        true,
      );
      expect(await must("verify/sign/ec", { ...body, signature })).to.deep.equal({ valid: true });
      const other = { ...body, input: base64(createHash("sha256").update("other").digest()), signature };
      expect(await must("verify/sign/ec", other)).to.deep.equal({ valid: false });
    }
  });

  it("an RSA key encrypts and signs", async () => {
    await must("keys/rsa", { type: "rsa-2048" });
    const key = createPublicKey(await readPublicKey("rsa"));
    const { ciphertext } = await must("encrypt/rsa", { plaintext: base64("hello") });
    expect(await must("decrypt/rsa", { ciphertext })).to.deep.equal({ plaintext: base64("hello") });
    const sent = `vault:v1:${base64(publicEncrypt({ key, oaepHash: "sha256" }, Buffer.from("from outside")))}`;
    expect(await must("decrypt/rsa", { ciphertext: sent })).to.deep.equal({ plaintext: base64("from outside") });
    mustRefuse(await post("encrypt/rsa", { plaintext: base64(randomBytes(191)) }), 400, "BAD_REQUEST");
    mustRefuse(await post("encrypt/rsa", { plaintext: "", aad: base64("a") }), 400, "BAD_REQUEST");
    for (const signatureAlgorithm of ["pss", "pkcs1v15"]) {
      for (const hash of ["sha2-256", "sha2-512"]) {
        const body = { input: base64("message"), signatureAlgorithm, hash };
        const { signature } = await must("sign/rsa", body);
        expect(await must("verify/rsa", { ...body, signature })).to.deep.equal({ valid: true });
        const digest = createHash(hash.replace("2-", "")).update("message").digest();
        const prehashed = { ...body, input: base64(digest), prehashed: true };
        const again = await must("sign/rsa", prehashed);
        expect(await must("verify/rsa", { ...body, signature: again["signature"] })).to.deep.equal({ valid: true });
        expect(await must("verify/rsa", { ...prehashed, signature })).to.deep.equal({ valid: true });
      }
    }
  });

  it("keys make MACs, data keys and random bytes", async () => {
    const material = randomBytes(32);
    await must("keys/mac", { type: "hmac", key: base64(material) });
    const { hmac } = await must("hmac/mac", { input: base64("message") });
    expect(decodeRaw(hmac).equals(createHmac("sha256", material).update("message").digest())).to.equal(true);
    expect(await must("verify/mac", { input: base64("message"), hmac })).to.deep.equal({ valid: true });
    expect(await must("verify/mac", { input: base64("another"), hmac })).to.deep.equal({ valid: false });
    const { plaintext, ciphertext } = await must("datakey/app/aes", { bits: 512 });
    expect(Buffer.from(String(plaintext), "base64")).to.have.length(64);
    expect(await must("decrypt/app/aes", { ciphertext })).to.deep.equal({ plaintext });
    expect(await must("datakey/app/aes", { plaintext: false })).to.have.keys("ciphertext");
    expect(Buffer.from(String((await must("random", { bytes: 5 }))["random"]), "base64")).to.have.length(5);
  });

  it("a rotated key refuses versions below the lowest, and shows no private part", async () => {
    await must("keys/turn", { type: "ed25519" });
    const { signature } = await must("sign/turn", { input: base64("m") });
    expect(await must("keys/turn/rotate")).to.include({ latestVersion: 2 });
    expect(await must("verify/turn", { input: base64("m"), signature })).to.deep.equal({ valid: true });
    await must("keys/turn/config", { minDecryptionVersion: 2 });
    mustRefuse(await post("verify/turn", { input: base64("m"), signature }), 400, "BAD_REQUEST");
    await must("keys/turn/config", { minDecryptionVersion: 1 });
    expect(await must("verify/turn", { input: base64("m"), signature })).to.deep.equal({ valid: true });
    const shown = mustSucceed(await show("turn"));
    expect(shown).to.have.keys(
      ...["name", "type", "latestVersion", "minDecryptionVersion", "exportable", "deletionAllowed", "versions"],
    );
    mustRefuse(await send(server(), { path: "/v1/transit/export/turn" }), 400, "BAD_REQUEST");
  });

  it("an exportable key is exported, and imported under another name", async () => {
    for (const type of ["ed25519", "ecdsa-p256", "rsa-2048", "aes256-gcm96", "hmac"]) {
      await must(`keys/out/${type}`, { type, exportable: true });
      const exported = mustSucceed(await send(server(), { path: `/v1/transit/export/out/${type}` }));
      const key = (exported["keys"] as Record<string, string>)["1"];
      const imported = await must(`keys/in/${type}`, { type, key });
      expect(imported["exportable"]).to.equal(false);
      expect(await readPublicKey(`in/${type}`)).to.equal(await readPublicKey(`out/${type}`));
    }
    mustRefuse(await post("keys/in/wrong", { type: "ed25519", key: base64("not a key") }), 400, "BAD_REQUEST");
  });

  /** Its PKCS #8 with one bit of a number changed. */
  function withDamage(key: KeyObject, number: "n" | "e" | "d" | "p" | "q" | "dp" | "dq" | "qi" | "x", bit: number) {
    const der = key.export({ type: "pkcs8", format: "der" });
    const digits = Buffer.from(key.export({ format: "jwk" })[number] ?? "", "base64url");
    const at = der.indexOf(digits) + (digits.length - 1 - (bit >> 3));
    der.writeUInt8(der.readUInt8(at) ^ (1 << (bit & 7)), at);
    return base64(der);
  }

  it("a private key with a damaged number is neither imported nor rotated in", async () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    const ec = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
    const intact = { type: "rsa-2048", key: base64(rsa.export({ type: "pkcs8", format: "der" })) };
    await must("keys/whole/rsa", intact);
    const cases = [
      ...(["n", "e", "d", "p", "q", "dp", "dq", "qi"] as const).flatMap((number) =>
        [0, 1, 11].map((bit) => ({ number, bit, type: "rsa-2048", key: withDamage(rsa, number, bit) })),
      ),
      ...(["d", "x"] as const).map((number) => ({
        number,
        bit: 5,
        type: "ecdsa-p256",
        key: withDamage(ec, number, 5),
      })),
    ];
    for (const { number, bit, ...body } of cases) {
      const refused = await post("keys/damaged", body);
      expect(refused.status, `bit ${bit} of ${number} in ${body.type}`).to.equal(400);
      const isParsed = body.type === "rsa-2048" || number === "d";
      if (isParsed) expect(String(refused.json["error"])).to.match(/private key is damaged: .*use an intact copy/);
    }
    const rotated = await post("keys/whole/rsa/rotate", { key: withDamage(rsa, "dp", 3) });
    mustRefuse(rotated, 400, "BAD_REQUEST");
    expect(mustSucceed(await show("whole/rsa"))).to.include({ latestVersion: 1 });
  });

  it("a P-256 key whose scalar is out of range is refused, with a public key or without", async () => {
    const ec = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
    const withoutPublic = Buffer.from("3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420", "hex");
    for (const byte of [0, 0xff]) {
      const withPublic = ec.export({ type: "pkcs8", format: "der" }).fill(byte, 36, 68);
      for (const der of [withPublic, Buffer.concat([withoutPublic, Buffer.alloc(32, byte)])]) {
        const refused = await post("keys/scalar", { type: "ecdsa-p256", key: base64(der) });
        expect(refused.status, `${byte} in ${der.length} bytes`).to.equal(400);
      }
    }
  });

  it("transit keys are no secrets: no list, count, batch or path shows them", async () => {
    await must("keys/plain/name");
    expect((mustSucceed(await send(server(), { path: "/v1/secrets" }))["entries"] as unknown[]).length).to.equal(0);
    mustRefuse(await send(server(), { path: "/v1/secrets/plain/name" }), 404, "NOT_FOUND");
    mustRefuse(await send(server(), { path: "/v1/versions/plain/name" }), 404, "NOT_FOUND");
    expect(mustSucceed(await send(server(), { path: "/v1/status" }))["secretCount"]).to.equal(0);
    const { keys } = mustSucceed(await send(server(), { path: "/v1/transit/keys" })) as { keys: Json[] };
    expect(keys).to.deep.include({ name: "plain/name", type: "aes256-gcm96", latestVersion: 1 });
  });

  it("a transit key is deleted only where that is allowed", async () => {
    await must("keys/gone");
    const remove = () => send(server(), { method: "DELETE", path: "/v1/transit/keys/gone" });
    mustRefuse(await remove(), 400, "BAD_REQUEST");
    await must("keys/gone/config", { deletionAllowed: true });
    mustSucceed(await remove());
    mustRefuse(await remove(), 404, "NOT_FOUND");
    mustRefuse(await show("gone"), 404, "NOT_FOUND");
  });

  it("a transit key is refused for its name, its type, a second time, and while the vault is locked", async () => {
    mustRefuse(await post("keys/app/aes"), 409, "ALREADY_EXISTS");
    mustRefuse(await post("keys/app/aes", { type: "wrong" }), 400, "BAD_REQUEST");
    mustRefuse(await send(server(), { method: "DELETE", path: "/v1/transit/keys/a/rotate" }), 400, "BAD_REQUEST");
    mustRefuse(await post("encrypt/a/config", { plaintext: "" }), 400, "BAD_REQUEST");
    mustRefuse(await post("encrypt/missing", { plaintext: "" }), 404, "NOT_FOUND");
    mustRefuse(await post("encrypt/missing", []), 400, "BAD_REQUEST");
    mustRefuse(await post("sign/app/aes", { input: "" }), 400, "BAD_REQUEST");
    mustRefuse(await post("keys/x", { derived: true }), 400, "BAD_REQUEST");
    mustRefuse(await post("encrypt/app/aes", { plaintext: "", context: "YQ==" }), 400, "BAD_REQUEST");
    await mustLock(server());
    for (const path of ["keys/x", "encrypt/app/aes", "random"]) mustRefuse(await post(path), 403, "VAULT_LOCKED");
    mustRefuse(await send(server(), { path: "/v1/transit/keys" }), 403, "VAULT_LOCKED");
    await mustUnlock(server());
    const { ciphertext } = await must("encrypt/app/aes", { plaintext: base64("after an unlock") });
    expect(await must("decrypt/app/aes", { ciphertext })).to.deep.equal({ plaintext: base64("after an unlock") });
  });

  it("transit keys survive a rotation of the master key, which seals all of them again", async () => {
    const { ciphertext } = await must("encrypt/app/aes", { plaintext: base64("before") });
    const names = Array.from({ length: 70 }, (_, i) => `many/${i}`);
    for (const name of names) await must(`keys/${name}`, { type: "hmac" });
    await mustRotate(server());
    await untilRotated(server());
    await mustLock(server());
    await mustUnlock(server());
    expect(await must("decrypt/app/aes", { ciphertext })).to.deep.equal({ plaintext: base64("before") });
    for (const name of names) await must(`hmac/${name}`, { input: base64("m") });
  });

  it("a batch of 1,000 is served, each input for itself", async () => {
    const batch = Array.from({ length: 1_000 }, (_, i) => ({ plaintext: i === 500 ? "%" : base64(`message ${i}`) }));
    const { results } = (await must("encrypt/app/aes", { batch })) as { results: Json[] };
    expect(results[500]).to.include({ code: "BAD_REQUEST" });
    const back = await must("decrypt/app/aes", { batch: results.map(({ ciphertext = "" }) => ({ ciphertext })) });
    const plaintexts = (back["results"] as Json[]).map(({ plaintext }) => plaintext);
    expect(plaintexts).to.deep.equal(batch.map(({ plaintext }, i) => (i === 500 ? undefined : plaintext)));
  });
});

describe("one-time codes over HTTP", () => {
  const server = shareTestServer();
  before(() => mustInit(server()));

  it("one-time codes follow RFC 6238, whatever the form of the seed", async () => {
    const put = (path: string, value: string) =>
      send(server(), { method: "PUT", path: `/v1/secrets/${path}`, body: { value } });
    const code = async (path: string) => mustSucceed(await send(server(), { method: "POST", path: `/v1/otp/${path}` }));
    const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
    await put("bare", seed);
    await put("grouped", " gezd gnbv gy3t qojq GEZDGNBVGY3TQOJQ==\n");
    await put("url", `otpauth://totp/Wiki:me?issuer=Wiki&secret=${seed}&digits=8&period=60&algorithm=SHA1#x`);
    await put("password", "correct horse");
    const [bare, grouped, url] = [await code("bare"), await code("grouped"), await code("url")];
    expect(bare["code"]).to.match(/^\d{6}$/);
    expect(bare).to.include({ period: 30, isUrl: false });
    if (Number(grouped["validFor"]) <= Number(bare["validFor"])) expect(grouped["code"]).to.equal(bare["code"]);
    expect(url["code"]).to.match(/^\d{8}$/);
    expect(url).to.include({ period: 60, isUrl: true });
    mustRefuse(await send(server(), { method: "POST", path: "/v1/otp/password" }), 400, "BAD_REQUEST");
    mustRefuse(await send(server(), { method: "POST", path: "/v1/otp/missing" }), 404, "NOT_FOUND");
  });
});
