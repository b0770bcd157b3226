/**
 * Memory scanner: counts copies of secrets in another process (Linux, /proc/PID/mem), raw, as hex, base64 or UTF-16, and
 * halves of them. Its callers prove with a planted canary that it finds what is there.
 */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { PatternSearch } from "./pattern-search.js";

/** Number of whole copies in any form, and of raw halves that are not part of a whole copy. */
export type Found = { readonly full: number; readonly half: number };

type Region = { readonly start: number; readonly end: number };
type Pattern = { readonly bytes: Buffer; readonly weight: "full" | "first" | "second"; readonly name: string };

const chunkBytes = 4 * 2 ** 20;

/** How long a request may run on after its client has gone, on a machine under load. */
const patienceMs = 20_000;

/**
 * Returns what a scan finds, repeated until it finds nothing: a request whose client has gone may still be on its way and hold
 * what it needs. A copy that nothing holds stays.
 */
export async function whatStays(scan: () => readonly string[]): Promise<readonly string[]> {
  const end = Date.now() + patienceMs;
  let found = scan();
  while (found.length > 0 && Date.now() < end) {
    await sleep(200);
    found = scan();
  }
  return found;
}

/** Searches all of the process's memory for each named secret. The process is stopped during the search. */
export function scanProcess(pid: number, secrets: ReadonlyMap<string, Uint8Array>): Map<string, Found> {
  const patterns = [...secrets].flatMap(([name, bytes]) => secretPatterns(name, bytes));
  const search = new PatternSearch(patterns);
  const counts = new Map(patterns.map((pattern) => [pattern, 0]));
  const count = (pattern: Pattern) => void counts.set(pattern, (counts.get(pattern) ?? 0) + 1);
  const overlap = Math.max(...patterns.map(({ bytes }) => bytes.length));
  process.kill(pid, "SIGSTOP");
  const [memory, pagemap] = [openSync(`/proc/${pid}/mem`, "r"), openSync(`/proc/${pid}/pagemap`, "r")];
  try {
    for (const region of readableRegions(pid, pagemap)) {
      scanRegion(memory, region, overlap, (window, limit) => search.search(window, count, limit));
    }
  } finally {
    for (const file of [memory, pagemap]) closeSync(file);
    process.kill(pid, "SIGCONT");
  }
  return sums(secrets.keys(), counts);
}

/** Every whole copy also counts as two halves: the difference is the halves that stand alone. */
function sums(names: Iterable<string>, counts: ReadonlyMap<Pattern, number>): Map<string, Found> {
  const found = new Map([...names].map((name) => [name, { full: 0, half: 0 }]));
  const begun = new Set<string>();
  for (const [{ name, weight }, count] of counts) {
    const sum = found.get(name);
    if (sum === undefined) continue;
    if (weight !== "full") sum.half += count;
    else sum.full += count;
    if (!begun.has(name)) sum.half -= 2 * count; // the first form is the raw one
    begun.add(name);
  }
  return found;
}

function secretPatterns(name: string, secret: Uint8Array): Pattern[] {
  const raw = Buffer.from(secret);
  const texts = [
    raw.toString("hex"),
    raw.toString("hex").toUpperCase(),
    unpadded(raw.toString("base64")),
    raw.toString("base64url"),
  ];
  const forms = [raw, ...texts.map((text) => Buffer.from(text, "latin1"))];
  const wide = [raw.toString("latin1"), ...texts].map((text) => Buffer.from(text, "utf16le"));
  const distinct = [...new Map([...forms, ...wide].map((bytes) => [bytes.toString("hex"), bytes])).values()];
  const middle = raw.length >> 1;
  return [
    ...distinct.map((bytes) => ({ name, bytes, weight: "full" as const })),
    { name, bytes: raw.subarray(0, middle), weight: "first" },
    { name, bytes: raw.subarray(middle), weight: "second" },
  ];
}

/** Removes the padding and the last character, which depends on the bytes that follow. */
function unpadded(base64: string): string {
  return base64.replace(/.?=*$/, "");
}

/**
 * All readable memory, except the program's read-only files, the kernel's pages, and pages without a file that were never
 * written to: two thirds of what a server could read.
 */
function readableRegions(pid: number, pagemap: number): Region[] {
  const lines = readFileSync(`/proc/${pid}/maps`, "latin1").trimEnd().split("\n");
  return lines.flatMap((line) => {
    const [, start = "", end = "", mode = "", file = ""] = /^(\w+)-(\w+) (\S+) \S+ \S+ \S+ *(.*)$/.exec(line) ?? [];
    const readable = mode.startsWith("r") && (mode[1] === "w" || !file.startsWith("/"));
    if (!readable || file.startsWith("[v")) return [];
    const region = { start: Number.parseInt(start, 16), end: Number.parseInt(end, 16) };
    return file.startsWith("/") ? [region] : presentRegions(region, pagemap);
  });
}

const pageBytes = 4096;

/** Pages in memory or swapped out: bits 63 and 62 of the 8 bytes that the page map has for each (proc(5)). */
function presentRegions({ start, end }: Region, pagemap: number): Region[] {
  const entries = Buffer.alloc(((end - start) / pageBytes) * 8);
  readSync(pagemap, entries, 0, entries.length, (start / pageBytes) * 8);
  const regions: { start: number; end: number }[] = [];
  for (let at = start, i = 7; at < end; at += pageBytes, i += 8) {
    if (((entries[i] ?? 0) & 0xc0) === 0) continue;
    const last = regions.at(-1);
    if (last?.end === at) last.end += pageBytes;
    else regions.push({ start: at, end: at + pageBytes });
  }
  return regions;
}

const chunk = Buffer.alloc(chunkBytes);

/** Each window overlaps the next: only what begins before `limit` counts in it. */
type ScanWindow = (window: Uint8Array, limit: number) => void;

function scanRegion(memory: number, { start, end }: Region, overlap: number, scan: ScanWindow): void {
  for (let at = start; at < end; at += chunkBytes - overlap) {
    const length = readAt(memory, at, Math.min(chunkBytes, end - at));
    const last = at + length >= end;
    scan(chunk.subarray(0, length), last ? length : chunkBytes - overlap);
    if (last) return;
  }
}

/** Pages that cannot be read count as zeros. */
function readAt(memory: number, position: number, length: number): number {
  try {
    return readSync(memory, chunk, 0, length, position);
  } catch {
    return chunk.fill(0, 0, length).length && length;
  }
}
