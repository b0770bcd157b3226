/**
 * A secret's value as `data` of Vault's KV engine, and back. An object `{"value": text}` alone is the text, and with
 * `"encoding": "base64"` the bytes; any other object is its own JSON text, and a text that is a JSON object is read as one.
 */
import type { OpenedVersion } from "../crypto/blob.js";
import { isObject, readMembers } from "../json/json-reader.js";
import { decodeString, inScratch, quote } from "../json/json-string.js";
import { equal, utf8 } from "../memory.js";
import { fromBase64, toBase64 } from "../transit/base64.js";
import { type Content, type Custom, type Described, isOfBinary, readMetadata, withoutMark } from "./entry.js";
import { bytesOfValue, isBinary, jsonOfValue, sealedBase64, sealedText } from "./value.js";

type Pieces = readonly (Uint8Array | string)[];

/** Returns what a write of this object seals; null when it is no object. */
export function contentOfData(data: Uint8Array): Omit<Content, "supplied"> | null {
  const members = readMembers(data);
  if (members === null) return null;
  const [first, second] = members.map(({ name, value }) => ({ name, text: textIn(value) }));
  if (members.length === 1 && first?.text && equal(first.name, valueName)) return contentOfText(first.text);
  if (members.length === 2 && first?.text && second?.text && areValueAndEncoding(first.name, second)) {
    const bytes = fromBase64(first.text);
    // Another spelling of base64 would not be read as it was written.
    if (bytes !== null && equal(toBase64(bytes), first.text)) {
      return { value: sealedBase64(first.text), valueBytes: bytes.length };
    }
  }
  return { value: sealedText(data), valueBytes: data.length };
}

const [valueName, encodingName, base64Name] = [utf8("value"), utf8("encoding"), utf8("base64")];

/** Returns the text of a JSON string, in scratch memory; null for another value, or invalid Unicode. */
function textIn(value: Uint8Array): Uint8Array | null {
  if (value[0] !== quote) return null;
  const { bytes, wellFormed } = decodeString(value.subarray(1, -1), inScratch);
  return wellFormed ? bytes : null;
}

function contentOfText(text: Uint8Array): Omit<Content, "supplied"> {
  const content = { value: sealedText(text), valueBytes: text.length };
  return isObject(text) ? { ...content, wrapped: true } : content;
}

function areValueAndEncoding(name: Uint8Array, { name: other, text }: { name: Uint8Array; text: Uint8Array | null }) {
  return equal(name, valueName) && equal(other, encodingName) && text !== null && equal(text, base64Name);
}

/** Returns the object that a value is read as, in pieces. */
export function kvDataJson({ value, metadata }: OpenedVersion, { attributes }: Described): Pieces {
  if (isOfBinary(withoutMark(metadata)) && isBinary(value)) {
    return ['{"value":', jsonOfValue(value), ',"encoding":"base64"}'];
  }
  const text = bytesOfValue(value);
  if (attributes.version?.wrapped !== true && isObject(text)) return [text];
  return ['{"value":', value, "}"];
}

/** Returns `data` of a read, in pieces. `show`: what the value is shown as, under which name; null: as it is. */
export function readReply(opened: OpenedVersion, show: ((data: Pieces) => Pieces) | null): Pieces {
  const described = readMetadata(opened.metadata);
  const data = kvDataJson(opened, described);
  const shown = show === null ? ['{"data":', ...data] : ['{"subkeys":', ...show(data)];
  return [...shown, `,"metadata":${versionJson(described)}}`];
}

/** Vault shows no custom metadata as null. */
export function customOrNull(custom: Custom = {}): Custom | null {
  return Object.keys(custom).length === 0 ? null : custom;
}

export function versionJson({ updatedAt, deletedAt = "", destroyed, version, metadata }: Described): string {
  const times = { created_time: updatedAt, custom_metadata: customOrNull(metadata.custom), deletion_time: deletedAt };
  return JSON.stringify({ ...times, destroyed: destroyed === true, version });
}
