/** A TLS pair with a damaged key or certificate is never taken for a pair. */

import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect } from "chai";
import { generate } from "selfsigned";
import { StartError } from "../../src/errors.js";
import { isPair } from "../../src/server/certificate-rules.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";

/** Long form: 200. */
const flips = Number(process.env["STRONGROOM_PAIR_FLIPS"] ?? 10);

function decodePem(pem: string): Buffer {
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

describe("TLS pairs", () => {
  it("a certificate is accepted with its own key, and not with that of another", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "test" }], { keyType: "ec" });
    const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
    const certificate = new X509Certificate(cert);
    expect([isPair(certificate, createPrivateKey(key)), isPair(certificate, other)]).to.deep.equal([true, false]);
  });

  it("a flipped bit that changes the key makes the pair refused", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "test" }], { keyType: "ec" });
    const [certificate, keyDer] = [new X509Certificate(cert), decodePem(key)];
    const jwk = (one: KeyObject) => JSON.stringify(one.export({ format: "jwk" }));
    const accepted: number[] = [];
    for (let bit = 0; bit < 8 * keyDer.length; bit += 3) {
      const damaged = parsed(() => createPrivateKey({ key: flipped(keyDer, bit), format: "der", type: "pkcs8" }));
      if (damaged && isPair(certificate, damaged) && jwk(damaged) !== jwk(createPrivateKey(key))) accepted.push(bit);
    }
    expect(accepted).to.deep.equal([]);
  });

  it("a flipped bit in the server's own certificate makes the pair refused", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "strongroom" }], { keyType: "ec" });
    const [certDer, privateKey] = [decodePem(cert), createPrivateKey(key)];
    const accepted: number[] = [];
    for (let bit = 0; bit < 8 * certDer.length; bit += 3) {
      const damaged = parsed(() => new X509Certificate(flipped(certDer, bit)));
      if (damaged && isPair(damaged, privateKey)) accepted.push(bit);
    }
    expect(accepted).to.deep.equal([]);
  });

  it("a start with a flipped bit in the pair's files refuses, replaces it or serves the same pair", async () => {
    const { home, stop } = await startTestServer();
    await stop();
    const outcomes = new Set<string>();
    for (let i = 0; i < flips; i++) {
      const file = join(home, "tls", i % 2 === 0 ? "cert.pem" : "key.pem");
      const whole = readFileSync(file);
      writeFileSync(file, flipped(whole, Math.floor((i * 8 * whole.length) / flips) + (i % 8)));
      outcomes.add(await outcomeOfStart(home));
      writeFileSync(file, whole);
    }
    expect([...outcomes].sort()).to.deep.equal(["refused", "served"]);
  });
});

async function outcomeOfStart(home: string): Promise<"refused" | "served"> {
  try {
    await mustServe(await startTestServer({ home }));
    return "served";
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    expect(error.message).to.contain(join(home, "tls"));
    return "refused";
  }
}

/** A client that trusts only the home's certificate gets a response. */
async function mustServe(server: TestServer): Promise<void> {
  const cert = readFileSync(join(server.home, "tls", "cert.pem"));
  expect(new X509Certificate(cert).verify(new X509Certificate(cert).publicKey)).to.equal(true);
  const socket = connect({ host: "localhost", port: server.port, ca: cert });
  await once(socket, "secureConnect");
  socket.destroy();
  await server.stop();
}
