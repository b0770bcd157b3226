/** Operations for Vault's KV engine, version 2: writes, reads, and the settings of a secret. */
import {
  earlierIn,
  type OpenedVersion,
  openCurrent,
  openMetadata,
  openVersion,
  type SealingKey,
  sealBlob,
} from "../crypto/blob.js";
import { isNullText, isObjectText, memberName, mergePatch, withoutValues } from "../json/json-object.js";
import { type Member, readElements, readMembers } from "../json/json-reader.js";
import { concat, concatScratch, decodeText, utf8, withScratch } from "../memory.js";
import type { Refusal, RequestOf, ResultOf, WorkerSettings, WriteOf, WriteResult } from "../protocol.js";
import { badRequest, casMismatch, casRequired, damaged, damagedVersion, noSecret } from "../refusals.js";
import { vaultMembers } from "../vault-members.js";
import type { Context, Writing } from "./context.js";
import {
  type Described,
  metadataWithoutVersion,
  openSecret,
  readMetadata,
  sealNext,
  versionState,
  withCustom,
  written,
} from "./entry.js";
import { contentOfData, customOrNull, kvDataJson, readReply, versionJson } from "./kv-data.js";
import { refusedMember } from "./kv-members.js";
import { changedSettings, durationText } from "./kv-settings.js";
import { type Known, knownVersions, versionIn } from "./versions.js";

/** Makes the next version, also of an equal value. The settings, type and description stay. */
export function kvWrite(writing: Writing, { body, isPatch }: WriteOf<"kvWrite">): WriteResult | Refusal {
  const { key, path, previous } = writing;
  const last = previous && lastVersion(key, path, previous);
  if (last !== null && "ok" in last) return last;
  const read = readWrite(body, last);
  if ("ok" in read) return read;
  const data = isPatch ? patched(writing, read.data) : read.data;
  return "ok" in data ? data : sealData(writing, data, last);
}

function lastVersion(key: SealingKey, path: string, blob: Uint8Array): Described | Refusal {
  const [opened = null] = openMetadata(key, [{ path, blob }]);
  return opened === null ? damaged(path, "delete it before you store a new one") : readMetadata(opened);
}

function sealData(writing: Writing, data: Uint8Array, last: Described | null): WriteResult | Refusal {
  const { key, path, settings } = writing;
  const content = contentOfData(data);
  if (content === null) return badRequest(noData);
  if (content.valueBytes > settings.maxValueBytes) return badRequest(tooLarge(settings));
  const supplied = JSON.stringify(last?.metadata ?? {});
  const sealed = sealNext(writing, { ...content, supplied, isNew: true });
  return sealed.ok ? { ...sealed, response: writeResponse(key, path, sealed.blob) } : sealed;
}

const noData = 'data must be a JSON object: send {"data": {…}}';

function tooLarge({ maxValueBytes }: WorkerSettings): string {
  return `data must have at most ${maxValueBytes} bytes of JSON`;
}

type Write = { readonly data: Uint8Array };

/** Returns the data, if `cas` permits it. */
function readWrite(body: Uint8Array, last: Described | null): Write | Refusal {
  const members = readMembers(body);
  if (members === null) return badRequest("the body must be one JSON object in UTF-8");
  const foreign = refusedMember(members, vaultMembers.writeSecret);
  if (foreign !== null) return badRequest(foreign);
  const data = findMember(members, "data");
  if (data === undefined) return badRequest(`no data provided: ${noData}`);
  if (!isObjectText(data)) return badRequest(noData);
  const options = findMember(members, "options");
  if (options !== undefined && !isObjectText(options) && !isNullText(options))
    return badRequest("options must be a JSON object");
  const cas = options && findMember(readMembers(options) ?? [], "cas");
  return whyNotCas(cas, last) ?? { data };
}

/** The last of equal names counts. */
function findMember(members: readonly Member[], name: string): Uint8Array | undefined {
  return members.findLast((member) => memberName(member) === name)?.value;
}

function whyNotCas(given: Uint8Array | undefined, last: Described | null): Refusal | null {
  if (given === undefined) return last?.attributes.secret?.kv?.casRequired === true ? casRequired : null;
  const cas = isNullText(given)
    ? "0"
    : given.length > 20
      ? undefined
      : /^"?(-?\d{1,15})"?$/.exec(decodeText(given))?.[1];
  if (cas === undefined) return badRequest(notCas);
  return Number(cas) === (last?.version ?? 0) ? null : casMismatch;
}

const notCas = "error parsing check-and-set parameter: cas must be the number of a version, or 0";

/** Returns the current data with the patch applied. */
function patched({ key, path, previous, now }: Writing, patch: Uint8Array) {
  const current = openSecret(key, path, previous, now);
  if ("ok" in current) return current;
  const data = concatScratch(...kvDataJson(current, readMetadata(current.metadata)));
  return mergePatch(data, patch) ?? badRequest(noData);
}

function writeResponse(key: SealingKey, path: string, blob: Uint8Array) {
  const [metadata = null] = openMetadata(key, [{ path, blob }]);
  if (metadata === null) throw new Error("what was sealed does not open");
  return utf8(versionJson(readMetadata(metadata)));
}

/** Reads a version, or its keys without values. A deleted or destroyed one shows only its metadata. */
export function kvRead({ keyring, now }: Context, request: RequestOf<"kvRead">): ResultOf<"kvRead"> {
  const { path, blob, version, subkeys } = request;
  return keyring.withKey((key) => {
    const found = findVersion(key, path, blob, version);
    if ("ok" in found) return found;
    if (versionState(found.metadata, now) !== "kept") return goneReply(found, subkeys === null ? "data" : "subkeys");
    const opened = openVersion(key, path, found.sealed);
    if (opened === null) return damagedVersion(path, readMetadata(found.metadata).version);
    const show =
      subkeys === null
        ? null
        : (data: readonly (Uint8Array | string)[]) => [withoutValues(concatScratch(...data), subkeys)];
    return { ok: true, status: 200, response: concat(readReply(opened, show)) };
  });
}

function findVersion(key: SealingKey, path: string, blob: Uint8Array, version: number | null): Known | Refusal {
  const known = knownVersions(key, path, blob);
  const current = known?.versions[0];
  if (!known || current === undefined) return damaged(path);
  if (readMetadata(current.metadata).version === 0) return noSecret(path);
  return version === null ? current : versionIn(known, path, version);
}

function goneReply({ metadata }: Known, name: string): ResultOf<"kvRead"> {
  const shown = versionJson(readMetadata(metadata));
  return { ok: true, status: 404, response: utf8(`{"${name}":null,"metadata":${shown}}`) };
}

/** Shows the settings of a secret and its versions. */
export function kvMetadata({ keyring }: Context, { path, blob }: RequestOf<"kvMetadata">): ResultOf<"kvMetadata"> {
  return keyring.withKey((key) => {
    const known = knownVersions(key, path, blob);
    const versions = known?.versions.map(({ metadata }) => readMetadata(metadata)) ?? [];
    const [current] = versions;
    if (current === undefined) return damaged(path);
    return { ok: true, response: utf8(JSON.stringify(shownMetadata(current, versions))) };
  });
}

function shownMetadata(current: Described, versions: readonly Described[]) {
  const { kv = {} } = current.attributes.secret ?? {};
  const numbered = versions.filter(({ version }) => version > 0).toReversed();
  const oldest = numbered[0]?.version ?? 0;
  return {
    cas_required: kv.casRequired ?? false,
    created_time: current.createdAt,
    current_version: current.version,
    custom_metadata: customOrNull(current.metadata.custom),
    delete_version_after: durationText(kv.deleteVersionAfter ?? 0),
    max_versions: kv.maxVersions ?? 0,
    oldest_version: oldest === 1 ? 0 : oldest,
    updated_time: [current.updatedAt, kv.changedAt ?? ""].sort().at(-1),
    versions: Object.fromEntries(numbered.map((one) => [one.version, shownVersion(one)])),
  };
}

function shownVersion({ updatedAt, deletedAt = "", destroyed }: Described) {
  return { created_time: updatedAt, deletion_time: deletedAt, destroyed: destroyed === true };
}

/** Changes the settings of a secret, which need not have a version yet. */
export function kvConfigure(
  { key, path, previous, now }: Writing,
  { body, isPatch }: WriteOf<"kvConfigure">,
): WriteResult | Refusal {
  const current = previous === null ? unversioned(now) : openCurrent(key, path, previous);
  if (current === null) return damaged(path);
  if (isPatch && previous === null) return noSecret(path);
  const { attributes, metadata: before } = readMetadata(current.metadata);
  const changed = changedSettings({ ...attributes.secret?.kv, custom: before.custom ?? {} }, body, isPatch, now);
  if ("ok" in changed) return changed;
  const { custom, ...kv } = changed;
  const metadata = withCustom(current.metadata, custom, { ...attributes, secret: { ...attributes.secret, kv } });
  return written(sealBlob(key, path, metadata, current.value, earlierIn(previous)));
}

function unversioned(now: number): OpenedVersion {
  return { metadata: metadataWithoutVersion(now), value: utf8('""') };
}

const mostVersions = 1000;

/** Reads the numbers of versions from a body: numbers or texts in an array, one alone, or a text with commas. */
export function kvVersions(_: Context, { body }: RequestOf<"kvVersions">): ResultOf<"kvVersions"> {
  return withScratch(() => {
    const members = readMembers(body) ?? [];
    const foreign = refusedMember(members, vaultMembers.deleteVersions);
    if (foreign !== null) return badRequest(foreign);
    const texts = textsOfVersions(body, findMember(members, "versions"));
    const numbers = texts.map((text) => Number(/^"?([1-9]\d{0,14})"?$/.exec(text)?.[1] ?? 0));
    if (numbers.length > 0 && !numbers.includes(0)) return { ok: true, versions: numbers };
    if (texts.length === 0) return badRequest("No version number provided: send versions, an array of numbers");
    return badRequest("versions must be an array of numbers of versions");
  });
}

function textsOfVersions(body: Uint8Array, versions: Uint8Array | undefined): readonly string[] {
  if (versions === undefined || isNullText(versions)) return [];
  const elements = readElements(body, "versions", mostVersions);
  if (elements !== null) {
    return elements.map(({ start, end }) => (end - start > 17 ? "" : decodeText(body.subarray(start, end))));
  }
  const written = versions.length > 17 * mostVersions ? "-" : decodeText(versions).replace(/^"|"$/g, "").trim();
  return written === "" ? [] : written.split(",").map((text) => text.trim());
}
