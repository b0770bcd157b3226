/**
 * MACs of records that the vault keeps in the clear, such as client tokens. Only this thread, and only while the vault is
 * unlocked, can make or check them.
 *
 * While the master key is being rotated, MACs of the old one are valid, too.
 *
 *   mac = HMAC-SHA-256(K("client token"), the record's text); K(use) = `XaesKey.deriveKey` of the master key
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { XaesKey } from "./crypto/xaes.js";
import type { Keyring } from "./keyring.js";
import { base64url, fromBase64url, takeOver, utf8, wipe, withScratch } from "./memory.js";
import type { Bytes, ReplyOf, RequestOf } from "./protocol.js";
import { lockedNow } from "./refusals.js";

const use = "client token";

export class Records {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  sign({ texts }: RequestOf<"signRecords">): ReplyOf<"signRecords"> {
    const key = this.#keyring.sealingKey;
    if (key === null) return lockedNow;
    return { ok: true, macs: macsOf(key.masterKey, texts).map(base64url) };
  }

  verify({ texts, macs }: RequestOf<"verifyRecords">): ReplyOf<"verifyRecords"> {
    const key = this.#keyring.sealingKey;
    if (key === null) return lockedNow;
    const isValid = (masterKey: XaesKey) => macsOf(masterKey, texts).map((mac, i) => isSame(mac, macs[i] ?? ""));
    const valid = isValid(key.masterKey);
    const older = key.oldKey === null ? [] : isValid(key.oldKey);
    return { ok: true, valid: valid.map((is, i) => is || older[i] === true) };
  }
}

function macsOf(masterKey: XaesKey, texts: readonly string[]): Bytes[] {
  return withScratch(() => {
    const key = masterKey.deriveKey(use);
    try {
      return texts.map((text) => takeOver(createHmac("sha256", key).update(utf8(text)).digest()));
    } finally {
      wipe(key);
    }
  });
}

function isSame(mac: Bytes, claimed: string): boolean {
  const bytes = fromBase64url(claimed);
  return bytes.length === mac.length && timingSafeEqual(bytes, mac);
}
