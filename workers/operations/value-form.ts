/**
 * Strength and form of a text. The form tells whether it is a secret, whatever its path is called: a URL with a password, or
 * at least 12 bytes that look random. The text never becomes a string.
 */
import { type Score, strengthScore } from "../check/strength.js";
import type { WordTable } from "../check/words.js";
import { allocate, utf8 } from "../memory.js";

/** `secret`: as above; `address`: a URL without a secret, a host or an e-mail address; `text`: anything else. */
type ValueForm = "secret" | "address" | "text";

const shortestRandom = 12;
const randomScore: Score = 3;

const [colon, slash, at, dot, question, hash] = [0x3a, 0x2f, 0x40, 0x2e, 0x3f, 0x23];

/** Returns the strength, of a URL with a password that of the password; and the form. */
export function judgeText(value: Uint8Array, words: WordTable): { readonly score: Score; readonly form: ValueForm } {
  const scheme = schemeEnd(value);
  const { password, rest } = scheme > 0 ? splitUrl(value, scheme) : noUrl;
  if (password.length > 0) return { score: strengthScore(password, words), form: "secret" };
  const score = strengthScore(value, words);
  const isRandom = (text: Uint8Array) => text.length >= shortestRandom && looksRandom(text, strengthScore(text, words));
  if (scheme > 0) return { score, form: isRandom(rest) ? "secret" : "address" };
  if (!isAddress(value)) return { score, form: looksRandom(value, score) ? "secret" : "text" };
  return { score, form: splitLabels(value).some(isRandom) ? "secret" : "address" };
}

/** Words with separators between them, as in `internal-database`, are guessed late and are still no secret. */
function looksRandom(text: Uint8Array, score: Score): boolean {
  if (text.length < shortestRandom || score < randomScore) return false;
  return text.some((byte) => isDigit(byte) || isUpper(byte)) || text.every(isLower);
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isUpper(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

function isLower(byte: number): boolean {
  return byte >= 0x61 && byte <= 0x7a;
}

const schemeMarks = marks("+-.");
const addressMarks = marks("@.:-_+%");

function marks(text: string): ReadonlySet<number> {
  return new Set(utf8(text));
}

/** Returns where the authority begins, after `scheme://`; 0 when the value is no URL. */
function schemeEnd(value: Uint8Array): number {
  const end = value.indexOf(colon);
  if (end < 1 || value[end + 1] !== slash || value[end + 2] !== slash || value.some((byte) => byte <= 0x20)) return 0;
  const isScheme = value
    .subarray(0, end)
    .every((byte) => isLower(byte | 0x20) || isDigit(byte) || schemeMarks.has(byte));
  return isScheme ? end + 3 : 0;
}

/** `rest`: path and query. */
type UrlParts = { readonly password: Uint8Array; readonly rest: Uint8Array };

const noUrl: UrlParts = { password: allocate(0), rest: allocate(0) };

/** A password may hold a slash that should have been escaped, so the host begins after the last @ before the query. */
function splitUrl(value: Uint8Array, start: number): UrlParts {
  const query = value.findIndex((byte, i) => i >= start && (byte === question || byte === hash));
  const before = value.subarray(start, query < 0 ? value.length : query);
  const host = before.lastIndexOf(at) + 1;
  const user = before.subarray(0, Math.max(0, host - 1));
  const separator = user.indexOf(colon);
  const path = before.indexOf(slash, host);
  const rest = path >= 0 ? start + path + 1 : query >= 0 ? query + 1 : value.length;
  return { password: separator < 0 ? user.subarray(0, 0) : user.subarray(separator + 1), rest: value.subarray(rest) };
}

/** Octets of the longest e-mail address: of its user, the @ and its host (RFC 5321, section 4.5.3.1). */
const longestAddress = 64 + 1 + 255;

/**
 * Whether the value looks like a host, with or without a port, or like an e-mail address: lower case, with a dot. DANGER: each
 * label of an address is judged alone, which takes the key worker's time.
 */
function isAddress(value: Uint8Array): boolean {
  if (value.length > longestAddress || !value.includes(dot) || value.indexOf(at) !== value.lastIndexOf(at))
    return false;
  return value.every((byte) => isLower(byte) || isDigit(byte) || addressMarks.has(byte));
}

function splitLabels(value: Uint8Array): Uint8Array[] {
  const labels: Uint8Array[] = [];
  for (let from = 0; from <= value.length; ) {
    const next = value.findIndex((byte, i) => i >= from && (byte === dot || byte === at || byte === colon));
    const end = next < 0 ? value.length : next;
    labels.push(value.subarray(from, end));
    from = end + 1;
  }
  return labels;
}
