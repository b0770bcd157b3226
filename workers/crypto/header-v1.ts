/**
 * Header version 1, which is read for ever and never written: one passphrase, and a MAC under its KEK.
 *
 *   {"format":"strongroom","version":1,"vaultId":<16>,"createdAt":<ISO 8601>,
 *    "kdf":{"name":"scrypt","logN":17,"r":8,"p":1,"salt":<16>},"wrappedKey":<32>,"mac":<32>}
 *
 *   KEK        = scrypt(passphrase, salt, N = 2^logN, r = 8, p = 1), 32 bytes (RFC 7914)
 *   wrappedKey = master key xor HMAC-SHA-256(KEK, "strongroom v1 key wrap" ‖ vaultId)
 *   mac        = HMAC-SHA-256(HMAC-SHA-256(KEK, "strongroom v1 header key"), all bytes before `,"mac"`)
 */
import { equal, utf8 } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";
import {
  base64,
  fromBase64,
  type Header,
  isoTime,
  kdfText,
  type Members,
  macBytes,
  masterKeyBytes,
  parseKdf,
  vaultIdBytes,
} from "./header-members.js";

/** The MAC is the check of the only slot. Null when the bytes are not the one encoding. */
export function parseVersion1(bytes: Bytes, members: Members, minLogN: number): Header | null {
  const kdf = parseKdf(members["kdf"], minLogN);
  const vaultId = fromBase64(members["vaultId"], vaultIdBytes);
  const createdAt = isoTime(members["createdAt"]);
  const wrappedKey = fromBase64(members["wrappedKey"], masterKeyBytes);
  const mac = fromBase64(members["mac"], macBytes);
  const signed =
    `{"format":"strongroom","version":1,"vaultId":${base64(vaultId)},"createdAt":"${createdAt}",` +
    `"kdf":${kdfText(kdf)},"wrappedKey":${base64(wrappedKey)}`;
  if (!equal(bytes, utf8(`${signed},"mac":${base64(mac)}}\n`))) return null;
  const slots = [{ kind: "passphrase", createdAt, kdf, wrappedKey, check: mac }] as const;
  return { version: 1, bytes, vaultId, createdAt, slots, oldKey: null, mac };
}
