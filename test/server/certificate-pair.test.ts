/** A TLS pair with a damaged key or certificate is never taken for a pair. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { expect } from "chai";
import { generate } from "selfsigned";
import { isPair } from "../../src/server/certificate-rules.js";

function derOf(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ""), "base64");
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

function parsed<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    return null;
  }
}

describe("a TLS pair", () => {
  it("is accepted whole, and not with the key of another certificate", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "test" }], { keyType: "ec" });
    const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
    const certificate = new X509Certificate(cert);
    expect([isPair(certificate, createPrivateKey(key)), isPair(certificate, other)]).to.deep.equal([true, false]);
  });

  it("is refused with any bit of its key flipped that changes the key", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "test" }], { keyType: "ec" });
    const [certificate, keyDer] = [new X509Certificate(cert), derOf(key)];
    const jwk = (one: KeyObject) => JSON.stringify(one.export({ format: "jwk" }));
    const accepted: number[] = [];
    for (let bit = 0; bit < 8 * keyDer.length; bit += 3) {
      const damaged = parsed(() => createPrivateKey({ key: flipped(keyDer, bit), format: "der", type: "pkcs8" }));
      if (damaged && isPair(certificate, damaged) && jwk(damaged) !== jwk(createPrivateKey(key))) accepted.push(bit);
    }
    expect(accepted).to.deep.equal([]);
  });

  it("is refused with any bit of its certificate flipped, while that still names itself as its authority", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "test" }], { keyType: "ec" });
    const [certDer, privateKey] = [derOf(cert), createPrivateKey(key)];
    const accepted: number[] = [];
    for (let bit = 0; bit < 8 * certDer.length; bit += 7) {
      const damaged = parsed(() => new X509Certificate(flipped(certDer, bit)));
      if (damaged?.subject === damaged?.issuer && damaged && isPair(damaged, privateKey)) accepted.push(bit);
    }
    expect(accepted).to.deep.equal([]);
  });
});
