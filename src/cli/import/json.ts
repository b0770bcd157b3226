/**
 * JSON of exports, a stable format, written and parsed; and plain JSON, parsed: an object of strings, in which nested
 * objects are folders.
 *
 *   {"format":"strongroom-export","version":1,"secrets":[
 *   {"path":"app/db/password","value":"…","type":"password","description":"…"},
 *   {"path":"app/key","value":"…"},
 *   {"path":"app/tls.p12","value":"AAE=","encoding":"base64","expiresAt":"2026-12-31T00:00:00.000Z","custom":{"owner":"ci"}}
 *   ]}
 */
import type { Secret } from "../../client/client.js";
import { problemOfPath } from "../kit/args/paths.js";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import { isObject, textIn, type UnknownObject } from "../kit/prompts/input.js";
import { type ImportEntry, joinSources, type ParsedSource, type Refused } from "./entry.js";
import { segmentsFor } from "./names.js";

const format = "strongroom-export";
const version = 1;

export const exportStart = `{"format":"${format}","version":${version},"secrets":[\n`;
export const exportEnd = "\n]}\n";

export function exportRow(secret: Secret): string {
  const { path, encoding, metadata } = secret;
  const { type, description, expiresAt, custom } = metadata;
  return JSON.stringify({ path, value: secret.reveal(), encoding, type, description, expiresAt, custom }); // drops undefined members
}

/** Parses a JSON object. @throws CommandFailure usage, without the parser's message, which would quote the text */
export function parseJson(text: string, file: string): UnknownObject {
  const json = parsed(text.replace(/^\uFEFF/, ""), file);
  if (!isObject(json)) throw new CommandFailure("usage", `${file} is not a JSON object`);
  const twice = repeatedName(text);
  if (twice === null) return json;
  throw new CommandFailure("usage", `${file} has ${printable(twice)} twice in one object: remove one of the two`);
}

function parsed(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandFailure("usage", `${file} is not valid JSON`);
  }
}

/** Returns a field's value as text; empty for what is neither a string, a number nor a boolean. */
export function plainText(value: unknown): string {
  return typeof value === "number" || typeof value === "boolean" ? String(value) : (textIn(value) ?? "");
}

/** @throws CommandFailure usage */
export function readJson(text: string, file: string): ParsedSource {
  const json = parseJson(text, file);
  if (typeof json["encrypted"] === "boolean" && ("items" in json || "data" in json))
    throw new CommandFailure("usage", `${file} looks like a Bitwarden export: use --format bitwarden`);
  if (json["format"] !== format) return readPlain(json);
  if (json["version"] === version && Array.isArray(json["secrets"])) return readExport(json["secrets"]);
  throw new CommandFailure("usage", `${file} is an export of another version, and only version ${version} can be read`);
}

function readExport(secrets: readonly unknown[]): ParsedSource {
  const rows = secrets.map((secret, i) => foundIn(secret, `secret ${i + 1}`));
  return {
    found: rows.filter((row): row is ImportEntry => "path" in row),
    refused: rows.filter((row): row is Refused => "problem" in row),
    leftOut: [],
    remarks: [],
  };
}

function foundIn(secret: unknown, origin: string): ImportEntry | Refused {
  if (!isObject(secret)) return { origin, problem: "it is not an object" };
  const { path, value, encoding, type, description, expiresAt, custom } = secret as Partial<ImportEntry>;
  if (typeof path !== "string" || typeof value !== "string") return { origin, problem: "it has no path or no value" };
  const isText = (field: unknown) => field === undefined || typeof field === "string";
  if (encoding !== undefined && encoding !== "base64") return { origin, problem: "its encoding is not base64" };
  if (!isText(type) || !isText(description)) return { origin, problem: "its type or description is not a string" };
  const time = expiresAt === undefined ? undefined : timeIn(expiresAt);
  if (time === null) return { origin, problem: "its expiresAt is not a time" };
  if (custom !== undefined && !isTexts(custom)) return { origin, problem: "its custom is not an object of strings" };
  return { path, value: withPadding(value, encoding), encoding, type, description, expiresAt: time, custom, origin };
}

function isTexts(custom: unknown): boolean {
  return isObject(custom) && Object.values(custom).every((text) => typeof text === "string");
}

/** Returns a time as the server returns it, so that it can be compared; null when it is none. */
function timeIn(text: unknown): string | null {
  const time = typeof text === "string" ? new Date(text) : null;
  return time === null || Number.isNaN(time.getTime()) ? null : time.toISOString();
}

/** Returns base64 as the server returns it. What is malformed stays, and the server refuses it. */
function withPadding(value: string, encoding: "base64" | undefined): string {
  if (encoding === undefined || !/^[\w+/-]*={0,2}$/.test(value)) return value;
  const standard = value.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  return standard.padEnd(4 * Math.ceil(standard.length / 4), "=");
}

/** The limit of a path's segments. */
const maxDepth = 32;

/** Names that make a path are kept as they are. */
function joinNames(names: readonly string[]): string {
  const path = names.join("/");
  if (problemOfPath(path) === null) return path;
  return names.flatMap((name) => (segmentsFor(name).length === 0 ? ["untitled"] : segmentsFor(name))).join("/");
}

function readPlain(json: UnknownObject): ParsedSource {
  return joinSources(
    Array.from(listLeaves(json, []), ({ names, value }): Partial<ParsedSource> => {
      const origin = names.join(" → ");
      if (isObject(value)) return { refused: [{ origin, problem: `it is nested deeper than ${maxDepth} levels` }] };
      if (typeof value !== "string") return { refused: [{ origin, problem: "it is neither a string nor an object" }] };
      const path = joinNames(names);
      const remarks = path === names.join("/") ? [] : [`${origin}: stored as ${path}`];
      return { found: [{ path, value, origin }], remarks };
    }),
  );
}

type Leaf = { readonly names: readonly string[]; readonly value: unknown };

/** Yields all values that are no objects, and objects that are nested too deep. */
function* listLeaves(object: UnknownObject, folders: readonly string[]): Generator<Leaf, void, void> {
  for (const [name, value] of Object.entries(object)) {
    const names = [...folders, name];
    if (isObject(value) && names.length < maxDepth) yield* listLeaves(value, names);
    else yield { names, value };
  }
}

const colon = /\s*:/y;

/** Returns the first duplicate name, or null. The text must be valid JSON, in which a string before a colon is a name. */
function repeatedName(json: string): string | null {
  const open: Set<string>[] = [];
  for (const item of namesAndBraces(json)) {
    if (item === "{") open.push(new Set());
    else if (item === "}") open.pop();
    else if (open.at(-1)?.has(item.name)) return item.name;
    else open.at(-1)?.add(item.name);
  }
  return null;
}

function* namesAndBraces(json: string): Generator<"{" | "}" | { readonly name: string }> {
  const next = /["{}]/g;
  for (let found = next.exec(json); found !== null; found = next.exec(json)) {
    const [mark] = found;
    if (mark === "{" || mark === "}") {
      yield mark;
      continue;
    }
    next.lastIndex = endOfString(json, found.index);
    colon.lastIndex = next.lastIndex;
    const name = colon.test(json) ? (JSON.parse(json.slice(found.index, next.lastIndex)) as string) : null;
    if (name !== null) yield { name };
  }
}

/** Index after the closing quote. A regular expression would need a stack as deep as the string is long. */
function endOfString(json: string, begin: number): number {
  let end = json.indexOf('"', begin + 1);
  while (isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(json: string, at: number): boolean {
  let backslashes = 0;
  while (json[at - 1 - backslashes] === "\\") backslashes++;
  return backslashes % 2 === 1;
}
