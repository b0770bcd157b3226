/**
 * Checksums of an archive in the format of sha256sum(1), so that a backup can be verified without Strongroom.
 *
 *   64 hex digits, two spaces, name, newline; for every file but itself, sorted by name
 */
import { createHash } from "node:crypto";

export const sumsName = "SHA256SUMS";

/** Hex SHA-256 by file name in the archive. */
export type Sums = Map<string, string>;

const line = /^([0-9a-f]{64}) {2}(\S+)$/;

export function sumOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export function formatSums(sums: Sums): string {
  const names = [...sums.keys()].sort();
  return names.map((name) => `${sums.get(name)}  ${name}\n`).join("");
}

/** Returns null when the text has another format. */
export function parseSums(text: string): Sums | null {
  const sums: Sums = new Map();
  for (const each of text.split("\n").slice(0, -1)) {
    const [, sum, name] = line.exec(each) ?? [];
    if (sum === undefined || name === undefined) return null;
    sums.set(name, sum);
  }
  return text.endsWith("\n") ? sums : null;
}

export function sameSums(some: Sums, others: Sums): boolean {
  return some.size === others.size && [...some].every(([name, sum]) => others.get(name) === sum);
}
