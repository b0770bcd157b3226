/** Wycheproof's cases against the algorithms of transit keys; a digest computed elsewhere must give the same verdicts. */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { concat, withScratch } from "../../workers/memory.js";
import {
  decryptGcm,
  decryptOaep,
  encryptGcm,
  type SignOptions,
  sign,
  verify,
  verifyHmac,
} from "../../workers/transit/algorithms.js";
import type { KeyType } from "../../workers/transit/key-types.js";
import { makePrivatePart, parsePrivatePart } from "../../workers/transit/private-keys.js";
import { aes256GcmCases } from "../vectors/wycheproof-aes-256-gcm.js";

type Case = {
  readonly id: string;
  readonly isValid: boolean;
  readonly key: Buffer;
  readonly message: Buffer;
  readonly signature: Buffer;
};

const options: SignOptions = { hash: "sha256", isDigest: false, marshaling: "asn1", padding: "pss" };
const cases = readCases();
const hex = (text: string) => concat([Buffer.from(text, "hex")]);

function readCases(): Map<string, Case[]> {
  const byKind = new Map<string, Case[]>();
  let last = "";
  for (const row of readFileSync("test/vectors/wycheproof-transit.csv", "utf8").trim().split("\n")) {
    if (row.startsWith("#")) continue;
    const [kind = "", id = "", valid, key, message = "", signature = ""] = row.split(",");
    last = key || last;
    const bytes = (text: string) => Buffer.from(text, "hex");
    const one = { id, isValid: valid === "1", key: bytes(last), message: bytes(message), signature: bytes(signature) };
    byKind.set(kind, [...(byKind.get(kind) ?? []), one]);
  }
  return byKind;
}

/** Valid but for their salt, which has another length than the vectors want; we accept any. */
const otherSalts = ["67", "68", "69", "70", "71", "72"];

function wrongOnes(kind: string, verdict: (one: Case) => boolean): string[] {
  const all = cases.get(kind) ?? [];
  expect(all.length, "number of cases").to.be.above(20);
  return all.filter((one) => withScratch(() => verdict(one)) !== one.isValid).map(({ id }) => id);
}

function publicKey({ key }: Case): KeyObject {
  return createPublicKey({ key, format: "der", type: "spki" });
}

const kinds: readonly (readonly [kind: string, type: KeyType, options: SignOptions])[] = [
  ["ed25519", "ed25519", options],
  ["ecdsa-asn1", "ecdsa-p256", options],
  ["ecdsa-jws", "ecdsa-p256", { ...options, marshaling: "jws" }],
  ["rsa-pss", "rsa-2048", options],
  ["rsa-pkcs1v15", "rsa-2048", { ...options, padding: "pkcs1v15" }],
];

describe("the algorithms of transit keys", () => {
  for (const [kind, type, how] of kinds) {
    it(`${kind} verifies as Wycheproof says`, () => {
      const verdict = (one: Case) => verify(type, publicKey(one), one.message, one.signature, how);
      expect(wrongOnes(kind, verdict)).to.deep.equal(kind === "rsa-pss" ? otherSalts : []);
    });
    if (kind === "ed25519") continue;
    it(`${kind} of a digest verifies as Wycheproof says of the message`, () => {
      const digest = ({ message }: Case) => createHash("sha256").update(message).digest();
      const verdict = (one: Case) =>
        verify(type, publicKey(one), digest(one), one.signature, { ...how, isDigest: true });
      expect(wrongOnes(kind, verdict)).to.deep.equal(kind === "rsa-pss" ? otherSalts : []);
    });
  }

  it("RSA-OAEP decrypts as Wycheproof says", () => {
    const verdict = ({ key, message, signature }: Case) =>
      decryptOaep(createPrivateKey({ key, format: "der", type: "pkcs8" }), signature)?.every(
        (byte, i) => byte === message[i],
      ) ?? false;
    expect(wrongOnes("rsa-oaep", verdict)).to.deep.equal([]);
  });

  it("HMAC-SHA-256 verifies as Wycheproof says", () => {
    const verdict = ({ key, message, signature }: Case) => verifyHmac(key, "sha256", message, signature);
    expect(wrongOnes("hmac", verdict)).to.deep.equal([]);
  });

  it("AES-256-GCM decrypts as Wycheproof says", () => {
    const wrong = aes256GcmCases.filter(([, , isValid, key, nonce, aad, plaintext, ciphertext, tag]) =>
      withScratch(() => {
        const opened = decryptGcm(hex(key), hex(nonce + ciphertext + tag), hex(aad));
        return isValid ? opened === null || Buffer.from(opened).toString("hex") !== plaintext : opened !== null;
      }),
    );
    expect(wrong.map(([id]) => id)).to.deep.equal([]);
  });

  it("2,000 encryptions use 2,000 nonces", () => {
    const nonces = Array.from({ length: 2_000 }, () =>
      withScratch(() => Buffer.from(encryptGcm(makePrivatePart("hmac"), hex(""), hex(""))).toString("hex", 0, 12)),
    );
    expect(new Set(nonces).size).to.equal(nonces.length);
  });

  it("a digest signed with ECDSA is verified by OpenSSL as the message", () => {
    const message = Buffer.from("message");
    const digest = createHash("sha256").update(message).digest();
    for (let round = 0; round < 40; round++) {
      for (const marshaling of ["asn1", "jws"] as const) {
        const how = { ...options, marshaling, isDigest: true };
        const isVerified = withScratch(() => {
          const part = makePrivatePart("ecdsa-p256");
          const key = parsePrivatePart("ecdsa-p256", part);
          const signature = sign("ecdsa-p256", key, () => part, digest, how);
          return verify("ecdsa-p256", createPublicKey(key), message, signature, { ...how, isDigest: false });
        });
        expect(isVerified, `${marshaling}, round ${round}`).to.equal(true);
      }
    }
  });
});
