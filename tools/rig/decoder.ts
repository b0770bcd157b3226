/** A second decoder of the vault's header and keys, written from the format's description. */
import { createCipheriv, createHmac, scryptSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

type Keys = { readonly kek: Uint8Array; readonly masterKey: Uint8Array };

/** `oldKey`: while the master key is being rotated. */
type DecodedHeader = Keys & { readonly oldKey: Uint8Array | null };

type Wrapping = {
  readonly kdf: { readonly logN: number; readonly r: number; readonly p: number; readonly salt: string };
  readonly wrappedKey: string;
};

/** @throws Error when the passphrase does not match the header. */
export function decodeKeys(home: string, passphrase: string): Keys {
  const { kek, masterKey } = decodeHeader(headerText(home), passphrase);
  return { kek, masterKey };
}

export function headerText(home: string): string {
  const generation = readFileSync(join(home, "vault", "current"), "latin1").trim();
  return readFileSync(join(home, "vault", generation, "header.json"), "utf8");
}

/** Like `decodeKeys`, for a header's text. */
export function decodeHeader(file: string, passphrase: string): DecodedHeader {
  const header = JSON.parse(file);
  return header.version === 1 ? decodeVersion1(file, passphrase) : decodeVersion2(file, passphrase);
}

function decodeVersion1(file: string, passphrase: string): DecodedHeader {
  const header = JSON.parse(file);
  const kek = deriveKek(header, passphrase);
  const signed = file.slice(0, file.indexOf(',"mac":'));
  mustMatch(mac(mac(kek, "strongroom v1 header key"), signed), header.mac);
  const pad = mac(kek, "strongroom v1 key wrap", bytes(header.vaultId));
  return { kek, masterKey: xor(bytes(header.wrappedKey), pad), oldKey: null };
}

function decodeVersion2(file: string, passphrase: string): DecodedHeader {
  const header = JSON.parse(file);
  const [slot] = header.slots;
  const kek = deriveKek(slot, passphrase);
  const checked = file.slice(file.indexOf('{"kind":"passphrase"'), file.indexOf(',"check":'));
  mustMatch(mac(mac(kek, "strongroom v2 slot check"), bytes(header.vaultId), checked), slot.check);
  const pad = mac(kek, "strongroom v2 key wrap", bytes(header.vaultId));
  const masterKey = xor(bytes(slot.wrappedKey), pad);
  const signed = file.slice(0, file.indexOf(',"mac":'));
  mustMatch(mac(derivedKey(masterKey, "header check"), signed), header.mac);
  const oldKey = header.oldKey === undefined ? null : xor(bytes(header.oldKey), derivedKey(masterKey, "old key wrap"));
  return { kek, masterKey, oldKey };
}

/** Returns the MAC of a client token's record. */
export function recordMac(masterKey: Uint8Array, text: string): string {
  return Buffer.from(mac(derivedKey(masterKey, "client token"), text)).toString("base64url");
}

function deriveKek({ kdf: { logN, r, p, salt } }: Wrapping, passphrase: string): Uint8Array {
  return scryptSync(passphrase, bytes(salt), 32, { N: 2 ** logN, r, p, maxmem: 2 ** 31 });
}

/** CMAC (NIST SP 800-38B) in counter mode, as in XAES-256-GCM, with the label K. */
function derivedKey(masterKey: Uint8Array, use: string): Uint8Array {
  const aes = (block: Uint8Array) => createCipheriv("aes-256-ecb", masterKey, null).update(block);
  const l = BigInt(`0x${Buffer.from(aes(Buffer.alloc(16))).toString("hex")}`);
  const k1 = BigInt.asUintN(128, (l << 1n) ^ (l >> 127n ? 0x87n : 0n));
  const key1 = Buffer.from(k1.toString(16).padStart(32, "0"), "hex");
  return Buffer.concat(
    [1, 2].map((i) => aes(xor(Buffer.concat([Buffer.from([0, i, 0x4b, 0]), Buffer.from(use)]), key1))),
  );
}

function mac(key: Uint8Array, ...parts: (string | Uint8Array)[]): Uint8Array {
  return parts.reduce((hmac, part) => hmac.update(part), createHmac("sha256", key)).digest();
}

function mustMatch(computed: Uint8Array, stored: string): void {
  if (Buffer.from(computed).toString("base64url") !== stored) throw new Error("wrong");
}

function xor(a: Uint8Array, b: Uint8Array): Uint8Array {
  return Buffer.from(a).map((byte, i) => byte ^ (b[i] ?? 0));
}

function bytes(text: string): Buffer {
  return Buffer.from(text, "base64url");
}
