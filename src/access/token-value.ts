/**
 * Values of generated tokens: a prefix, 32 random bytes, and a checksum that tells a damaged copy from a wrong token.
 *
 *   srt_ or src_ ‖ base64url of the bytes (43 characters) ‖ base64url of the CRC-32 of all before it (6 characters)
 *
 * The value of a child token or a session also says when it ends, so that the server can forget it then and still tell it from a guess:
 * before the checksum stands base64url (8 characters) of the milliseconds since 1970 in 6 bytes, 0 without end.
 *
 * Values of earlier versions have no checksum, and stay valid. So does a value that an owner has chosen, unless it begins as a
 * generated one does.
 */
import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

export const prefixes = { root: "srt_", client: "src_" } as const;

const randomCharacters = 43;
const checkCharacters = 6;
const timeBytes = 6;
const timeCharacters = 8;

const lengths = [randomCharacters + checkCharacters, randomCharacters + timeCharacters + checkCharacters];

export function newTokenValue(kind: keyof typeof prefixes): string {
  const value = `${prefixes[kind]}${randomBytes(32).toString("base64url")}`;
  return value + valueChecksum(value);
}

/** @param end milliseconds since 1970; null: never */
export function newChildValue(end: number | null): string {
  const time = Buffer.alloc(timeBytes);
  time.writeUIntBE(end ?? 0, 0, timeBytes);
  const value = `${prefixes.client}${randomBytes(32).toString("base64url")}${time.toString("base64url")}`;
  return value + valueChecksum(value);
}

/** Whether it is the value of a child token or session that has ended by itself: it is valid nowhere, so it is no guess. */
export function isExpiredValue(value: string, now: number): boolean {
  const start = prefixes.client.length + randomCharacters;
  if (value.length !== start + timeCharacters + checkCharacters || isDamagedValue(value)) return false;
  if (!value.startsWith(prefixes.client)) return false;
  const end = Buffer.from(value.slice(start, start + timeCharacters), "base64url").readUIntBE(0, timeBytes);
  return end !== 0 && now >= end;
}

/** Whether the value begins as a generated one does, and was cut, extended or changed since. */
export function isDamagedValue(value: string): boolean {
  const prefix = Object.values(prefixes).find((one) => value.startsWith(one));
  if (prefix === undefined) return false;
  const rest = value.length - prefix.length;
  if (rest === randomCharacters) return false;
  return !lengths.includes(rest) || valueChecksum(value.slice(0, -checkCharacters)) !== value.slice(-checkCharacters);
}

function valueChecksum(text: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return bytes.toString("base64url");
}
