/** SSH public keys (RFC 4253, 5656, 8709) of transit keys, and signatures in SSH's form. */
import { createPublicKey } from "node:crypto";
import { mpint, string } from "./ssh-wire.js";

const curve = "nistp256";

/** How a transit key signs what SSH asks for. */
type SshSigning = {
  readonly hash: "sha2-256" | "sha2-512";
  readonly marshaling?: "jws";
  readonly signatureAlgorithm?: "pkcs1v15";
};

type Signing = { readonly algorithm: string; readonly how: SshSigning };

/** Flags of a request to sign (draft-ietf-sshm-ssh-agent section 3.6.1). */
const rsaSha256 = 2;
const rsaSha512 = 4;

/** Returns the key in SSH's form, or null for a type that SSH does not use. */
export function sshPublicKey(pem: string): Buffer | null {
  if (!pem.startsWith("-----BEGIN ")) return null; // a recipient of age
  const { kty, crv, x = "", y = "", n = "", e = "" } = createPublicKey(pem).export({ format: "jwk" });
  const bytes = (text: string) => Buffer.from(text, "base64url");
  if (crv === "Ed25519") return Buffer.concat([string("ssh-ed25519"), string(bytes(x))]);
  if (kty === "RSA") return Buffer.concat([string("ssh-rsa"), mpint(bytes(e)), mpint(bytes(n))]);
  if (crv !== "P-256") return null;
  const point = Buffer.concat([Buffer.of(4), bytes(x), bytes(y)]);
  return Buffer.concat([string(`ecdsa-sha2-${curve}`), string(curve), string(point)]);
}

/** Returns how to sign for SSH; null for SHA-1, which this agent does not sign with. */
export function signingFor(type: string, flags: number): Signing | null {
  if (type === "ed25519") return { algorithm: "ssh-ed25519", how: { hash: "sha2-256" } };
  if (type === "ecdsa-p256") return { algorithm: `ecdsa-sha2-${curve}`, how: { hash: "sha2-256", marshaling: "jws" } };
  if ((flags & rsaSha512) !== 0)
    return { algorithm: "rsa-sha2-512", how: { hash: "sha2-512", signatureAlgorithm: "pkcs1v15" } };
  if ((flags & rsaSha256) !== 0)
    return { algorithm: "rsa-sha2-256", how: { hash: "sha2-256", signatureAlgorithm: "pkcs1v15" } };
  return null;
}

/** Returns a signature in SSH's form. `text`: as the server answers it. */
export function sshSignature(algorithm: string, text: string): Buffer {
  const raw = Buffer.from(text.replace(/^vault:v\d+:/, ""), "base64url");
  const body = algorithm.startsWith("ecdsa-")
    ? Buffer.concat([mpint(raw.subarray(0, 32)), mpint(raw.subarray(32))])
    : raw;
  return Buffer.concat([string(algorithm), string(body)]);
}
