/**
 * Decoder of a vault's header and of its secrets' files, written from docs/on-disk.md alone. It shares no code with the
 * server, so that a mistake in one of the two shows.
 */
import { createCipheriv, createDecipheriv, createHmac, scryptSync, timingSafeEqual } from "node:crypto";

export type Bytes = Uint8Array<ArrayBuffer>;

/** `checked`: the bytes that the check covers. */
export type Slot = {
  readonly kind: "passphrase" | "key";
  /** Null for the passphrase. */
  readonly id: string | null;
  readonly logN: number;
  readonly salt: Buffer;
  readonly wrappedKey: Buffer;
  readonly check: Buffer;
  readonly checked: Buffer;
};

/** `signed`: the bytes that the MAC covers. */
export type Header = {
  readonly version: 1 | 2;
  readonly vaultId: Buffer;
  readonly slots: readonly Slot[];
  readonly oldKey: Buffer | null;
  readonly mac: Buffer;
  readonly signed: Buffer;
};

/** Something that does not match the documented format. */
export class FormatError extends Error {}

/** @throws FormatError */
export function parseHeader(file: Uint8Array): Header {
  const text = Buffer.from(file).toString("utf8");
  const members = parseHeaderJson(text);
  const version = members["version"];
  if (members["format"] !== "strongroom" || (version !== 1 && version !== 2)) {
    throw new FormatError("the header is not of format version 1 or 2");
  }
  const signed = Buffer.from(text.slice(0, text.lastIndexOf(',"mac":')));
  const mac = binary(members["mac"], 32);
  const vaultId = binary(members["vaultId"], 16);
  if (version === 1) {
    const slot = parseSlot({ ...members, kind: "passphrase", check: members["mac"] }, signed);
    return { version, vaultId, slots: [slot], oldKey: null, mac, signed };
  }
  // No label can contain these marks: JSON writes a quotation mark inside a string as \".
  const texts = text.split(/(?=\{"kind":")/).slice(1);
  const slots = slotMembers(members["slots"]).map((slot, i) => {
    return parseSlot(slot, Buffer.from(texts[i]?.split(',"check":"')[0] ?? ""));
  });
  if (slots.length < 1 || slots.length > 16 || slots.length !== texts.length) {
    throw new FormatError("the header has no slots, or too many");
  }
  const oldKey = members["oldKey"] === undefined ? null : binary(members["oldKey"], 32);
  return { version, vaultId, slots, oldKey, mac, signed };
}

type Members = Readonly<Record<string, unknown>>;

function parseHeaderJson(text: string): Members {
  try {
    return JSON.parse(text) as Members;
  } catch {
    throw new FormatError("the header is not JSON");
  }
}

function slotMembers(list: unknown): readonly Members[] {
  if (!Array.isArray(list)) throw new FormatError("the header has no list of slots");
  return list as readonly Members[];
}

function parseSlot({ kind, id, kdf, salt, wrappedKey, check }: Members, checked: Buffer): Slot {
  const { logN, r, p, salt: kdfSalt } = (kdf ?? {}) as Members;
  const isPassphrase = kind === "passphrase";
  if (isPassphrase && !(typeof logN === "number" && logN >= 1 && logN <= 20 && r === 8 && p === 1)) {
    throw new FormatError("the parameters of scrypt are out of bounds");
  }
  return {
    kind: isPassphrase ? "passphrase" : "key",
    id: isPassphrase ? null : String(id),
    logN: Number(logN ?? 0),
    salt: binary(isPassphrase ? kdfSalt : salt, 16),
    wrappedKey: binary(wrappedKey, 32),
    check: binary(check, 32),
    checked,
  };
}

function binary(text: unknown, length: number): Buffer {
  const bytes = Buffer.from(String(text), "base64url");
  if (bytes.length !== length) throw new FormatError(`a member of the header does not have ${length} bytes`);
  return bytes;
}

/** `kekSlot`: the slot that the passphrase or key opens. `oldKey`: while the master key is being rotated. */
export type Keys = {
  readonly kek: Buffer;
  readonly masterKey: Buffer;
  readonly oldKey: Buffer | null;
  readonly kekSlot: Slot;
};

/** Opens a header with a passphrase or the text of a key; null when that opens no slot. The caller wipes the keys. */
export function openHeader(header: Header, passphrase: Uint8Array): Keys | null {
  const key = keyOfText(passphrase);
  for (const slot of header.slots) {
    const kek =
      slot.kind === "key" ? key && hmac(key, "strongroom v2 key slot", slot.salt) : deriveKek(slot, passphrase);
    if (kek === null) continue;
    if (fitsSlot(header, slot, kek)) return unwrapKeys(header, slot, kek);
    kek.fill(0);
  }
  return null;
}

function unwrapKeys(header: Header, slot: Slot, kek: Buffer): Keys {
  const pad = hmac(kek, `strongroom v${header.version} key wrap`, header.vaultId);
  const masterKey = xor(slot.wrappedKey, pad);
  const oldPad = header.oldKey && derivedKey(masterKey, "old key wrap");
  const oldKey = header.oldKey && oldPad && xor(header.oldKey, oldPad);
  pad.fill(0);
  oldPad?.fill(0);
  return { kek, masterKey, oldKey, kekSlot: slot };
}

export function wipeKeys(keys: Keys | null): void {
  for (const key of [keys?.kek, keys?.masterKey, keys?.oldKey]) key?.fill(0);
}

function deriveKek({ logN, salt }: Slot, passphrase: Uint8Array): Buffer {
  return scryptSync(passphrase, salt, 32, { N: 2 ** logN, r: 8, p: 1, maxmem: 2 ** 31 });
}

/** Reads `SRK-` and 13 groups: four letters of Crockford's base32 and a check letter, which is skipped here. */
function keyOfText(text: Uint8Array): Buffer | null {
  const letters = Buffer.from(text).toString("latin1").toUpperCase().replaceAll("-", "").replace(/[IL]/g, "1");
  if (!/^SRK[0-9A-HJKMNP-TV-ZO]{65}$/.test(letters)) return null;
  let bits = 0n;
  for (let i = 0; i < 65; i++) {
    const letter = (letters[3 + i] ?? "").replace("O", "0");
    if (i % 5 !== 4) bits = (bits << 5n) | BigInt("0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(letter));
  }
  return Buffer.from((bits >> 4n).toString(16).padStart(64, "0"), "hex"); // 52 letters are 260 bits
}

/** Returns whether a KEK is the slot's, and the slot is as it was written. */
export function fitsSlot({ version, vaultId }: Header, { check, checked }: Slot, kek: Uint8Array): boolean {
  const covered = version === 1 ? [checked] : [vaultId, checked];
  return timingSafeEqual(hmac(hmac(kek, slotUse(version)), ...covered), check);
}

export function slotUse(version: 1 | 2): string {
  return version === 1 ? "strongroom v1 header key" : "strongroom v2 slot check";
}

/** Returns whether the MAC over all slots is right; a header of version 1 has none under the master key. */
export function isSigned({ version, mac, signed }: Header, masterKey: Uint8Array): boolean {
  return version === 1 || timingSafeEqual(hmac(derivedKey(masterKey, "header check"), signed), mac);
}

/** K(use) of docs/on-disk.md: CMAC (NIST SP 800-38B) in counter mode, as in XAES-256-GCM, with the label K. */
export function derivedKey(masterKey: Uint8Array, use: string): Buffer {
  return derive(masterKey, 0x4b, Buffer.from(use, "latin1"));
}

function derive(key: Uint8Array, label: number, context: Uint8Array): Buffer {
  const aes = createCipheriv("aes-256-ecb", key, null).setAutoPadding(false);
  const k1 = doubled(aes.update(Buffer.alloc(16)));
  const blocks = [1, 2].map((counter) => xor(Buffer.concat([Buffer.from([0, counter, label, 0]), context]), k1));
  const derived = aes.update(Buffer.concat(blocks));
  aes.final();
  return derived;
}

function doubled(l: Buffer): Buffer {
  const value = BigInt(`0x${l.toString("hex")}`);
  const k1 = BigInt.asUintN(128, (value << 1n) ^ (value >> 127n ? 0x87n : 0n));
  return Buffer.from(k1.toString(16).padStart(32, "0"), "hex");
}

/** One version of a secret, opened. `etag`: by which the API knows it. */
export type OpenedSecret = { readonly metadata: Members; readonly value: Buffer; readonly etag: string };

/** The content of a sealed file, one of the things that its boxes are bound to. */
export type Kind = "entry" | "key";

/** Opens the current version of a secret or named key; null when it opens under neither key. @throws FormatError */
export function openBlob(
  { vaultId }: Header,
  keys: Keys,
  path: string,
  file: Buffer,
  kind: Kind = "entry",
): OpenedSecret | null {
  const { metadata, value } = currentBoxes(file);
  const nonce = metadata.subarray(0, 24);
  const aad = (part: "m" | "v") => boxAad(vaultId, kind, part, path);
  for (const key of keys.oldKey === null ? [keys.masterKey] : [keys.masterKey, keys.oldKey]) {
    const openedMetadata = openBox(key, metadata, aad("m"));
    const opened = openedMetadata && openBox(key, value, Buffer.concat([aad("v"), nonce]));
    if (openedMetadata && opened) {
      const etag = metadata.subarray(0, 12).toString("base64url");
      const [shown = ""] = openedMetadata.toString("utf8").split("\n"); // a second line holds attributes that no response has
      return { metadata: JSON.parse(shown) as Members, value: opened, etag };
    }
  }
  return null;
}

/** Returns the secret's file in a file of the trash, which begins with "SRVT", version 1, a time (8) and random bytes (8). */
export function insideOfTrashed(file: Buffer | null): Buffer | null {
  const isTrashed = file !== null && file.subarray(0, 5).toString("latin1") === "SRVT\x01";
  return isTrashed ? file.subarray(21) : file;
}

/** Both boxes of the first version; what follows are earlier ones. */
function currentBoxes(file: Buffer): { readonly metadata: Buffer; readonly value: Buffer } {
  const format = file[4];
  const isKnown = file.subarray(0, 4).toString("latin1") === "SRVB" && (format === 1 || format === 2 || format === 3);
  if (!isKnown || file.length < 9) throw new FormatError("the file is not a sealed secret of version 1, 2 or 3");
  const metadataEnd = 9 + file.readUInt32BE(5);
  const metadata = file.subarray(9, metadataEnd);
  if (format === 1) return { metadata, value: file.subarray(metadataEnd) };
  if (metadataEnd + 4 > file.length) throw new FormatError("the file is cut off");
  const valueAt = metadataEnd + 4;
  return { metadata, value: file.subarray(valueAt, valueAt + file.readUInt32BE(metadataEnd)) };
}

function openBox(key: Uint8Array, box: Buffer, aad: Buffer): Buffer | null {
  if (box.length < 24 + 16) throw new FormatError("a box is too short");
  const subkey = derive(key, 0x58, box.subarray(0, 12));
  const gcm = createDecipheriv("aes-256-gcm", subkey, box.subarray(12, 24), { authTagLength: 16 });
  gcm.setAAD(aad).setAuthTag(box.subarray(-16));
  try {
    return Buffer.concat([gcm.update(box.subarray(24, -16)), gcm.final()]);
  } catch {
    return null;
  } finally {
    subkey.fill(0);
  }
}

function boxAad(vaultId: Buffer, kind: Kind, part: "m" | "v", path: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(path));
  const label = Buffer.from(`strongroom v1 ${kind}`);
  return Buffer.concat([label, vaultId, Buffer.from(part), length, Buffer.from(path)]);
}

function hmac(key: Uint8Array, ...parts: readonly (string | Uint8Array)[]): Buffer {
  return parts.reduce((mac, part) => mac.update(part), createHmac("sha256", key)).digest();
}

function xor(a: Uint8Array, b: Uint8Array): Buffer {
  return Buffer.from(a.map((byte, i) => byte ^ (b[i] ?? 0)));
}
