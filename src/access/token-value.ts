/**
 * Values of generated tokens: a prefix, 32 random bytes, and a checksum that tells a damaged copy from a wrong token.
 *
 *   srt_ or src_ ‖ base64url of the bytes (43 characters) ‖ base64url of the CRC-32 of all before it (6 characters)
 *
 * Values of earlier versions have no checksum, and stay valid. So does a value that an owner has chosen, unless it begins as a
 * generated one does.
 */
import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

export const prefixes = { root: "srt_", client: "src_" } as const;

const randomCharacters = 43;
const checkCharacters = 6;

export function newTokenValue(kind: keyof typeof prefixes): string {
  const value = `${prefixes[kind]}${randomBytes(32).toString("base64url")}`;
  return value + checksumOf(value);
}

/** Whether the value begins as a generated one does, and was cut, extended or changed since. */
export function isDamagedValue(value: string): boolean {
  const prefix = Object.values(prefixes).find((one) => value.startsWith(one));
  if (prefix === undefined) return false;
  const rest = value.length - prefix.length;
  if (rest === randomCharacters) return false;
  return (
    rest !== randomCharacters + checkCharacters ||
    checksumOf(value.slice(0, -checkCharacters)) !== value.slice(-checkCharacters)
  );
}

function checksumOf(text: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return bytes.toString("base64url");
}
