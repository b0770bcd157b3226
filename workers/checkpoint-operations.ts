/**
 * Checkpoints of the audit log: MACs that only this thread, and only while the vault is unlocked, can make or check.
 *
 * Each names its key, so that after a rotation of the master key, or in a log that has seen several vaults, the checkpoint
 * of another key is told from a forged one. While the master key is being rotated, the old one checks, too.
 *
 *   key = the first 9 bytes of HMAC-SHA-256(K("audit checkpoint"), "key name")
 *   mac = HMAC-SHA-256(K("audit checkpoint"), the checkpoint's text); K(use) = `XaesKey.deriveKey` of the master key
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { XaesKey } from "./crypto/xaes.js";
import type { Keyring } from "./keyring.js";
import { base64url, fromBase64url, takeOver, utf8, wipe } from "./memory.js";
import type { Bytes, CheckpointVerdict, ReplyOf, RequestOf, SignedCheckpoint } from "./protocol.js";

const use = "audit checkpoint";
const nameBytes = 9;

export class Checkpoints {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  sign({ text }: RequestOf<"signCheckpoint">): ReplyOf<"signCheckpoint"> {
    return this.#keyring.withKey(({ masterKey }) =>
      withCheckpointKey(masterKey, (key) => ({ ok: true, key: nameOf(key), mac: base64url(hmac(key, text)) })),
    );
  }

  verify({ checkpoints }: RequestOf<"verifyCheckpoints">): ReplyOf<"verifyCheckpoints"> {
    return this.#keyring.withKey(({ masterKey, oldKey }) => {
      const current = verdictsUnder(masterKey, checkpoints);
      const older = oldKey === null ? current : verdictsUnder(oldKey, checkpoints);
      const verdicts = current.map((verdict, i) => (verdict === "unknown" ? (older[i] ?? verdict) : verdict));
      return { ok: true, verdicts };
    });
  }
}

function verdictsUnder(masterKey: XaesKey, checkpoints: readonly SignedCheckpoint[]): CheckpointVerdict[] {
  return withCheckpointKey(masterKey, (key) => {
    const name = nameOf(key);
    return checkpoints.map(({ text, key: claimed, mac }) => {
      if (claimed !== name) return "unknown";
      return isSame(hmac(key, text), mac) ? "valid" : "wrong";
    });
  });
}

function withCheckpointKey<T>(masterKey: XaesKey, work: (key: Uint8Array) => T): T {
  const key = masterKey.deriveKey(use);
  try {
    return work(key);
  } finally {
    wipe(key);
  }
}

function nameOf(key: Uint8Array): string {
  return base64url(hmac(key, "key name").subarray(0, nameBytes));
}

function hmac(key: Uint8Array, text: string): Bytes {
  return takeOver(createHmac("sha256", key).update(utf8(text)).digest());
}

function isSame(mac: Bytes, claimed: string): boolean {
  const bytes = fromBase64url(claimed);
  return bytes.length === mac.length && timingSafeEqual(bytes, mac);
}
