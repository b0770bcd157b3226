/** The naive app's worker thread: seals an entry as JSON with AES-256-GCM, and opens it again. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { workerData } from "piscina";

export type Entry = {
  readonly value: string;
  readonly metadata: object;
  readonly createdAt: string;
  readonly updatedAt: string;
};

const { key } = workerData as { key: Uint8Array };

/** nonce (12) ‖ tag (16) ‖ ciphertext */
export function seal({ path, entry }: { path: string; entry: Entry }): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(path));
  const ciphertext = Buffer.concat([cipher.update(JSON.stringify(entry), "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]);
}

export function open({ path, blob }: { path: string; blob: Uint8Array }): Entry {
  const decipher = createDecipheriv("aes-256-gcm", key, blob.subarray(0, 12)).setAAD(Buffer.from(path));
  decipher.setAuthTag(blob.subarray(12, 28));
  const text = Buffer.concat([decipher.update(blob.subarray(28)), decipher.final()]).toString("utf8");
  return JSON.parse(text) as Entry;
}
