/**
 * Checksums of an archive in the format of sha256sum(1), so that a backup can be verified without Strongroom.
 *
 *   64 hex digits, two spaces, name, newline; for every file but itself, sorted by name
 */
import { createHash } from "node:crypto";

export const sumsName = "SHA256SUMS";

const linePattern = /^([0-9a-f]{64}) {2}(\S+)\n$/;

/** Longer than any line: a digest and the longest path, escaped. */
const maxLineBytes = 8192;

export function sumOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export function sumLine(name: string, sum: string): string {
  return `${sum}  ${name}\n`;
}

/** Comparable summary of a set of lines, whatever their order, in constant memory: the sum of their digests. */
export class LineSet {
  readonly #lanes = new Uint32Array(8);
  #count = 0;

  add(line: string): void {
    const digest = createHash("sha256").update(line, "latin1").digest();
    for (let lane = 0; lane < 8; lane++) {
      this.#lanes[lane] = (this.#lanes[lane] ?? 0) + digest.readUInt32LE(4 * lane);
    }
    this.#count++;
  }

  equals(other: LineSet): boolean {
    return this.#count === other.#count && this.#lanes.every((lane, at) => lane === other.#lanes[at]);
  }
}

/** What a checksum file lists, and its own SHA-256 in hex, which identifies the backup. */
export type ListedSums = { readonly lines: LineSet; readonly digest: string };

/** Reads a checksum file. Returns null when its format is wrong, and the name when a file is listed twice. */
export async function readSums(chunks: AsyncIterable<Uint8Array>): Promise<ListedSums | { twice: string } | null> {
  const lines = new LineSet();
  const hash = createHash("sha256");
  let last = "";
  for await (const line of linesOf(chunks)) {
    const [, , name] = linePattern.exec(line) ?? [];
    if (name === undefined || name < last) return null;
    if (name === last) return { twice: name };
    lines.add(line);
    hash.update(line, "latin1");
    last = name;
  }
  return { lines, digest: hash.digest("hex") };
}

/** Yields lines with their newlines; one that is too long is cut. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of chunks) {
    const texts = (rest + Buffer.from(chunk).toString("latin1")).split("\n");
    rest = (texts.pop() ?? "").slice(0, maxLineBytes);
    for (const text of texts) yield `${text}\n`;
  }
  if (rest !== "") yield rest;
}
