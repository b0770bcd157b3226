/** Request bodies: one JSON object as bytes that can be wiped. The caller's bytes, such as a passphrase, never become a string. */
import { StrongroomError } from "./client-error.js";

export type Bytes = Uint8Array<ArrayBuffer>;
type Text = string | Uint8Array;
export type Field = Text | boolean | number | readonly Text[] | undefined;

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;

/** Omits undefined fields. @throws StrongroomError BAD_REQUEST for a string that UTF-8 cannot encode. */
export function jsonObject(fields: Readonly<Record<string, Field>>): Bytes {
  const parts: Bytes[] = [];
  for (const [name, field] of Object.entries(fields)) {
    if (field === undefined) continue;
    parts.push(utf8(`${parts.length === 0 ? "{" : ","}${JSON.stringify(name)}:`), fieldBytes(name, field));
  }
  parts.push(utf8(parts.length === 0 ? "{}" : "}"));
  return joined(parts);
}

/** An object whose only field is a list of objects. @throws StrongroomError BAD_REQUEST */
export function jsonListObject(name: string, items: readonly Readonly<Record<string, Field>>[]): Bytes {
  const parts: Bytes[] = [utf8(`{${JSON.stringify(name)}:[`)];
  try {
    for (const [index, item] of items.entries()) parts.push(...(index > 0 ? [utf8(",")] : []), jsonObject(item));
  } catch (error) {
    for (const part of parts) part.fill(0);
    throw error;
  }
  return joined([...parts, utf8("]}")]);
}

/** Wipes the parts. */
function joined(parts: readonly Bytes[]): Bytes {
  const body = own(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
    part.fill(0);
  }
  return body;
}

function fieldBytes(name: string, field: Exclude<Field, undefined>): Bytes {
  if (typeof field === "boolean" || typeof field === "number") return utf8(String(field));
  if (typeof field === "string" || field instanceof Uint8Array) return textBytes(name, field);
  const items = field.flatMap((text, i) => [utf8(i === 0 ? "" : ","), textBytes(name, text)]);
  return joined([utf8("["), ...items, utf8("]")]);
}

function textBytes(name: string, field: Text): Bytes {
  if (typeof field !== "string") return jsonString(field);
  if (/\p{Surrogate}/u.test(field)) {
    throw new StrongroomError("BAD_REQUEST", `${name} has a lone surrogate, which cannot be stored: remove it`);
  }
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
function own(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}
