/**
 * Archive format of backups: a plain tar file of ciphertext, which any tar can read.
 *
 *   audit/…        the audit log's files, with --with-audit
 *   header.json
 *   secrets/…      the tree of blobs, as in the vault
 *   SHA256SUMS     of every file but itself, sorted by name: detects truncation and changes. A line is 64 hex digits, two
 *                  spaces, name, newline
 */
import { createHash } from "node:crypto";
import { auditFileNumber } from "../../audit/format.js";
import { segmentOfDirectory, segmentOfFile } from "../../paths/file-name.js";
import { isSecretPath } from "../../paths/secret-path.js";
import { type Space, spaces } from "../../storage/secret-store.js";

/**
 * `exists`: something would be overwritten; `uninitialized`: there is no vault; `damaged`: the archive or the vault's
 * header; `aborted`: by the user; `unusable`: any other reason.
 */
type BackupProblem = "exists" | "uninitialized" | "damaged" | "aborted" | "unusable";

/** The message is for people: what is wrong, and what to do. */
export class BackupError extends Error {
  readonly problem: BackupProblem;

  constructor(problem: BackupProblem, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "BackupError";
    this.problem = problem;
  }
}

export const headerName = "header.json";

/** Directory of the audit log, as in the home. */
export const auditName = "audit";

/** The directories of the spaces, sorted. */
export const spaceNames = spaces.map((space) => `${space}/`).sort();

/** Whether a name is that of an audit log's file. */
export function isAuditFile(name: string): boolean {
  const [top, file = "", ...more] = name.split("/");
  return top === auditName && auditFileNumber(file) !== null && more.length === 0;
}

/** Returns the place of the blob that a name stands for; null when it stands for none. */
export function placeOfFile(name: string): { readonly space: Space; readonly path: string } | null {
  const [top, ...names] = name.split("/");
  const space = spaces.find((each) => each === top);
  const segments = names.map((each, at) => (at < names.length - 1 ? segmentOfDirectory(each) : segmentOfFile(each)));
  const path = segments.includes(null) ? null : segments.join("/");
  return space !== undefined && path !== null && isSecretPath(path) ? { space, path } : null;
}

/** Longer than any name of a backup that is worth reading in a message. */
const shownLength = 256;

/** Returns a name from an archive for a message. */
export function shownName(name: string): string {
  return JSON.stringify(name.length > shownLength ? `${name.slice(0, shownLength)}…` : name);
}

/** The checksums have the format of sha256sum(1), so that a backup can be verified without Strongroom. */
export const sumsName = "SHA256SUMS";

const linePattern = /^([0-9a-f]{64}) {2}(\S+)\n$/;

/** Longer than any line: a digest and the longest path, escaped. */
const maxLineBytes = 8192;

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

/** Lines of a checksum file, and its own SHA-256 in hex, which identifies the backup. */
export type ListedSums = { readonly lines: LineSet; readonly digest: string };

/** Reads a checksum file. Returns null when its format is wrong, and the name when a file is listed twice. */
export async function readSums(chunks: AsyncIterable<Uint8Array>): Promise<ListedSums | { twice: string } | null> {
  const lines = new LineSet();
  const hash = createHash("sha256");
  let last = "";
  for await (const line of readLines(chunks)) {
    const [, , name] = linePattern.exec(line) ?? [];
    if (name === undefined || name < last) return null;
    if (name === last) return { twice: name };
    lines.add(line);
    hash.update(line, "latin1");
    last = name;
  }
  return { lines, digest: hash.digest("hex") };
}

/** Yields lines with their newlines; a line that is too long is cut. */
async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of chunks) {
    const texts = (rest + Buffer.from(chunk).toString("latin1")).split("\n");
    rest = (texts.pop() ?? "").slice(0, maxLineBytes);
    for (const text of texts) yield `${text}\n`;
  }
  if (rest !== "") yield rest;
}
