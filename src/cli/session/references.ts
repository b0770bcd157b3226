/**
 * Owns references to secrets in other texts. A reference is `strongroom://path`, the path spelled as in a URL: it is
 * percent-decoded once, so that `%` itself is `%25`, and braces are `%7B` and `%7D`. Inside a longer text it stands
 * between double braces, `{{ strongroom://path }}`, on one line: where it ends is never a guess. Double braces that hold
 * anything else are left alone.
 */
import { VaultError } from "../../errors.js";
import { parseSecretPath } from "../../paths/secret-path.js";
import { CommandFailure } from "./exit-codes.js";
import { printable } from "./output.js";

/** Bytes that stay as they are, or the path of the secret that belongs in their place. */
export type Part = Uint8Array | string;

const scheme = "strongroom://";
const opening = /\{\{[ \t]*strongroom:/g;
const braced = /\{\{[ \t]*strongroom:\/\/([^{}\r\n]*?)[ \t]*\}\}/y;

/** The path, if the whole text is one reference; else null. @throws CommandFailure usage */
export function wholeReference(text: string, where: string): string | null {
  return text.startsWith(scheme) ? referredPath(text.slice(scheme.length), where) : null;
}

/** Cuts a text at its references. Its other bytes may be anything. @throws CommandFailure usage */
export function cutTemplate(template: Buffer, whereOf: (line: number) => string): Part[] {
  const text = template.toString("latin1"); // a character is a byte: places agree, and what is not UTF-8 survives
  const parts: Part[] = [];
  let end = 0;
  let line = 1;
  for (const { index } of text.matchAll(opening)) {
    line += text.slice(end, index).split("\n").length - 1;
    const where = whereOf(line);
    braced.lastIndex = index;
    const [whole, path] = braced.exec(text) ?? [];
    if (whole === undefined || path === undefined) throw malformed(where);
    parts.push(template.subarray(end, index), referredPath(Buffer.from(path, "latin1").toString("utf8"), where));
    end = index + whole.length;
  }
  parts.push(template.subarray(end));
  return parts;
}

export function pathsIn(parts: readonly Part[]): string[] {
  return parts.filter((part) => typeof part === "string");
}

export function fillTemplate(parts: readonly Part[], reveal: (path: string) => string): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(reveal(part)) : part)));
}

/** A path as it was typed, in its canonical form. @throws CommandFailure usage, with what is wrong with it */
export function canonicalPath(path: string, where: string): string {
  const problem = problemOfPath(path);
  if (problem !== null) throw new CommandFailure("usage", `${where}: ${problem}`);
  return path.normalize("NFC");
}

/** Why a path cannot be a secret's; null when it can. */
export function problemOfPath(path: string): string | null {
  if (/\p{Surrogate}/u.test(path)) return "the path has a lone surrogate";
  return problemOfEncoded(encodeURIComponent(path));
}

function problemOfEncoded(encoded: string): string | null {
  try {
    parseSecretPath(encoded);
    return null;
  } catch (error) {
    if (error instanceof VaultError) return error.message;
    throw error;
  }
}

function referredPath(encoded: string, where: string): string {
  const problem = problemOfEncoded(encoded);
  if (problem === null) return parseSecretPath(encoded);
  throw new CommandFailure("usage", `${where}: the reference ${scheme}${printable(encoded)} is not valid: ${problem}`);
}

function malformed(where: string): CommandFailure {
  return new CommandFailure("usage", `${where}: a reference is {{ ${scheme}path }}, on one line`);
}
