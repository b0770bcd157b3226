/** Plaintext of an entry: what put makes of a body, and the replies of put, get and list. */
import { writeString } from "./json/json-string.js";
import { concat, scratchOf, textOf, utf8 } from "./memory.js";
import type { Bytes } from "./protocol.js";
import type { PutBody } from "./request-bodies.js";

/** Times are ISO 8601 UTC with milliseconds. */
type Times = { readonly createdAt: string; readonly updatedAt: string };

/** The `metadata` object of a put: supplied fields only. */
export function suppliedMetadata(body: PutBody): string {
  return JSON.stringify({
    ...(body.type && { type: body.type.toString() }),
    ...(body.description && { description: body.description.toString() }),
  });
}

/** Sealed metadata, in scratch memory: `{"metadata":{…},"createdAt":"…","updatedAt":"…"}`. */
export function metadataText(supplied: string, times: Times): Uint8Array {
  return scratchOf(`{"metadata":${supplied},"createdAt":"${times.createdAt}","updatedAt":"${times.updatedAt}"}`);
}

/** The times of a put: `createdAt` is kept, and `updatedAt` never runs backwards, even when the clock does. */
export function nextTimes(now: number, previous: Uint8Array | null): Times {
  const at = new Date(now).toISOString();
  if (previous === null) return { createdAt: at, updatedAt: at };
  const { createdAt, updatedAt } = JSON.parse(textOf(previous)) as Times;
  return { createdAt, updatedAt: at > updatedAt ? at : updatedAt }; // of one length, so they compare as text
}

export function putReply(path: string, valueBytes: number, supplied: string): Bytes {
  return utf8(`{"ok":true,"path":${JSON.stringify(path)},"bytes":${valueBytes},"metadata":${supplied}}`);
}

export function getReply(path: string, value: Uint8Array, metadata: Uint8Array): Bytes {
  return concat([`{"path":${JSON.stringify(path)},"value":`, value, ",", metadata.subarray(1)]);
}

/** One entry of a list, in pieces. */
export function listEntry(path: string, metadata: Uint8Array): [string, Uint8Array] {
  return [`{"path":${JSON.stringify(path)},`, metadata.subarray(1)];
}

/** The value as it is sealed: a JSON string, in scratch memory. */
export function valueText(body: PutBody): Uint8Array {
  return writeString(body.value.bytes);
}
