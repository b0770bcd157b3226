/** Plaintext of an entry: what put makes of a body, and the replies of put, get and list. */
import { hasNumber } from "../crypto/blob.js";
import { writeString } from "../json/json-string.js";
import { scratchOf, textOf, utf8 } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";
import type { PutBody } from "../request-bodies.js";

/** Times are ISO 8601 UTC with milliseconds. */
type Times = { readonly createdAt: string; readonly updatedAt: string };

/** The `metadata` object of a put: supplied fields only. */
export function suppliedMetadata(body: PutBody): string {
  return JSON.stringify({
    ...(body.type && { type: body.type.toString() }),
    ...(body.description && { description: body.description.toString() }),
  });
}

/** What a version's sealed metadata says. */
type Described = Times & { readonly metadata: object; readonly version: number };

/** Sealed metadata, in scratch memory: `{"metadata":{…},"createdAt":"…","updatedAt":"…","version":N}`. */
export function metadataText(supplied: string, { createdAt, updatedAt }: Times, version: number): Uint8Array {
  return scratchOf(
    `{"metadata":${supplied},"createdAt":"${createdAt}","updatedAt":"${updatedAt}","version":${version}}`,
  );
}

/** Reads opened metadata; a secret of format version 1 has the version 1. */
export function readMetadata(opened: Uint8Array): Described {
  return { version: 1, ...(JSON.parse(textOf(opened)) as Times & { readonly metadata: object }) };
}

/** The times of a put: `createdAt` is kept, and `updatedAt` never runs backwards, even when the clock does. */
export function nextTimes(now: number, previous: Times | null): Times {
  const at = new Date(now).toISOString();
  if (previous === null) return { createdAt: at, updatedAt: at };
  const { createdAt, updatedAt } = previous;
  return { createdAt, updatedAt: at > updatedAt ? at : updatedAt }; // of one length, so they compare as text
}

export function putReply(path: string, valueBytes: number, supplied: string, version: number, etag: string): Bytes {
  const name = JSON.stringify(path);
  return utf8(
    `{"ok":true,"path":${name},"bytes":${valueBytes},"metadata":${supplied},"version":${version},"etag":"${etag}"}`,
  );
}

/** A get's reply, in pieces. */
export function getReply(path: string, value: Uint8Array, metadata: Uint8Array, etag: string): (Uint8Array | string)[] {
  return [`{"path":${JSON.stringify(path)},"value":`, value, ",", ...restOfEntry(metadata, etag)];
}

/** One entry of a list, in pieces. */
export function listEntry(path: string, metadata: Uint8Array, etag: string): (Uint8Array | string)[] {
  return [`{"path":${JSON.stringify(path)},`, ...restOfEntry(metadata, etag)];
}

/** One entry of a list of versions, in pieces. */
export function versionEntry(metadata: Uint8Array, etag: string): (Uint8Array | string)[] {
  return ["{", ...restOfEntry(metadata, etag)];
}

/** The members of opened metadata, the version's number also where none is sealed, the tag, and the end of the object. */
function restOfEntry(metadata: Uint8Array, etag: string): (Uint8Array | string)[] {
  const number = hasNumber(metadata) ? "" : ',"version":1';
  return [metadata.subarray(1, -1), `${number},"etag":"${etag}"}`];
}

/** The value as it is sealed: a JSON string, in scratch memory. */
export function valueText(body: PutBody): Uint8Array {
  return writeString(body.value.bytes);
}
