/** Published test vectors: RFC 7914, XAES-256-GCM, Wycheproof's AES-GCM. */
import { createHash } from "node:crypto";
import { expect } from "chai";
import { openGcm, sealGcm } from "../../workers/crypto/gcm.js";
import { derive } from "../../workers/crypto/slots.js";
import { open, seal, sealWithNonce, XaesKey } from "../../workers/crypto/xaes.js";
import { concat, utf8, withScratch } from "../../workers/memory.js";
import type { Bytes } from "../../workers/protocol.js";
import { aes256GcmCases } from "../vectors/wycheproof-aes-256-gcm.js";

const hex = (text: string): Bytes => concat([Buffer.from(text, "hex")]);
const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

function sealOne(key: XaesKey, plaintext: Uint8Array, aad: Uint8Array): Bytes {
  return withScratch(() => {
    const [box = []] = seal(key, [{ plaintext, aad: () => aad }]);
    return concat(box);
  });
}

function openOne(key: XaesKey, box: Uint8Array, aad: Uint8Array): Bytes | null {
  return withScratch(() => {
    const [plaintext] = open(key, [{ box, aad }]);
    return plaintext ? concat([plaintext]) : null;
  });
}

function sealWith(key: XaesKey, nonce: Bytes, plaintext: Bytes, aad: Bytes): Bytes {
  return withScratch(() => sealWithNonce(key, nonce, plaintext, aad));
}

describe("scrypt, RFC 7914 section 12", () => {
  const vectors = [
    [
      "",
      "",
      4,
      1,
      1,
      "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906",
    ],
    [
      "password",
      "NaCl",
      10,
      8,
      16,
      "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640",
    ],
    [
      "pleaseletmein",
      "SodiumChloride",
      14,
      8,
      1,
      "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887",
    ],
  ] as const;
  for (const [passphrase, salt, logN, r, p, derived] of vectors) {
    it(`P=${passphrase || "(empty)"} N=2^${logN} r=${r} p=${p}`, async () => {
      expect(toHex(await derive(utf8(passphrase), utf8(salt), { logN, r, p }, 64))).to.equal(derived);
    });
  }
});

describe("XAES-256-GCM, C2SP", () => {
  const nonce = utf8("ABCDEFGHIJKLMNOPQRSTUVWX");
  const plaintext = utf8("XAES-256-GCM");
  const vectors = [
    [
      1,
      "",
      "c8612c9ed53fe43e8e005b828a1631a0bbcb6ab2f46514ec4f439fcfd0fa969b",
      "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271",
    ],
    [
      3,
      "c2sp.org/XAES-256-GCM",
      "e9c621d4cdd9b11b00a6427ad7e559aeedd66b3857646677748f8ca796cb3fd8",
      "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d",
    ],
  ] as const;
  for (const [byte, aad, subkey, sealed] of vectors) {
    it(`K=${byte}×32 AAD=${aad || "(empty)"}`, () => {
      const key = new XaesKey(concat([Buffer.alloc(32, byte)]));
      expect(withScratch(() => toHex(key.deriveSubkeys([nonce])))).to.equal(subkey);
      expect(toHex(sealWith(key, nonce, plaintext, utf8(aad)))).to.equal(sealed);
      expect(toHex(openOne(key, concat([nonce, hex(sealed)]), utf8(aad)) ?? hex(""))).to.equal(toHex(plaintext));
    });
  }

  it("10,000 random rounds accumulate to the published digest", () => {
    expect(accumulate(10_000)).to.equal("e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939");
  });

  if (process.env["STRONGROOM_SLOW"] === "1") {
    it("1,000,000 random rounds accumulate to the published digest", () => {
      expect(accumulate(1_000_000)).to.equal("2163ae1445985a30b60585ee67daa55674df06901b890593e824b8a7c885ab15");
    }).timeout(0);
  }

  it("2,000 seals of one plaintext, more than one stock of nonces, all differ", () => {
    const key = new XaesKey(concat([Buffer.alloc(32, 7)]));
    const boxes = Array.from({ length: 2000 }, () => toHex(sealOne(key, plaintext, utf8(""))));
    expect(new Set(boxes.map((box) => box.slice(0, 48))).size).to.equal(2000);
  });

  it("a box does not open when any bit, the key, the AAD or the length differs", () => {
    const key = new XaesKey(concat([Buffer.alloc(32, 7)]));
    const box = sealOne(key, plaintext, utf8("aad"));
    for (let bit = 0; bit < box.length * 8; bit++) {
      const flipped = concat([box]);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(openOne(key, flipped, utf8("aad")), `bit ${bit}`).to.equal(null);
    }
    for (let length = 0; length < box.length; length++) {
      expect(openOne(key, box.subarray(0, length), utf8("aad")), `length ${length}`).to.equal(null);
    }
    expect(openOne(key, box, utf8("AAD"))).to.equal(null);
    expect(openOne(new XaesKey(concat([Buffer.alloc(32, 8)])), box, utf8("aad"))).to.equal(null);
  });
});

/** Accumulated test of the specification: random inputs from one SHAKE-128, ciphertexts into another. */
function accumulate(rounds: number): string {
  const stream = shakeStream(rounds * 600);
  const outputs = createHash("shake128", { outputLength: 32 });
  for (let i = 0; i < rounds; i++) {
    const key = new XaesKey(stream(32));
    const nonce = stream(24);
    const plaintext = stream(stream(1)[0] ?? 0);
    const aad = stream(stream(1)[0] ?? 0);
    outputs.update(sealWith(key, nonce, plaintext, aad));
    key.end();
  }
  return outputs.digest("hex");
}

/** SHAKE-128 of nothing, as a stream of at most `length` bytes. */
function shakeStream(length: number): (count: number) => Bytes {
  const bytes = createHash("shake128", { outputLength: length }).digest();
  let at = 0;
  return (count) => {
    at += count;
    return concat([bytes.subarray(at - count, at)]);
  };
}

describe("AES-256-GCM, Wycheproof", () => {
  it("the Wycheproof table has 66 cases", () => expect(aes256GcmCases).to.have.lengthOf(66));

  for (const [id, comment, isValid, key, nonce, aad, plaintext, ciphertext, tag] of aes256GcmCases) {
    it(`case ${id} (${comment || "plain"}) is ${isValid ? "valid" : "invalid"}`, () => {
      const opened = withScratch(() => {
        const bytes = openGcm(hex(key), hex(nonce), hex(ciphertext), hex(tag), hex(aad));
        return bytes && toHex(bytes);
      });
      expect(opened).to.equal(isValid ? plaintext : null);
      if (!isValid) return;
      expect(toHex(concat(sealGcm(hex(key), hex(nonce), hex(plaintext), hex(aad))))).to.equal(ciphertext + tag);
    });
  }
});
