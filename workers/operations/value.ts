/**
 * A value as it is sealed: text as a JSON string, which begins with a quote, so that a get copies it into its response; a
 * binary value as a zero byte and the bytes themselves.
 */
import { decodeString, inScratch, writeString } from "../json/json-string.js";
import { bytesFrom, concatScratch } from "../memory.js";
import { fromBase64, toBase64 } from "../transit/base64.js";

const binaryMark = bytesFrom(0);

export function isBinary(sealed: Uint8Array): boolean {
  return sealed[0] === binaryMark[0];
}

export function sealedText(text: Uint8Array): Uint8Array {
  return writeString(text);
}

/** @throws Error when the text is not base64, which must be checked before */
export function sealedBase64(text: Uint8Array): Uint8Array {
  const bytes = fromBase64(text);
  if (bytes === null) throw new Error("the value is not base64");
  return concatScratch(binaryMark, bytes);
}

export function isBase64(text: Uint8Array): boolean {
  return fromBase64(text) !== null;
}

/** Returns the value's bytes: of a text, in UTF-8. */
export function bytesOfValue(sealed: Uint8Array): Uint8Array {
  return isBinary(sealed) ? sealed.subarray(1) : decodeString(sealed.subarray(1, -1), inScratch).bytes;
}

/** Returns the value as a JSON string: a binary one in base64. */
export function jsonOfValue(sealed: Uint8Array): Uint8Array {
  return isBinary(sealed) ? concatScratch('"', toBase64(sealed.subarray(1)), '"') : sealed;
}

/** Returns the length of the JSON string of a binary value whose sealed form has this length. */
export function jsonLengthOfBinary(sealedLength: number): number {
  return 2 + 4 * Math.ceil((sealedLength - 1) / 3);
}
