/**
 * References to secrets: `strongroom://path`, percent-decoded once as in a URL, so that `%` is `%25` and braces are `%7B`
 * and `%7D`. Within a longer text, `{{ strongroom://path }}` on one line. Other double braces stay as they are.
 */
import { VaultError } from "../../errors.js";
import { parseSecretPath } from "../../paths/secret-path.js";
import { CommandFailure } from "./errors.js";
import { printable } from "./output.js";
import { canonicalPath } from "./paths.js";

/** Bytes to copy, or the path of the secret to insert. */
export type Part = Uint8Array | string;

const scheme = "strongroom://";
const fromBase = "./";
const opening = /\{\{[ \t]*strongroom:/g;
/** With the blanks behind the path: a pattern for them would take a second for 20,000 of them. */
const braced = /\{\{[ \t]*strongroom:\/\/([^{}\r\n]*)\}\}/y;

/** Returns the path if the whole text is one reference, else null. @throws CommandFailure usage */
export function wholeReference(text: string, where: string): string | null {
  return text.startsWith(scheme) ? referredPath(text.slice(scheme.length), where) : null;
}

/**
 * Splits a text at its references; its other bytes may be anything. `base` is the folder that a path from `./` on is in,
 * null where there is none. @throws CommandFailure usage
 */
export function cutTemplate(template: Buffer, whereOf: (line: number) => string, base: string | null = null): Part[] {
  const text = template.toString("latin1"); // one character per byte: offsets agree, and invalid UTF-8 survives
  const parts: Part[] = [];
  let end = 0;
  let line = 1;
  for (const { index } of text.matchAll(opening)) {
    line += text.slice(end, index).split("\n").length - 1;
    const where = whereOf(line);
    braced.lastIndex = index;
    const [whole, padded] = braced.exec(text) ?? [];
    if (whole === undefined || padded === undefined) throw malformed(where);
    const path = Buffer.from(withoutBlanksBehind(padded), "latin1").toString("utf8");
    parts.push(template.subarray(end, index), referredPath(path, where, base));
    end = index + whole.length;
  }
  parts.push(template.subarray(end));
  return parts;
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

export function pathsIn(parts: readonly Part[]): string[] {
  return parts.filter((part) => typeof part === "string");
}

export function fillTemplate(parts: readonly Part[], reveal: (path: string) => string): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(reveal(part)) : part)));
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
