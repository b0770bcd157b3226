/**
 * Entries in plaintext: what put makes of a body and of the previous blob, and the replies of put, get and list.
 */
import {
  etagOfCurrent,
  hasNumber,
  isPrivate,
  lengthOfVersion,
  metadataEnd,
  type OpenedVersion,
  openMetadata,
  openVersion,
  privatePart,
  publicPart,
  type SealedVersion,
  type SealingKey,
  sealBlob,
  splitBlob,
} from "../crypto/blob.js";
import { decodeString, inScratch, writeString } from "../json/json-string.js";
import { equal, scratchOf, textOf, utf8 } from "../memory.js";
import type { Bytes, HistoryLimits, ReplyOf, SealReply } from "../protocol.js";
import { damaged } from "../refusals.js";
import type { PutBody } from "./request-bodies.js";

/** Times are ISO 8601 UTC with milliseconds. */
type Times = { readonly createdAt: string; readonly updatedAt: string };

/** The `metadata` object of a put: supplied fields only. */
function suppliedMetadata(body: PutBody): string {
  return JSON.stringify({
    ...(body.type && { type: body.type.toString() }),
    ...(body.description && { description: body.description.toString() }),
  });
}

/** Sealed with the metadata and in no response. `secret`: of the secret; every new version takes it over. */
export type Attributes = { readonly secret?: SecretAttributes };

/** `uses`: the hosts that requests with this secret may go to. */
export type SecretAttributes = { readonly uses?: readonly object[] };

/** What a version's sealed metadata says. */
type Described = Times & { readonly metadata: object; readonly version: number; readonly attributes: Attributes };

/**
 * Sealed metadata, in scratch memory: `{"metadata":{…},"createdAt":"…","updatedAt":"…","version":N}`, and on a second line
 * the attributes; null: the secret has never had any.
 */
export function metadataText(
  supplied: string,
  { createdAt, updatedAt }: Times,
  version: number,
  attributes: Attributes | null = null,
): Uint8Array {
  const shown = `{"metadata":${supplied},"createdAt":"${createdAt}","updatedAt":"${updatedAt}","version":${version}}`;
  return scratchOf(attributes === null ? shown : `${shown}\n${JSON.stringify(attributes)}`);
}

/** Reads opened metadata; a secret of format version 1 has the version 1. */
export function readMetadata(opened: Uint8Array): Described {
  const shown = JSON.parse(textOf(publicPart(opened))) as Times & { readonly metadata: object };
  const hidden = privatePart(opened);
  const attributes = hidden === null ? {} : (JSON.parse(textOf(hidden)) as Attributes);
  return { version: 1, ...shown, attributes };
}

/** The times of a put: `createdAt` is kept, and `updatedAt` never runs backwards, even when the clock does. */
function nextTimes(now: number, previous: Times | null): Times {
  const at = new Date(now).toISOString();
  if (previous === null) return { createdAt: at, updatedAt: at };
  const { createdAt, updatedAt } = previous;
  return { createdAt, updatedAt: at > updatedAt ? at : updatedAt }; // of one length, so they compare as text
}

function putReply(path: string, valueBytes: number, supplied: string, version: number, etag: string): Bytes {
  const name = JSON.stringify(path);
  return utf8(
    `{"ok":true,"path":${name},"bytes":${valueBytes},"metadata":${supplied},"version":${version},"etag":"${etag}"}`,
  );
}

/** A get's reply, in pieces. */
export function getReply(path: string, value: Uint8Array, metadata: Uint8Array, etag: string): (Uint8Array | string)[] {
  return [`{"path":${JSON.stringify(path)},"value":`, value, ",", ...restOfEntry(metadata, etag)];
}

/** What comes before and behind the value in a get's reply, in pieces. `path`: UTF-8. */
export function getReplyAround(path: Uint8Array, metadata: Uint8Array, etag: string) {
  return { head: ['{"path":', writeString(path), ',"value":'], tail: [",", ...restOfEntry(metadata, etag)] };
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
  return [publicPart(metadata).subarray(1, -1), `${number},"etag":"${etag}"}`];
}

/** The value as it is sealed: a JSON string, in scratch memory. */
function valueText(body: PutBody): Uint8Array {
  return writeString(body.value.bytes);
}

/** `value`: as it is sealed, a JSON string; `valueBytes`: its length in UTF-8; `supplied`: the `metadata` object. */
export type Content = { readonly value: Uint8Array; readonly valueBytes: number; readonly supplied: string };

/** Where and when it is stored. `previous`: the blob that it replaces, a head without history. */
export type Place = { readonly path: string; readonly previous: Uint8Array | null; readonly now: number };

/** Seals a secret's next version; the same value and metadata make no new version, but new times and a new tag. */
export function sealNext(key: SealingKey, place: Place, content: Content, limits: HistoryLimits): ReplyOf<"seal"> {
  const { path, previous, now } = place;
  const [opened = null] = previous === null ? [] : openMetadata(key, [{ path, blob: previous }]);
  if (previous !== null && opened === null) return damaged(path, "delete it before you store a new one");
  const last = opened && readMetadata(opened);
  const { earlier, isSame } = history(key, place, content, last && JSON.stringify(last.metadata), limits);
  const version = (last?.version ?? 0) + (isSame ? 0 : 1);
  const { value, valueBytes, supplied } = content;
  const attributes = previous !== null && isPrivate(previous) ? kept(last?.attributes) : null;
  const blob = sealBlob(key, path, metadataText(supplied, nextTimes(now, last), version, attributes), value, earlier);
  return sealReply(path, blob, { valueBytes, supplied, version });
}

/** Attributes that a new version takes over. */
function kept({ secret }: Attributes = {}): Attributes {
  return secret === undefined ? {} : { secret };
}

type Sealed = { readonly valueBytes: number; readonly supplied: string; readonly version: number };

/** The reply to what seals a blob: a put, an undo, a move or a copy. */
export function sealReply(path: string, blob: Bytes, { valueBytes, supplied, version }: Sealed): SealReply {
  const etag = etagOfCurrent(blob);
  const reply = putReply(path, valueBytes, supplied, version, etag);
  return { ok: true, blob, headLength: metadataEnd(blob), reply, etag };
}

type History = { readonly earlier: readonly SealedVersion[]; readonly isSame: boolean };

/** A current version whose value does not open is not kept, and an earlier version is kept unopened: damage must not refuse a put. */
function history(
  key: SealingKey,
  { path, previous }: Place,
  content: Content,
  lastSupplied: string | null,
  limits: HistoryLimits,
): History {
  const split = previous === null || limits.keepVersions === 0 ? null : splitBlob(previous);
  if (split === null) return { earlier: [], isSame: false };
  const replaced = openVersion(key, path, split.current);
  const isSame = replaced !== null && lastSupplied === content.supplied && equal(replaced.value, content.value);
  const versions = replaced === null || isSame ? split.earlier : [split.current, ...split.earlier];
  return { earlier: fitting(versions, limits), isSame };
}

/** Returns the newest, and of the others, newest first, as many as fit both limits. */
function fitting(
  versions: readonly SealedVersion[],
  { keepVersions, keepVersionBytes }: HistoryLimits,
): readonly SealedVersion[] {
  let bytes = 0;
  const fits = (version: SealedVersion) => {
    bytes += lengthOfVersion(version);
    return bytes <= keepVersionBytes;
  };
  const end = versions.findIndex((version, i) => i >= keepVersions || (!fits(version) && i > 0));
  return end < 0 ? versions : versions.slice(0, end);
}

export function contentOfBody(body: PutBody): Content {
  return { value: valueText(body), valueBytes: body.value.bytes.length, supplied: suppliedMetadata(body) };
}

/** Returns what a put of an opened version would seal. */
export function contentOf({ value, metadata }: OpenedVersion): Content {
  const valueBytes = decodeString(value.subarray(1, -1), inScratch).bytes.length;
  return { value, valueBytes, supplied: JSON.stringify(readMetadata(metadata).metadata) };
}
