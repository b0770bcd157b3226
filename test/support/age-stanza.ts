/** X25519 stanzas of age, as a client makes them for a recipient. */
import { createCipheriv, createPublicKey, diffieHellman, generateKeyPairSync, hkdfSync } from "node:crypto";
import { bech32 } from "@scure/base";

const spkiPrefix = Buffer.from("302a300506032b656e032100", "hex");

/** Wraps a file key for a recipient; both parts are in base64, as the API takes them. */
export function wrapFileKey(
  recipient: string,
  fileKey: Uint8Array,
): { readonly share: string; readonly wrapped: string } {
  const recipientBytes = bech32.decodeToBytes(recipient).bytes;
  const publicKey = createPublicKey({ key: Buffer.concat([spkiPrefix, recipientBytes]), format: "der", type: "spki" });
  const ephemeral = generateKeyPairSync("x25519");
  const share = ephemeral.publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  const secret = diffieHellman({ privateKey: ephemeral.privateKey, publicKey });
  const key = hkdfSync("sha256", secret, Buffer.concat([share, recipientBytes]), "age-encryption.org/v1/X25519", 32);
  const cipher = createCipheriv("chacha20-poly1305", new Uint8Array(key), Buffer.alloc(12), { authTagLength: 16 });
  const wrapped = Buffer.concat([cipher.update(fileKey), cipher.final(), cipher.getAuthTag()]);
  return { share: share.toString("base64"), wrapped: wrapped.toString("base64") };
}
