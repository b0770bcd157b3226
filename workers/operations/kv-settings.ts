/** Settings that clients of Vault's KV engine give a secret: the body that changes them, and durations in Go's form. */
import { isNullText, nameOf } from "../json/json-object.js";
import { readMembers } from "../json/json-reader.js";
import { byteLength, textOf } from "../memory.js";
import type { Refusal } from "../protocol.js";
import { badRequest } from "../refusals.js";
import type { KvSettings } from "./entry.js";

/** As in Vault, but for the size of all together: they are in the head that lists read. */
const [mostCustom, maxNameBytes, maxTextBytes, maxCustomBytes] = [64, 128, 512, 8192];

/** 100 years. */
const maxSeconds = 100 * 365 * 24 * 3600;

/** Members that the body does not have stay. `isPatch`: null resets a member, and custom metadata is merged. */
export function changedSettings(
  before: KvSettings,
  body: Uint8Array,
  isPatch: boolean,
  now: number,
): KvSettings | Refusal {
  const members = readMembers(body);
  if (members === null) return badRequest("the body must be one JSON object in UTF-8");
  let settings: KvSettings = { ...before, changedAt: new Date(now).toISOString() };
  for (const member of members) {
    const change = changes[nameOf(member)];
    if (change === undefined) continue;
    if (member.value.length > 2 * maxCustomBytes) return badRequest("a member of the metadata is too large");
    const value: unknown = isNullText(member.value) ? null : JSON.parse(textOf(member.value));
    const changed = change(value, settings, isPatch);
    if (typeof changed === "string") return badRequest(changed);
    settings = { ...settings, ...changed };
  }
  return settings;
}

/** Returns what is wrong as a text. */
type Change = (value: unknown, before: KvSettings, isPatch: boolean) => KvSettings | string;

const changes: Readonly<Record<string, Change>> = {
  max_versions: (value) => {
    const number = value === null ? 0 : Number(value);
    return Number.isInteger(number) && number >= 0 ? { maxVersions: number } : "max_versions must be a whole number";
  },
  cas_required: (value) => {
    return value === null || typeof value === "boolean"
      ? { casRequired: value ?? false }
      : "cas_required must be true or false";
  },
  delete_version_after: (value) => {
    const seconds = value === null ? 0 : secondsOf(value);
    return seconds === null
      ? "delete_version_after must be a duration such as 3h25m19s"
      : { deleteVersionAfter: seconds };
  },
  custom_metadata: (value, { custom = {} }, isPatch) => {
    if (value !== null && (typeof value !== "object" || Array.isArray(value))) return notCustom;
    const given = Object.entries(value ?? {});
    const merged = new Map<string, unknown>(isPatch && value !== null ? Object.entries(custom) : []);
    for (const [name, text] of given) {
      if (isPatch && text === null) merged.delete(name);
      else merged.set(name, text);
    }
    const all = Object.fromEntries(merged);
    return isCustom(all) ? { custom: all } : notCustom;
  },
};

const notCustom = `custom_metadata must be an object of at most ${mostCustom} texts, with names of at most ${maxNameBytes} bytes and values of at most ${maxTextBytes} bytes, ${maxCustomBytes} bytes in all`;

function isCustom(object: Readonly<Record<string, unknown>>): object is Readonly<Record<string, string>> {
  const entries = Object.entries(object);
  const areTexts = entries.every(
    ([name, text]) => typeof text === "string" && byteLength(name) <= maxNameBytes && byteLength(text) <= maxTextBytes,
  );
  return areTexts && entries.length <= mostCustom && byteLength(JSON.stringify(object)) <= maxCustomBytes;
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Reads seconds, or a duration as Go writes it, down to seconds. */
function secondsOf(value: unknown): number | null {
  const text = String(value);
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : secondsOfParts(text);
  return seconds !== null && seconds <= maxSeconds ? seconds : null;
}

function secondsOfParts(text: string): number | null {
  if (!/^(?:\d{1,10}[smhd])+$/.test(text)) return null;
  let seconds = 0;
  for (const [, number, unit = ""] of text.matchAll(/(\d+)([smhd])/g))
    seconds += Number(number) * (unitSeconds[unit] ?? 0);
  return seconds;
}

/** Writes a duration as Go does: 3h25m19s. */
export function durationText(seconds: number): string {
  const [hours, minutes, rest] = [Math.trunc(seconds / 3600), Math.trunc(seconds / 60) % 60, seconds % 60];
  if (hours > 0) return `${hours}h${minutes}m${rest}s`;
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`;
}
