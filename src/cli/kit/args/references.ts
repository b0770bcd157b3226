/**
 * References to secrets: `strongroom://path`, or `strongroom://path#field` for a field of a JSON value, percent-decoded once
 * as in a URL, so that `%` is `%25`, `#` in a path is `%23`, and braces are `%7B` and `%7D`. Within a longer text,
 * `{{ strongroom://path }}` on one line. Double braces without `strongroom:` stay as they are.
 */
import { VaultError } from "../../../errors.js";
import { parseSecretPath } from "../../../paths/secret-path.js";
import { CommandFailure } from "../errors.js";
import { printable } from "../output.js";
import type { Reference } from "./fields.js";
import { canonicalPath, scheme } from "./paths.js";

/** Bytes to copy, or the secret to insert. */
export type Part = Uint8Array | Reference;

const fromBase = "./";
const opening = /\{\{[ \t]*strongroom:/g;
/** With the blanks behind the path: a pattern for them would take a second for 20,000 of them. */
const braced = /\{\{[ \t]*strongroom:\/\/([^{}\r\n]*)\}\}/y;

/** Returns the reference if the whole text is one, else null. @throws CommandFailure usage */
export function wholeReference(text: string, where: string): Reference | null {
  return text.startsWith(scheme) ? readReference(text.slice(scheme.length), where) : null;
}

/** Returns what a path, or a reference, names. @throws CommandFailure usage */
export function pathOrReference(text: string, where: string): Reference {
  return wholeReference(text, where) ?? { path: canonicalPath(text, where), field: null };
}

/** Returns a reference as text, for people. */
export function shownReference({ path, field }: Reference): string {
  return printable(field === null ? path : `${path}#${field}`);
}

/**
 * Splits a text at its references; its other bytes may be anything. `base` is the folder that a path from `./` on is in,
 * null where there is none. @throws CommandFailure usage
 */
export function cutTemplate(template: Buffer, lineLabel: (line: number) => string, base: string | null = null): Part[] {
  const text = template.toString("latin1"); // one character per byte: offsets agree, and invalid UTF-8 survives
  const parts: Part[] = [];
  let end = 0;
  let line = 1;
  if (isUtf16(template))
    throw new CommandFailure("usage", `${lineLabel(1)}: references in UTF-16 text: save it as UTF-8`);
  for (const { index } of text.matchAll(opening)) {
    refuseNearMiss(text.slice(end, index), line, lineLabel);
    line += text.slice(end, index).split("\n").length - 1;
    const where = lineLabel(line);
    braced.lastIndex = index;
    const [whole, padded] = braced.exec(text) ?? [];
    if (whole === undefined || padded === undefined) throw malformed(where);
    const path = Buffer.from(withoutBlanksBehind(padded), "latin1").toString("utf8");
    parts.push(template.subarray(end, index), readReference(path, where, base));
    end = index + whole.length;
  }
  refuseNearMiss(text.slice(end), line, lineLabel);
  parts.push(template.subarray(end));
  return parts;
}

const bracesOrScheme = /\{\{|\}\}|strongroom:/gi;

/** Characters after double braces in which the scheme makes them a reference. */
const nearBraces = 256;

/** @throws CommandFailure usage, for double braces with a reference in another form, such as trimmed or quoted */
function refuseNearMiss(text: string, firstLine: number, lineLabel: (line: number) => string): void {
  let opened = Number.NEGATIVE_INFINITY;
  for (const { 0: token, index } of text.matchAll(bracesOrScheme)) {
    if (token === "{{") opened = index;
    else if (token === "}}") opened = Number.NEGATIVE_INFINITY;
    else if (index - opened <= nearBraces) {
      throw malformed(lineLabel(firstLine + text.slice(0, opened).split("\n").length - 1));
    }
  }
}

/** Whether a text has references that its encoding hides. */
function isUtf16(template: Buffer): boolean {
  const hidden = Buffer.from("strongroom:", "utf16le");
  return template.includes(hidden) || template.includes(Buffer.from(hidden).swap16());
}

/** Not `trimEnd`: here, a character is a byte, and what it takes for a blank may be a part of a letter. */
function withoutBlanksBehind(text: string): string {
  let end = text.length;
  while (text[end - 1] === " " || text[end - 1] === "\t") end--;
  return text.slice(0, end);
}

/** Returns whether a text may have a reference from `./` on. */
export function needsBase(template: Buffer): boolean {
  return template.includes(`${scheme}${fromBase}`);
}

export function referencesIn(parts: readonly Part[]): Reference[] {
  return parts.filter((part): part is Reference => !(part instanceof Uint8Array));
}

export function pathsIn(parts: readonly Part[]): string[] {
  return referencesIn(parts).map(({ path }) => path);
}

export function fillTemplate(parts: readonly Part[], reveal: (reference: Reference) => string): Buffer {
  return Buffer.concat(parts.map((part) => (part instanceof Uint8Array ? part : Buffer.from(reveal(part)))));
}

function readReference(encoded: string, where: string, base: string | null = null): Reference {
  const hash = encoded.indexOf("#");
  if (hash < 0) return { path: referredPath(encoded, where, base), field: null };
  const field = decodedField(encoded.slice(hash + 1));
  if (field !== null) return { path: referredPath(encoded.slice(0, hash), where, base), field };
  const problem = "the field after # must be a name, percent-encoded; in a path, write # as %23";
  throw new CommandFailure("usage", `${where}: the reference ${scheme}${printable(encoded)} is invalid: ${problem}`);
}

/** Returns null for an empty or malformed field. */
function decodedField(encoded: string): string | null {
  try {
    return decodeURIComponent(encoded) || null;
  } catch {
    return null;
  }
}

function referredPath(encoded: string, where: string, base: string | null = null): string {
  if (base !== null && encoded.startsWith(fromBase)) {
    return canonicalPath(`${base}${referredPath(encoded.slice(fromBase.length), where)}`, where);
  }
  try {
    return parseSecretPath(encoded);
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    const reference = `${scheme}${printable(encoded)}`;
    throw new CommandFailure("usage", `${where}: the reference ${reference} is invalid: ${error.message}`);
  }
}

function malformed(where: string): CommandFailure {
  return new CommandFailure("usage", `${where}: invalid reference: write {{ ${scheme}path }} on one line`);
}
