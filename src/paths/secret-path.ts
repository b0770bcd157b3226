/** Secret paths: canonical form, rules and order. */
import { VaultError } from "../errors.js";
import { fitsFileName } from "./file-name.js";

export const maxPathBytes = 1024;
const maxSegments = 32;

/**
 * Returns the canonical path for what follows `/v1/secrets/` in a request target: percent-decoded once, NFC.
 * @throws VaultError BAD_REQUEST that names the rule.
 */
export function parseSecretPath(raw: string): string {
  return isPlain(raw) ? raw : canonicalPath(percentDecode(raw, "the path"));
}

/** Returns the canonical path for a text that is not encoded: NFC. @throws VaultError BAD_REQUEST that names the rule. */
export function canonicalPath(text: string): string {
  if (isPlain(text)) return text;
  const path = text.normalize("NFC");
  const problem = pathProblem(path);
  if (problem !== null) throw new VaultError("BAD_REQUEST", `the path ${problem}`);
  return path;
}

/** Whether a path found on disk is canonical and valid. */
export function isSecretPath(path: string): boolean {
  return isPlain(path) || (path.normalize("NFC") === path && pathProblem(path) === null);
}

/** Most paths: canonical and valid without further checks. With ".sealed", a segment makes 255 bytes at most. */
const plainPath = /^[a-z0-9_-]{1,248}(?:\/[a-z0-9_-]{1,248}){0,31}$/;

function isPlain(path: string): boolean {
  return path.length <= maxPathBytes && plainPath.test(path);
}

/** Decodes percent-encoding exactly once; `+` stays a plus. @throws VaultError BAD_REQUEST */
export function percentDecode(raw: string, what: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new VaultError("BAD_REQUEST", `${what} is not valid percent-encoded UTF-8`);
  }
}

function pathProblem(path: string): string | null {
  if (path === "") return "is empty";
  if (Buffer.byteLength(path) > maxPathBytes) return `is longer than ${maxPathBytes} bytes`;
  const segments = path.split("/");
  if (segments.length > maxSegments) return `has more than ${maxSegments} segments`;
  for (const segment of segments) {
    const problem = segmentProblem(segment);
    if (problem !== null) return problem;
  }
  return null;
}

function segmentProblem(segment: string): string | null {
  if (segment === "") return "has an empty segment (a slash at an end, or two in a row)";
  if (segment === "." || segment === "..") return "has a segment that is . or ..";
  if (/[\p{Cc}\\]/u.test(segment)) return "has a control character or a backslash";
  if (/\p{Cs}/u.test(segment)) return "has a lone surrogate";
  if (/^\s|\s$/u.test(segment)) return "has a segment that begins or ends with white space";
  if (!fitsFileName(segment)) return "has a segment that is too long for a file name (255 bytes once escaped)";
  return null;
}

/** Sorts in place in the order of `compareUtf8`; by JavaScript's own order, which is faster, where it is the same. */
export function sortUtf8(texts: string[]): string[] {
  return texts.some((text) => /[\ud800-\uffff]/.test(text)) ? texts.sort(compareUtf8) : texts.sort();
}

/** Compares texts by their UTF-8 bytes; JavaScript's own order differs where surrogates meet U+E000 to U+FFFF. */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const difference = utf8Rank(a.charCodeAt(i)) - utf8Rank(b.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function utf8Rank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}
