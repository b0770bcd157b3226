/** Request bodies: one JSON object as bytes that can be wiped. The caller's bytes, such as a passphrase, never become a string. */
import { StrongroomError } from "./errors.js";

export type Bytes = Uint8Array<ArrayBuffer>;
type Text = string | Uint8Array;
/** An object that is no list has texts as its members, none of them secret. */
export type Field = Text | boolean | number | null | readonly Text[] | object | undefined;

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;

/** Omits undefined fields. @throws StrongroomError BAD_REQUEST for a string that UTF-8 cannot encode. */
export function jsonObject(fields: Readonly<Record<string, Field>>): Bytes {
  return joined(function* () {
    let separator = "{";
    for (const [name, field] of Object.entries(fields)) {
      if (field === undefined) continue;
      yield utf8(`${separator}${JSON.stringify(name)}:`);
      yield fieldBytes(name, field);
      separator = ",";
    }
    yield utf8(separator === "{" ? "{}" : "}");
  });
}

/** An object whose only field is a list of objects. @throws StrongroomError BAD_REQUEST */
export function jsonListObject(name: string, items: readonly Readonly<Record<string, Field>>[]): Bytes {
  return joined(function* () {
    yield utf8(`{${JSON.stringify(name)}:`);
    yield* listParts(items, jsonObject);
    yield utf8("}");
  });
}

function* listParts<T>(items: readonly T[], toBytes: (item: T) => Bytes): Generator<Bytes, void, void> {
  yield utf8("[");
  for (const [index, item] of items.entries()) {
    if (index > 0) yield utf8(",");
    yield toBytes(item);
  }
  yield utf8("]");
}

/** Wipes the parts, also when one cannot be made. */
function joined(make: () => Iterable<Bytes>): Bytes {
  const parts: Bytes[] = [];
  try {
    for (const part of make()) parts.push(part);
    return concatenated(parts);
  } finally {
    for (const part of parts) part.fill(0);
  }
}

function concatenated(parts: readonly Bytes[]): Bytes {
  const bytes = own(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function fieldBytes(name: string, field: Exclude<Field, undefined>): Bytes {
  if (field === null || typeof field === "boolean" || typeof field === "number") return utf8(String(field));
  if (typeof field === "string" || field instanceof Uint8Array) return textBytes(name, field);
  if (!isList(field)) return textsBytes(name, field);
  return joined(() => listParts(field, (text) => textBytes(name, text)));
}

/** TypeScript does not narrow a readonly list by `Array.isArray`. */
function isList(field: object): field is readonly Text[] {
  return Array.isArray(field);
}

function textsBytes(name: string, texts: object): Bytes {
  if (Object.entries(texts).some((member) => /\p{Surrogate}/u.test(member.join(" ")))) throw loneSurrogate(name);
  return utf8(JSON.stringify(texts));
}

function loneSurrogate(name: string): StrongroomError {
  return new StrongroomError("BAD_REQUEST", `${name} has a lone surrogate, which cannot be stored: remove it`);
}

function textBytes(name: string, field: Text): Bytes {
  if (typeof field !== "string") return jsonString(field);
  if (/\p{Surrogate}/u.test(field)) throw loneSurrogate(name);
  const bytes = utf8(field);
  try {
    return jsonString(bytes);
  } finally {
    bytes.fill(0);
  }
}

function jsonString(text: Uint8Array): Bytes {
  let length = 2;
  for (const byte of text) length += escapedLength(byte);
  const json = own(length);
  let at = 1;
  for (const byte of text) at = writeEscaped(json, at, byte);
  json[0] = quote;
  json[at] = quote;
  return json;
}

function escapedLength(byte: number): number {
  if (byte < firstPrintable) return 6;
  return byte === quote || byte === backslash ? 2 : 1;
}

function writeEscaped(json: Bytes, at: number, byte: number): number {
  if (byte < firstPrintable) {
    json.set(utf8(`\\u${byte.toString(16).padStart(4, "0")}`), at);
    return at + 6;
  }
  if (byte !== quote && byte !== backslash) {
    json[at] = byte;
    return at + 1;
  }
  json[at] = backslash;
  json[at + 1] = byte;
  return at + 2;
}

function utf8(text: string): Bytes {
  const bytes = own(Buffer.byteLength(text));
  new TextEncoder().encodeInto(text, bytes);
  return bytes;
}

/** An explicit ArrayBuffer never moves: wiping reaches the only copy. */
export function own(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}

const alphabet = utf8("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
const padding = 0x3d;

/** Encodes bytes in base64, as bytes that can be wiped. */
export function encodeBase64(bytes: Uint8Array): Bytes {
  const text = own(4 * Math.ceil(bytes.length / 3));
  for (let i = 0, at = 0; i < bytes.length; i += 3) {
    const group = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    for (let shift = 18; shift >= 0; shift -= 6) text[at++] = alphabet[(group >> shift) & 63] ?? 0;
  }
  return text.fill(padding, text.length - ((3 - (bytes.length % 3)) % 3));
}
