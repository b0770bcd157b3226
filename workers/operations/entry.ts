/**
 * Entries in plaintext: what put makes of a body and of the previous blob, and the responses of put, get and list.
 */
import {
  etagOfCurrent,
  hasNumber,
  isPrivate,
  lengthOfVersion,
  type OpenedVersion,
  openCurrent,
  openMetadata,
  openVersionValue,
  privatePart,
  publicPart,
  type SealedVersion,
  type SealingKey,
  sealBlob,
  splitBlob,
} from "../crypto/blob.js";
import { writeString } from "../json/json-string.js";
import { allocate, asBuffer, concatScratch, decodeText, equal, startsWith, utf8 } from "../memory.js";
import type { Binding, Bytes, HistoryLimits, Refusal, SealResult } from "../protocol.js";
import { damaged, noSecret } from "../refusals.js";
import type { Writing } from "./context.js";
import { isoTime, type MetadataBody, type PutBody, readCustom } from "./request-bodies.js";
import { bytesOfValue, isBinary, jsonOfValue, sealedBase64, sealedText } from "./value.js";

/** Times are ISO 8601 UTC with milliseconds. */
type Times = { readonly createdAt: string; readonly updatedAt: string };

/** The `metadata` object of a secret: supplied fields only, in this order. */
type Metadata = {
  readonly type?: string;
  readonly description?: string;
  readonly expiresAt?: string;
  readonly custom?: Custom;
};

/** Texts that clients store with a secret: `custom`, and `custom_metadata` for Vault's clients. Absent where there are none. */
export type Custom = Readonly<Record<string, string>>;

function metadataJson({ type, description, expiresAt, custom }: Metadata): string {
  return JSON.stringify({
    ...(type !== undefined && { type }),
    ...(description !== undefined && { description }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...withTexts(custom),
  });
}

/** Returns the member `custom` where there are any texts. */
function withTexts(custom: Custom = {}): Pick<Metadata, "custom"> {
  return Object.keys(custom).length === 0 ? {} : { custom };
}

/** Sealed with the metadata and in no response. `secret`: of the secret; every new version takes it over. */
export type Attributes = {
  readonly secret?: SecretAttributes;
  /** Only of this version. `wrapped`: its value was sent as `{"value": text}`, with a text that is an object itself. */
  readonly version?: { readonly wrapped?: true };
};

/**
 * `uses`: the hosts that requests with this secret may go to; `computed`: those whose credential is computed. DANGER: not in one
 * list: earlier programs know only `uses`, and would send the value itself, a private key for one.
 */
export type SecretAttributes = {
  readonly uses?: readonly Binding[];
  readonly computed?: readonly Binding[];
  readonly kv?: KvSettings;
};

/** Settings of a secret by clients of Vault's KV engine. Times in seconds; 0 or missing: the server's own value. */
export type KvSettings = {
  readonly maxVersions?: number;
  readonly casRequired?: boolean;
  readonly deleteVersionAfter?: number;
  readonly changedAt?: string;
};

/** The content of a version's sealed metadata. */
export type Described = Times & {
  readonly deletedAt?: string;
  readonly destroyed?: true;
  readonly metadata: Metadata;
  readonly version: number;
  readonly attributes: Attributes;
};

/**
 * Returns the metadata to seal, in scratch memory, as `blob.ts` draws it. `attributes`: null for a text that has never had
 * any.
 */
export function metadataText(
  { value, supplied }: Content,
  { createdAt, updatedAt }: Times,
  version: number,
  attributes: Attributes | null = null,
): Uint8Array {
  const encoding = isBinary(value) ? encodingMember : "";
  const times = `"createdAt":"${createdAt}","updatedAt":"${updatedAt}"`;
  const shown = `{${encoding}"metadata":${supplied},${times},"version":${version}}`;
  return concatScratch(attributes === null ? shown : `${shown}\n${JSON.stringify(attributes)}`);
}

const encodingMember = '"encoding":"base64",';
const binaryStart = utf8(`{${encodingMember}`);

/**
 * A version may be marked as deleted, which can be undone, from that time on, or be destroyed, with an empty text in the place
 * of its value. Its metadata begins with `"deletedAt":"…"` or `"destroyed":true` then; of a destroyed one, only number,
 * times and custom metadata are left. Number 0, always destroyed, is that of a secret which has settings and no version yet.
 */
export type VersionState = "kept" | "deleted" | "destroyed";

/** @param now milliseconds since 1970 */
export function versionState(metadata: Uint8Array, now: number): VersionState {
  if (isMarkedDeleted(metadata)) return deletionTime(metadata) <= now ? "deleted" : "kept";
  return startsWith(metadata, destroyedStart) ? "destroyed" : "kept";
}

function isMarkedDeleted(metadata: Uint8Array): boolean {
  return startsWith(metadata, deletedStart);
}

function deletionTime(metadata: Uint8Array): number {
  return Date.parse(decodeText(metadata.subarray(deletedStart.length, deletedStart.length + isoTimeLength)));
}

const deletedStart = utf8('{"deletedAt":"');
const destroyedStart = utf8('{"destroyed":true,');
const isoTimeLength = 24;

/** Returns the metadata of a kept version, marked as deleted, in scratch memory. */
export function markedDeleted(metadata: Uint8Array, now: number): Uint8Array {
  return concatScratch(deletedStart, new Date(now).toISOString(), '",', metadata.subarray(1));
}

/** Returns the metadata without that mark, where it has it. */
export function withoutMark(metadata: Uint8Array): Uint8Array {
  if (!isMarkedDeleted(metadata)) return metadata;
  return concatScratch("{", metadata.subarray(deletedStart.length + isoTimeLength + 2));
}

/** Returns the metadata of the version once it is destroyed, in scratch memory. */
export function markedDestroyed(metadata: Uint8Array): Uint8Array {
  const { createdAt, updatedAt, version, attributes, metadata: supplied } = readMetadata(metadata);
  const times = `"createdAt":"${createdAt}","updatedAt":"${updatedAt}"`;
  const left = JSON.stringify(withTexts(supplied.custom));
  const hidden = privatePart(metadata) === null ? "" : `\n${JSON.stringify(lasting(attributes))}`;
  return concatScratch(destroyedStart, `"metadata":${left},${times},"version":${version}}${hidden}`);
}

/** Whether opened metadata is that of a binary value. */
export function isOfBinary(metadata: Uint8Array): boolean {
  return startsWith(metadata, binaryStart);
}

/** Reads opened metadata; a secret of format version 1 has the version 1. */
export function readMetadata(opened: Uint8Array): Described {
  const shown = JSON.parse(decodeText(publicPart(opened))) as Times & { readonly metadata: Metadata };
  const hidden = privatePart(opened);
  const attributes = hidden === null ? {} : (JSON.parse(decodeText(hidden)) as EarlierAttributes);
  const { kv: { custom, ...kv } = {} } = attributes.secret ?? {};
  if (custom === undefined) return { version: 1, ...shown, attributes };
  const metadata = { ...shown.metadata, ...withTexts(shown.metadata.custom ?? custom) };
  return { version: 1, ...shown, metadata, attributes: { ...attributes, secret: { ...attributes.secret, kv } } };
}

/** Earlier programs sealed custom metadata with the settings. */
type EarlierAttributes = Attributes & { readonly secret?: { readonly kv?: KvSettings & { readonly custom?: Custom } } };

const customMember = asBuffer(utf8('"custom":{'));

/** Returns the part of opened metadata that responses contain. */
function shownPart(metadata: Uint8Array): Uint8Array {
  const hidden = privatePart(metadata);
  if (hidden === null || !asBuffer(hidden).includes(customMember)) return publicPart(metadata);
  return changedPart(metadata, readMetadata(metadata).metadata);
}

/** Returns the same part with another `metadata` object, in scratch memory. */
function changedPart(opened: Uint8Array, metadata: Metadata): Uint8Array {
  const shown = JSON.parse(decodeText(publicPart(opened))) as Times;
  return concatScratch(JSON.stringify({ ...shown, metadata }));
}

/** The times of a put: `createdAt` is kept, and `updatedAt` never runs backwards, even when the clock does. */
function nextTimes(now: number, previous: Times | null): Times {
  const at = new Date(now).toISOString();
  if (previous === null) return { createdAt: at, updatedAt: at };
  const { createdAt, updatedAt } = previous;
  return { createdAt, updatedAt: at > updatedAt ? at : updatedAt }; // of one length, so they compare as text
}

function putResponse(path: string, valueBytes: number, supplied: string, version: number, etag: string): Bytes {
  const name = JSON.stringify(path);
  return utf8(
    `{"ok":true,"path":${name},"bytes":${valueBytes},"metadata":${supplied},"version":${version},"etag":"${etag}"}`,
  );
}

/** A get's response, in pieces. */
export function getResponse(
  path: string,
  value: Uint8Array,
  metadata: Uint8Array,
  etag: string,
): (Uint8Array | string)[] {
  return [`{"path":${JSON.stringify(path)},"value":`, jsonOfValue(value), ",", ...restOfEntry(metadata, etag)];
}

/** Pieces of a get's response before and after the value. `path`: UTF-8. */
export function getResponseAround(path: Uint8Array, metadata: Uint8Array, etag: string) {
  return { head: ['{"path":', writeString(path), ',"value":'], tail: [",", ...restOfEntry(metadata, etag)] };
}

/** One entry of a list, in pieces. */
export function listEntry(path: string, metadata: Uint8Array, etag: string): (Uint8Array | string)[] {
  return [`{"path":${JSON.stringify(path)},`, ...restOfEntry(metadata, etag)];
}

/** One entry of the list of the trash, in pieces. `deletedAt`: of the secret. */
export function trashEntry(
  path: string,
  metadata: Uint8Array,
  etag: string,
  deletedAt: number,
): (Uint8Array | string)[] {
  const start = `{"path":${JSON.stringify(path)},"deletedAt":"${new Date(deletedAt).toISOString()}",`;
  return [start, ...restOfEntry(withoutMark(metadata), etag)];
}

/** One entry of a list of versions, in pieces. */
export function versionEntry(metadata: Uint8Array, etag: string): (Uint8Array | string)[] {
  return ["{", ...restOfEntry(metadata, etag)];
}

/** The members of opened metadata, the version's number also where none is sealed, the tag, and the end of the object. */
function restOfEntry(metadata: Uint8Array, etag: string): (Uint8Array | string)[] {
  const number = hasNumber(metadata) ? "" : ',"version":1';
  return [shownPart(metadata).subarray(1, -1), `${number},"etag":"${etag}"}`];
}

/**
 * `value`: as it is sealed, see `value.ts`; `valueBytes`: its length in bytes; `supplied`: the `metadata` object. `wrapped`: see
 * `Attributes`. `isNew`: it makes a version also where it is what the current one has.
 */
export type Content = {
  readonly value: Uint8Array;
  readonly valueBytes: number;
  readonly supplied: string;
  readonly wrapped?: true;
  readonly isNew?: true;
};

/** Opens the current version; a secret whose current version is deleted or destroyed is missing. */
export function openSecret(
  key: SealingKey,
  path: string,
  blob: Uint8Array | null,
  now: number,
): OpenedVersion | Refusal {
  if (blob === null) return noSecret(path);
  const current = openCurrent(key, path, blob);
  if (current === null) return damaged(path);
  return versionState(current.metadata, now) === "kept" ? current : noSecret(path);
}

/** Seals a secret's next version; the same value and metadata make no new version, but new times and a new tag. */
export function sealNext(writing: Writing, content: Content): SealResult | Refusal {
  const { key, path, previous, now } = writing;
  const [opened = null] = previous === null ? [] : openMetadata(key, [{ path, blob: previous }]);
  if (previous !== null && opened === null) return damaged(path, "delete it before you store a new one");
  const last = opened && { ...readMetadata(opened), state: versionState(opened, now) };
  const kept = history(writing, content, last);
  if (kept === null) return damaged(path);
  const { earlier, isSame } = kept;
  const version = (last?.version ?? 0) + (isSame ? 0 : 1);
  const { value, valueBytes, supplied } = content;
  const text = metadataText(content, nextTimes(now, last), version, nextAttributes(content, previous, last));
  const { deleteVersionAfter = 0 } = last?.attributes.secret?.kv ?? {};
  const metadata = deleteVersionAfter === 0 ? text : markedDeleted(text, now + deleteVersionAfter * 1000);
  return sealResult(path, sealBlob(key, path, metadata, value, earlier), { valueBytes, supplied, version });
}

/** Null for the older format of a blob, which has none. */
function nextAttributes({ value, wrapped }: Content, previous: Uint8Array | null, last: Described | null) {
  const isNewFormat = isBinary(value) || wrapped === true || (previous !== null && isPrivate(previous));
  return isNewFormat ? { ...lasting(last?.attributes), ...(wrapped && { version: { wrapped } }) } : null;
}

/** Attributes that a new version takes over. */
function lasting({ secret }: Attributes = {}): Attributes {
  return secret === undefined ? {} : { secret };
}

/** Returns opened metadata with other private attributes, in scratch memory. */
export function withAttributes(metadata: Uint8Array, attributes: Attributes): Uint8Array {
  return joinedMetadata(metadata, shownPart(metadata), attributes);
}

/** Returns opened metadata with other custom metadata and private attributes, in scratch memory. */
export function withCustom(opened: Uint8Array, custom: Custom, attributes: Attributes): Uint8Array {
  const { custom: _, ...others } = readMetadata(opened).metadata;
  return joinedMetadata(opened, changedPart(opened, { ...others, ...withTexts(custom) }), attributes);
}

function joinedMetadata(opened: Uint8Array, shown: Uint8Array, attributes: Attributes): Uint8Array {
  const number = hasNumber(opened) ? "" : ',"version":1';
  return concatScratch(shown.subarray(0, -1), `${number}}\n${JSON.stringify(attributes)}`);
}

/** Returns the metadata of a secret without a version: see `VersionState`. */
export function metadataWithoutVersion(now: number): Uint8Array {
  const time = new Date(now).toISOString();
  return concatScratch(destroyedStart, `"metadata":{},"createdAt":"${time}","updatedAt":"${time}","version":0}`);
}

/** The result of what has made a blob. */
export function written(blob: Bytes, response: Bytes = allocate(0), etag = etagOfCurrent(blob)): SealResult {
  return { ok: true, blob, response, etag };
}

type Sealed = { readonly valueBytes: number; readonly supplied: string; readonly version: number };

/** The response to what seals a blob: a put, an undo, a move or a copy. */
export function sealResult(path: string, blob: Bytes, { valueBytes, supplied, version }: Sealed): SealResult {
  const etag = etagOfCurrent(blob);
  return written(blob, putResponse(path, valueBytes, supplied, version, etag), etag);
}

/** Bytes found in the JSON only before a time of expiry: in a text the quotes are escaped. */
const expiryMember = asBuffer(utf8('"expiresAt":'));

/** Returns when a secret expires, in milliseconds since 1970. Makes no string for a secret without expiry. */
export function metadataExpiry(metadata: Uint8Array): number | null {
  if (!asBuffer(metadata).includes(expiryMember)) return null;
  const { expiresAt } = readMetadata(metadata).metadata;
  return expiresAt === undefined ? null : Date.parse(expiresAt);
}

type History = { readonly earlier: readonly SealedVersion[]; readonly isSame: boolean };

/**
 * Earlier versions are kept unopened. Damage of the current version must not refuse a put: it is kept as it is. Returns null
 * where it must be read again first, because a version that is misread once would be lost.
 */
function history(
  { key, path, previous, reread, settings }: Writing,
  content: Content,
  last: (Described & { readonly state: VersionState }) | null,
): History | null {
  const keepVersions = keptVersions(settings, last?.attributes.secret?.kv);
  const split = previous === null || keepVersions === 0 ? null : splitBlob(previous);
  if (split === null || last === null || last.version === 0) return { earlier: [], isSame: false };
  const replaced = openVersionValue(key, path, split.current);
  if (!reread && (replaced === null || !split.isWhole)) return null;
  const isKept = replaced !== null && last.state === "kept" && content.isNew !== true;
  const isSame = isKept && JSON.stringify(last.metadata) === content.supplied && equal(replaced, content.value);
  const versions = isSame ? split.earlier : [split.current, ...split.earlier];
  return { earlier: fitting(versions, { ...settings, keepVersions }), isSame };
}

/** How many earlier versions a secret keeps: what its clients have set, at most what the server keeps. */
function keptVersions({ keepVersions }: HistoryLimits, { maxVersions = 0 }: KvSettings = {}): number {
  return maxVersions === 0 ? keepVersions : Math.min(keepVersions, maxVersions - 1);
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

/** Returns what a put of the body seals. */
export function contentOfBody(body: PutBody): Content {
  const value = body.encoding === undefined ? sealedText(body.value.bytes) : sealedBase64(body.value.bytes);
  const valueBytes = isBinary(value) ? value.length - 1 : body.value.bytes.length;
  return { value, valueBytes, supplied: changedMetadata({}, body) };
}

/** Returns what a put of an opened version would seal. */
export function versionContent({ value, metadata }: OpenedVersion): Content {
  const { metadata: supplied, attributes } = readMetadata(metadata);
  const { wrapped } = attributes.version ?? {};
  const valueBytes = bytesOfValue(value).length;
  return { value, valueBytes, supplied: metadataJson(supplied), ...(wrapped && { wrapped }) };
}

/** Like `versionContent`, with other metadata. */
export function contentWith(opened: OpenedVersion, body: MetadataBody): Content {
  return { ...versionContent(opened), supplied: changedMetadata(readMetadata(opened.metadata).metadata, body) };
}

/** Returns the `metadata` object with the fields of the body; a null there removes the field. */
function changedMetadata(current: Metadata, { type, description, expiresAt, custom }: MetadataBody): string {
  const time = expiresAt && isoTime(expiresAt.toString());
  return metadataJson({
    ...changed("type", type === null ? null : type?.toString(), current),
    ...changed("description", description === null ? null : description?.toString(), current),
    ...changed("expiresAt", time, current),
    ...withTexts(custom === undefined ? current.custom : (readCustom(custom) ?? {})),
  });
}

/** `to`: null removes the field, undefined keeps it. */
function changed(name: Exclude<keyof Metadata, "custom">, to: string | null | undefined, current: Metadata): Metadata {
  const text = to === undefined ? current[name] : to;
  return text === undefined || text === null ? {} : { [name]: text };
}
