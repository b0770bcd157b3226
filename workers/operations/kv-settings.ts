/** Settings that clients of Vault's KV engine give a secret: the body that changes them, and durations in Go's form. */
import { goFlag, goSeconds, wholeSeconds } from "../go-values.js";
import { isNullText, memberName } from "../json/json-object.js";
import { readMembers } from "../json/json-reader.js";
import { byteLength, decodeText } from "../memory.js";
import type { Refusal } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { vaultMembers } from "../vault-members.js";
import type { Custom, KvSettings } from "./entry.js";
import { refusedMember } from "./kv-members.js";

/** Vault's limits, except for the total size: the texts are in the head that lists read. */
const [mostCustom, maxNameBytes, maxTextBytes, maxCustomBytes] = [64, 128, 512, 8192];

/** 100 years. */
const maxSeconds = 100 * 365 * 24 * 3600;

/** The settings of a secret and its custom metadata, which Vault's clients change together. */
type KvForm = KvSettings & { readonly custom: Custom };

/** Members that the body does not have stay. `isPatch`: null resets a member, and custom metadata is merged. */
export function changedSettings(before: KvForm, body: Uint8Array, isPatch: boolean, now: number): KvForm | Refusal {
  const members = readMembers(body);
  if (members === null) return badRequest("the body must be one JSON object in UTF-8");
  const foreign = refusedMember(members, vaultMembers.writeMetadata);
  if (foreign !== null) return badRequest(foreign);
  let settings: KvForm = { ...before, changedAt: new Date(now).toISOString() };
  for (const member of members) {
    const change = changes.get(memberName(member));
    if (change === undefined) continue;
    if (member.value.length > 2 * maxCustomBytes) return badRequest("a member of the metadata is too large");
    const value: unknown = isNullText(member.value) ? null : JSON.parse(decodeText(member.value));
    const changed = change(value, settings, isPatch);
    if (typeof changed === "string") return badRequest(changed);
    settings = { ...settings, ...changed };
  }
  return settings;
}

/** Returns what is wrong as a text. */
type Change = (value: unknown, before: KvForm, isPatch: boolean) => Partial<KvForm> | string;

/** A map, since objects have members, such as `constructor`, that no one gave them, and clients may send any name. */
const changes: ReadonlyMap<string, Change> = new Map<string, Change>([
  ["max_versions", changeMaxVersions],
  ["cas_required", changeCasRequired],
  ["delete_version_after", changeDeleteVersionAfter],
  ["custom_metadata", changeCustom],
]);

function changeMaxVersions(value: unknown): KvSettings | string {
  const text = String(value ?? "0") || "0";
  const isWhole = typeof value !== "object" || value === null;
  return isWhole && /^\d{1,15}$/.test(text) ? { maxVersions: Number(text) } : "max_versions must be a whole number";
}

/** `vault write` sends texts. */
function changeCasRequired(value: unknown): KvSettings | string {
  const flag = goFlag(value ?? false);
  return flag === null ? "cas_required must be true or false" : { casRequired: flag };
}

function changeDeleteVersionAfter(value: unknown): KvSettings | string {
  const seconds = goSeconds(value ?? 0);
  return seconds === null || seconds < 0 || seconds > maxSeconds
    ? "delete_version_after must be a duration such as 3h25m19s"
    : { deleteVersionAfter: wholeSeconds(seconds) };
}

function changeCustom(value: unknown, { custom }: KvForm, isPatch: boolean): Pick<KvForm, "custom"> | string {
  if (typeof value !== "object" || Array.isArray(value)) return notCustom;
  const merged = new Map(isPatch && value !== null ? Object.entries(custom) : []);
  for (const [name, given] of Object.entries(value ?? {})) {
    merged.delete(name);
    if (isPatch && given === null) continue;
    const text = customText(given);
    if (!isShortText(name, maxNameBytes) || !isShortText(text, maxTextBytes)) return notCustom;
    merged.set(name, text);
  }
  return ofCustom(Object.fromEntries(merged));
}

function ofCustom(custom: Custom): Pick<KvForm, "custom"> | string {
  const isSmall = byteLength(JSON.stringify(custom)) <= maxCustomBytes;
  return isSmall && Object.keys(custom).length <= mostCustom ? { custom } : notCustom;
}

/** Numbers and truth values become texts, as with Vault. */
function customText(value: unknown): unknown {
  if (typeof value === "boolean") return value ? "1" : "0";
  return typeof value === "number" ? String(value) : value;
}

const notCustom = `custom_metadata must be an object of at most ${mostCustom} printable texts, with names of 1 to ${maxNameBytes} bytes and values of 1 to ${maxTextBytes} bytes, ${maxCustomBytes} bytes in all`;

function isShortText(text: unknown, mostBytes: number): text is string {
  return typeof text === "string" && text !== "" && byteLength(text) <= mostBytes && !/\p{C}/u.test(text);
}

/** Writes a duration as Go does: 3h25m19s. */
export function durationText(seconds: number): string {
  const [hours, minutes, rest] = [Math.trunc(seconds / 3600), Math.trunc(seconds / 60) % 60, seconds % 60];
  if (hours > 0) return `${hours}h${minutes}m${rest}s`;
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`;
}
