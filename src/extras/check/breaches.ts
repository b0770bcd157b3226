/**
 * Lists of breached passwords: lines of SHA-1 hashes in hex, as Have I Been Pwned publishes them (`HASH:COUNT`), or of their
 * first digits. A small list is read whole; a large one must be sorted, and is searched.
 */
import { createHmac } from "node:crypto";
import { closeSync, createReadStream, fstatSync, openSync, readSync } from "node:fs";
import { createInterface } from "node:readline";
import { CommandFailure, failureReason, systemCode } from "../../cli/kit/errors.js";
import { printable } from "../../cli/kit/output.js";
import type { CheckEntry } from "../../client/client.js";

const prefixDigits = 8;
const hashLine = /^([0-9a-f]{8,40})(?::\d+)?\s*$/i;

/** A larger list is searched instead of read. */
const wholeBytes = 64 * 2 ** 20;

type Wanted = ReadonlyMap<string, readonly CheckEntry[]>;

/** Returns the paths of breached values. `mostWhole`: bytes up to which a list is read whole. @throws CommandFailure usage */
export async function breachedIn(
  file: string,
  key: Buffer,
  entries: readonly CheckEntry[],
  mostWhole = wholeBytes,
): Promise<ReadonlySet<string>> {
  const wanted = byPrefix(entries);
  const found = new Set<string>();
  const compare = (line: string) => {
    const hash = parseHash(line, file);
    for (const { path, breach } of wanted.get(hash.slice(0, prefixDigits)) ?? []) {
      if (hash.length < 40 || breachDigest(key, hash) === breach?.digest) found.add(path);
    }
  };
  try {
    await compareLines(file, [...wanted.keys()], mostWhole, compare);
  } catch (error) {
    if (error instanceof CommandFailure || systemCode(error) === undefined) throw error;
    throw new CommandFailure("usage", `${printable(file)} cannot be read${failureReason(systemCode(error))}`);
  }
  return found;
}

/** Calls back with all lines, or for a large list with the lines that begin with the prefixes. */
async function compareLines(
  file: string,
  prefixes: readonly string[],
  mostWhole: number,
  compare: (line: string) => void,
): Promise<void> {
  const descriptor = openSync(file, "r");
  try {
    const { size } = fstatSync(descriptor);
    if (size > mostWhole) for (const prefix of prefixes) searchSorted(descriptor, size, prefix, file, compare);
    else await readWhole(file, compare);
  } finally {
    closeSync(descriptor);
  }
}

async function readWhole(file: string, compare: (line: string) => void): Promise<void> {
  for await (const line of createInterface({ input: createReadStream(file) })) if (line !== "") compare(line);
}

function byPrefix(entries: readonly CheckEntry[]): Wanted {
  const wanted = new Map<string, CheckEntry[]>();
  for (const entry of entries) {
    const prefix = entry.breach?.prefix;
    if (prefix !== undefined) wanted.set(prefix, [...(wanted.get(prefix) ?? []), entry]);
  }
  return wanted;
}

function parseHash(line: string, file: string): string {
  const [, hash] = hashLine.exec(line) ?? [];
  if (hash !== undefined) return hash.toLowerCase();
  const form = "each line must be a SHA-1 hash in hex, or at least its first 8 digits, as in  5BAA61E4C9B9…:3730471";
  throw new CommandFailure("usage", `${printable(file)} is not a list of breached passwords: ${form}`);
}

function breachDigest(key: Buffer, hash: string): string {
  const mac = createHmac("sha256", key).update("breach").update(Buffer.from(hash, "hex")).digest();
  return mac.toString("base64url", 0, 16);
}

/** More than two of the longest lines. */
const chunkBytes = 256;

/** Calls back with the lines that begin with the prefix. */
function searchSorted(
  descriptor: number,
  size: number,
  prefix: string,
  file: string,
  found: (line: string) => void,
): void {
  const compared = (line: string) => parseHash(line, file).slice(0, prefixDigits);
  let [low, high] = [0, size]; // lines that begin before `low` are smaller, those from `high` on are not
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { line, end } = lineAfter(descriptor, middle);
    if (line !== "" && compared(line) < prefix) low = end;
    else high = middle;
  }
  for (let at = low; ; ) {
    const { line, end } = lineAfter(descriptor, at);
    if (line === "" || compared(line) !== prefix) return;
    found(line);
    at = end;
  }
}

/** Returns the first line that begins at this place or behind it, and where the next one begins; "" behind the last. */
function lineAfter(descriptor: number, at: number): { readonly line: string; readonly end: number } {
  const from = Math.max(0, at - 1);
  const chunk = Buffer.alloc(chunkBytes);
  const text = chunk.toString("latin1", 0, readSync(descriptor, chunk, 0, chunkBytes, from));
  const begin = at === 0 ? 0 : text.indexOf("\n") + 1;
  if (at > 0 && begin === 0) return { line: "", end: from + text.length };
  const newline = text.indexOf("\n", begin);
  const end = newline < 0 ? text.length : newline;
  return { line: text.slice(begin, end).trim(), end: from + end + 1 };
}
