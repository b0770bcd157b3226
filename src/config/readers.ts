/** Readers of settings: each returns the value, or throws what the text must be. */
import { isIP } from "node:net";
import { resolve } from "node:path";

/** An invalid setting; the message says what it must be. */
export class Problem extends Error {}

export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new Problem(`a whole number from ${min} to ${max}`);
  };
}

/** Returns null for `off`. */
export function readOptionalPort(text: string): number | null {
  if (text === "off") return null;
  try {
    return integer(0, 65_535)(text);
  } catch {
    throw new Problem("off, or a whole number from 0 to 65535");
  }
}

const unitsInMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads 500ms, 30s, 15m, 2h, 90d or 0; no other number without a unit, since `30` may mean days. Returns milliseconds. */
export function duration(maxMs: number): (text: string) => number {
  const meant = `${durationLike(maxMs)}, of at most ${shownDuration(maxMs)}`;
  return (text) => requireDuration(text === "0" ? "0s" : text, maxMs, meant);
}

/** Like `duration`, without 0, which the server takes for no end at all. */
export function positiveDuration(maxMs: number): (text: string) => number {
  const meant = `${durationLike(maxMs)}, of more than 0 and at most ${shownDuration(maxMs)}`;
  return (text) => {
    const ms = requireDuration(text, maxMs, meant);
    if (ms > 0) return ms;
    throw new Problem(meant);
  };
}

function durationLike(maxMs: number): string {
  const examples = ["30d", "12h", "45m", "90s"].filter((example) => parseMs(example) <= maxMs);
  return `a duration with its unit, such as ${inWords(examples)}`;
}

/** Reads a duration, or `never`, which is 0. */
export function durationOrNever(maxMs: number): (text: string) => number {
  const meant = `never, or a duration with its unit, such as 8h or 15m, of at most ${shownDuration(maxMs)}`;
  return (text) => (text === "never" || text === "0" ? 0 : requireDuration(text, maxMs, meant));
}

/** Reads a duration for a setting whose name says that a number without a unit counts milliseconds. */
export function milliseconds(maxMs: number): (text: string) => number {
  const meant = `a number of milliseconds, or a duration such as 30s, 15m or 2h, of at most ${shownDuration(maxMs)}`;
  return (text) => requireDuration(/^\d+$/.test(text) ? `${text}ms` : text, maxMs, meant);
}

function requireDuration(text: string, maxMs: number, meant: string): number {
  const ms = parseMs(text);
  if (Number.isInteger(ms) && ms <= maxMs) return ms;
  throw new Problem(meant);
}

/** Returns NaN for a text that is no duration. */
function parseMs(text: string): number {
  const [, number, unit = ""] = /^(\d{1,15}(?:\.\d{1,3})?)(ms|[smhd])$/.exec(text) ?? [];
  return Number(number) * (unitsInMs[unit] ?? Number.NaN);
}

/** `12h, 45m or 90s`. */
function inWords(texts: readonly string[]): string {
  const [last = "30s", ...others] = texts.toReversed();
  return others.length === 0 ? last : `${others.toReversed().join(", ")} or ${last}`;
}

/** Formats a duration in the largest unit that gives a whole number. */
export function shownDuration(ms: number): string {
  const [unit = "ms", unitMs = 1] = Object.entries(unitsInMs).findLast(([, each]) => ms % each === 0) ?? [];
  return `${ms / unitMs}${unit}`;
}

const hostName = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

export function readHost(text: string): string {
  const host = text.toLowerCase();
  if (isIP(host) === 0 && !hostName.test(host)) throw new Problem("an IP address or a host name");
  return host;
}

export function readNames(text: string): string[] {
  return text.split(",").map((name) => {
    try {
      return readHost(name.trim());
    } catch {
      throw new Problem("IP addresses or host names, separated by commas");
    }
  });
}

/** Returns the absolute path. */
export function readPath(text: string): string {
  return resolve(text);
}

/** Limit of unix(7), where the path's final NUL takes one byte more; macOS and the BSDs have 4 bytes less. */
export const maxSocketPathBytes = process.platform === "linux" ? 107 : 103;

export function readSocketPath(text: string): string {
  if (text === "off") return text;
  const path = resolve(text);
  if (Buffer.byteLength(path) <= maxSocketPathBytes) return path;
  throw new Problem(`off or a path of at most ${maxSocketPathBytes} bytes, which is the system's limit`);
}

/** Returns null for `off`. */
export function readOptionalSocketPath(text: string): string | null {
  return text === "off" ? null : readSocketPath(text);
}

/** Whether a text that names a vault is the URL of a database, not a directory. */
export function isStoreUrl(text: string): boolean {
  return /^postgres(?:ql)?:/i.test(text);
}

/** DANGER: no message quotes the text, which may have a password in it. The store reads the rest of the URL. */
export function readStoreUrl(text: string): string {
  if (!isStoreUrl(text) || !URL.canParse(text)) {
    throw new Problem("a database's URL, such as postgres://strongroom@db.example.org/strongroom");
  }
  const { password, searchParams } = new URL(text);
  if (password === "" && !searchParams.has("password")) return text;
  throw new Problem(
    "a URL without a password, which other users can read there: change it, and write it into ~/.pgpass or into the file that " +
      "STRONGROOM_STORE_PASSWORD_FILE names",
  );
}

/** RFC 6750's b64token, which needs no escaping in a header. */
export function isToken(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]{1,512}=*$/.test(text);
}

/** A shorter token could be guessed: the lockout is per address, and a local user may bind all of 127.0.0.0/8. */
export const minTokenLength = 32;

export function readToken(text: string): string {
  if (!isToken(text) || text.length < minTokenLength) {
    throw new Problem(`${minTokenLength} to 512 letters, digits and . _ ~ + / - (then perhaps =)`);
  }
  return text;
}

export function choiceReader<T extends string>(choices: readonly T[]): (text: string) => T {
  return (text) => {
    const choice = choices.find((known) => known === text);
    if (choice === undefined) throw new Problem(`one of ${choices.join(", ")}`);
    return choice;
  };
}
