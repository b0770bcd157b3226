/**
 * MACs of what the vault keeps in the clear: records, such as client tokens, and the audit log's checkpoints. Only this thread,
 * and only while the vault is unlocked, can make or check them.
 *
 * A rotation of the master key signs the records again before its header is stored: from then on the old key signs no
 * record. A checkpoint names its key, so that later, or in the log of several vaults, a checkpoint under another key is
 * distinguished from a forged one.
 *
 *   mac = HMAC-SHA-256(K(use), the text)                use: "client token" or "audit checkp" (12 characters)
 *   name of a checkpoint's key = the first 9 bytes of HMAC-SHA-256(K("audit checkp"), "key name")
 *   K(use) = `XaesKey.deriveKey` of the master key
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { XaesKey } from "../crypto/xaes.js";
import { base64url, fromBase64url, takeOver, utf8, wipe } from "../memory.js";
import type {
  Bytes,
  CheckpointSignature,
  CheckpointVerdict,
  RequestOf,
  ResultOf,
  SignedCheckpoint,
} from "../protocol.js";
import type { Context } from "./context.js";

const nameBytes = 9;

export function signRecords({ keyring }: Context, { texts }: RequestOf<"signRecords">): ResultOf<"signRecords"> {
  return keyring.withKey(({ masterKey }) => ({ ok: true, macs: recordMacs(masterKey, texts).map(base64url) }));
}

export function verifyRecords(
  { keyring }: Context,
  { texts, macs }: RequestOf<"verifyRecords">,
): ResultOf<"verifyRecords"> {
  return keyring.withKey(({ masterKey, oldKey }) => {
    const older = oldKey !== null && keyring.header?.oldKeySigns ? validUnder(oldKey, texts, macs) : [];
    return { ok: true, valid: validUnder(masterKey, texts, macs).map((is, i) => is || older[i] === true) };
  });
}

/** Signs records for the master key that a rotation proposes; null for a record not signed by the previous key. */
export function resignRecords(
  { keyring }: Context,
  { texts, macs }: RequestOf<"resignRecords">,
): ResultOf<"resignRecords"> {
  return keyring.withProposedKeys(({ masterKey, oldKey }) => {
    const valid = oldKey === null ? [] : validUnder(oldKey, texts, macs);
    return {
      ok: true,
      macs: recordMacs(masterKey, texts).map((mac, i) => (valid[i] === true ? base64url(mac) : null)),
    };
  });
}

export function signCheckpoint(
  { keyring }: Context,
  { text }: RequestOf<"signCheckpoint">,
): ResultOf<"signCheckpoint"> {
  return keyring.withKey(({ masterKey }) => ({ ok: true, ...signatureUnder(masterKey, text) }));
}

/** Signs the checkpoint that comes with a lock; returns null when there is no key. */
export function signLastCheckpoint({ keyring }: Context, text: string): CheckpointSignature | null {
  const signature = keyring.withKeyUntilLock(({ masterKey }) => signatureUnder(masterKey, text));
  return "mac" in signature ? signature : null;
}

export function verifyCheckpoints(
  { keyring }: Context,
  { checkpoints }: RequestOf<"verifyCheckpoints">,
): ResultOf<"verifyCheckpoints"> {
  return keyring.withKey(({ masterKey, oldKey }) => {
    const current = verdictsUnder(masterKey, checkpoints);
    const older = oldKey === null ? current : verdictsUnder(oldKey, checkpoints);
    const verdicts = current.map((verdict, i) => (verdict === "unknown" ? (older[i] ?? verdict) : verdict));
    return { ok: true, verdicts };
  });
}

function signatureUnder(masterKey: XaesKey, text: string): CheckpointSignature {
  return withKeyFor("audit checkp", masterKey, (key) => ({
    key: checkpointKeyName(key),
    mac: base64url(hmac(key, text)),
  }));
}

function verdictsUnder(masterKey: XaesKey, checkpoints: readonly SignedCheckpoint[]): CheckpointVerdict[] {
  return withKeyFor("audit checkp", masterKey, (key) => {
    const name = checkpointKeyName(key);
    return checkpoints.map(({ text, key: claimed, mac }) => {
      if (claimed !== name) return "unknown";
      return isSame(hmac(key, text), mac) ? "valid" : "wrong";
    });
  });
}

function validUnder(key: XaesKey, texts: readonly string[], macs: readonly string[]): boolean[] {
  return recordMacs(key, texts).map((mac, i) => isSame(mac, macs[i] ?? ""));
}

function recordMacs(masterKey: XaesKey, texts: readonly string[]): Bytes[] {
  return withKeyFor("client token", masterKey, (key) => texts.map((text) => hmac(key, text)));
}

function withKeyFor<T>(use: string, masterKey: XaesKey, work: (key: Uint8Array) => T): T {
  const key = masterKey.deriveKey(use);
  try {
    return work(key);
  } finally {
    wipe(key);
  }
}

function checkpointKeyName(key: Uint8Array): string {
  return base64url(hmac(key, "key name").subarray(0, nameBytes));
}

function hmac(key: Uint8Array, text: string): Bytes {
  return takeOver(createHmac("sha256", key).update(utf8(text)).digest());
}

function isSame(mac: Bytes, claimed: string): boolean {
  const bytes = fromBase64url(claimed);
  return bytes.length === mac.length && timingSafeEqual(bytes, mac);
}
