/** Owns an entry's plaintext: what put makes of a body, and the replies of put, get and list that are made of it. */
import type { PutBody } from "./bodies.js";
import { writeString } from "./json-string.js";
import { concat, textOf, utf8, wipe } from "./memory.js";
import type { Bytes } from "./protocol.js";

/** Times are ISO 8601 UTC with milliseconds. */
type Times = { readonly createdAt: string; readonly updatedAt: string };

/** The `metadata` object of a put: the supplied fields only. */
export function suppliedMetadata(body: PutBody): string {
  return JSON.stringify({
    ...(body.type && { type: body.type.toString() }),
    ...(body.description && { description: body.description.toString() }),
  });
}

/** Sealed metadata: `{"metadata":{…},"createdAt":"…","updatedAt":"…"}`. */
export function metadataText(supplied: string, times: Times): Bytes {
  return utf8(`{"metadata":${supplied},"createdAt":"${times.createdAt}","updatedAt":"${times.updatedAt}"}`);
}

/** The times of a put now: creation is kept, and `updatedAt` never runs backwards, even when the clock does. */
export function nextTimes(now: number, previous: Bytes | null): Times {
  const at = new Date(now).toISOString();
  if (previous === null) return { createdAt: at, updatedAt: at };
  const before = JSON.parse(textOf(previous)) as Times;
  const latest = Math.max(now, Date.parse(before.updatedAt));
  return { createdAt: before.createdAt, updatedAt: new Date(latest).toISOString() };
}

export function putReply(path: string, valueBytes: number, supplied: string): Bytes {
  return utf8(`{"ok":true,"path":${JSON.stringify(path)},"bytes":${valueBytes},"metadata":${supplied}}`);
}

/** A get's reply; wipes the value, which is then in the reply alone. */
export function getReply(path: string, value: Bytes, metadata: Bytes): Bytes {
  try {
    return concat([`{"path":${JSON.stringify(path)},"value":`, value, ",", metadata.subarray(1)]);
  } finally {
    wipe(value);
  }
}

/** One entry of a list. */
export function listEntry(path: string, metadata: Bytes): Bytes {
  return concat([`{"path":${JSON.stringify(path)},`, metadata.subarray(1)]);
}

/** The value as it is sealed: a JSON string. The caller wipes it. */
export function valueText(body: PutBody): Bytes {
  return writeString(body.value.bytes);
}
