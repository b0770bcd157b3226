/** Decoding of a secret without a string: its value is found in the bytes of a response, and put into memory that is wiped. */
import type { ServerLocation } from "./discovery.js";
import { type Bytes, own } from "./json-body.js";
import type { ApiRequest } from "./request.js";
import { type Received, responseDecoder } from "./response.js";
import { SecretBytes } from "./secret-bytes.js";

const decodeSecret = responseDecoder("Secret");
const valueName = Buffer.from('"value":"');
const [quote, backslash] = [0x22, 0x5c];
const openers = [0x7b, 0x5b];
const closers = [0x7d, 0x5d];

/** Decodes the response to a get; its bytes are wiped. @throws StrongroomError */
export function decodeSecretBytes(received: Received, location: ServerLocation, request: ApiRequest): SecretBytes {
  const { body } = received;
  const span = received.status === 200 ? valueSpan(body) : null;
  if (span === null) return new SecretBytes(own(0), decodeSecret(received, location, request));
  try {
    const others = Buffer.concat([body.subarray(0, span.start), body.subarray(span.end)]);
    const described = decodeSecret({ ...received, body: others }, location, request);
    const text = unescaped(body.subarray(span.start, span.end));
    return new SecretBytes(described.encoding === undefined ? text : fromBase64(text), described);
  } finally {
    body.fill(0);
  }
}

type Span = { readonly start: number; readonly end: number };

/** Returns where the text of the member `value` is, between its quotes; null where there is none. */
function valueSpan(json: Buffer): Span | null {
  for (let at = 0, depth = 0; at < json.length; at++) {
    const byte = json[at] ?? 0;
    depth += Number(openers.includes(byte)) - Number(closers.includes(byte));
    if (byte === quote && depth === 1 && json.subarray(at, at + valueName.length).equals(valueName)) {
      const start = at + valueName.length;
      const end = closingQuote(json, start);
      return end < json.length ? { start, end } : null;
    }
    if (byte === quote) at = closingQuote(json, at + 1);
  }
  return null;
}

function closingQuote(json: Uint8Array, start: number): number {
  let at = start;
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1;
  return at;
}

const shortEscapes = new Map([..."bfnrt"].map((letter, i) => [letter.charCodeAt(0), [8, 12, 10, 13, 9][i] ?? 0]));

/** Returns the text of a JSON string in UTF-8. */
function unescaped(escaped: Uint8Array): Bytes {
  const text = own(escaped.length);
  let length = 0;
  for (let at = 0; at < escaped.length; length++) {
    const byte = escaped[at] ?? 0;
    text[length] = byte === backslash ? meaning(escaped.subarray(at + 1, at + 6)) : byte;
    at += byte !== backslash ? 1 : escaped[at + 1] === letterU ? 6 : 2;
  }
  return text.subarray(0, length);
}

const letterU = 0x75;

/** Returns the code of an escaped character. The server escapes only control characters by number. `escaped`: after its backslash. */
function meaning(escaped: Uint8Array): number {
  const [letter = 0, , , high = 0, low = 0] = escaped;
  return letter === letterU ? 16 * hexDigit(high) + hexDigit(low) : (shortEscapes.get(letter) ?? letter);
}

function hexDigit(byte: number): number {
  return byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57;
}

const alphabet = Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
const padding = 0x3d;

/** Decodes base64, which is wiped. */
function fromBase64(text: Bytes): Bytes {
  const end = text.indexOf(padding);
  const digits = end < 0 ? text.length : end;
  const bytes = own(Math.floor((digits * 3) / 4));
  for (let at = 0, length = 0, held = 0; at < digits; at++) {
    held = ((held << 6) | alphabet.indexOf(text[at] ?? 0)) & 0xffffff;
    if (at % 4 > 0) bytes[length++] = (held >> (6 - 2 * (at % 4))) & 255;
  }
  text.fill(0);
  return bytes;
}
