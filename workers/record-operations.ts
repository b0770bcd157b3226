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
import { base64url, fromBase64url, takeOver, utf8, wipe } from "./memory.js";
import type { Bytes, ReplyOf, RequestOf } from "./protocol.js";

const use = "client token";

export class Records {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  sign({ texts }: RequestOf<"signRecords">): ReplyOf<"signRecords"> {
    return this.#keyring.withKey(({ masterKey }) => ({ ok: true, macs: macsOf(masterKey, texts).map(base64url) }));
  }

  verify({ texts, macs }: RequestOf<"verifyRecords">): ReplyOf<"verifyRecords"> {
    return this.#keyring.withKey(({ masterKey, oldKey }) => {
      const isValid = (key: XaesKey) => macsOf(key, texts).map((mac, i) => isSame(mac, macs[i] ?? ""));
      const older = oldKey === null ? [] : isValid(oldKey);
      return { ok: true, valid: isValid(masterKey).map((is, i) => is || older[i] === true) };
    });
  }
}

function macsOf(masterKey: XaesKey, texts: readonly string[]): Bytes[] {
  const key = masterKey.deriveKey(use);
  try {
    return texts.map((text) => takeOver(createHmac("sha256", key).update(utf8(text)).digest()));
  } finally {
    wipe(key);
  }
}

function isSame(mac: Bytes, claimed: string): boolean {
  const bytes = fromBase64url(claimed);
  return bytes.length === mac.length && timingSafeEqual(bytes, mac);
}
