/** Parameters and results of statements: bytes, ranges of paths, and the changes of a batch. */
import { hash } from "node:crypto";
import type { Bytes } from "../../../workers/protocol.js";
import type { Change, Expected, NamedDocument, ReadVersion } from "../secret-store.js";
import type { Value } from "./database.js";

/** Returns the bytes of a `bytea` in text form (`\x` and hexadecimal digits), in a buffer of its own. */
export function decodeBytea(text: string): Bytes {
  const bytes = Buffer.from(new ArrayBuffer((text.length - 2) / 2));
  bytes.write(text.slice(2), "hex");
  return new Uint8Array(bytes.buffer as ArrayBuffer);
}

/** Returns what the schema's functions expect: a word, or a tag or digest in hexadecimal digits. */
export function expectedText(expected: Expected | undefined): string | null {
  if (expected === undefined || typeof expected === "string") return expected ?? null;
  if (expected.whole !== undefined) return hash("sha256", expected.whole, "hex");
  return Buffer.from(expected.tag, "base64url").toString("hex");
}

/** Returns the first text that sorts after everything with the prefix, by UTF-8 bytes; null when there is none. */
export function pathsBelow(prefix: string): string | null {
  const characters = [...prefix];
  for (;;) {
    const last = characters.pop()?.codePointAt(0);
    if (last === undefined) return null;
    if (last === 0x10ffff) continue;
    return characters.join("") + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1);
  }
}

export function documentTag(bytes: Bytes): string {
  return hash("sha256", bytes, "base64url").slice(0, 16);
}

/** See `start_vault_with`. */
export function documentsParameters(documents: readonly NamedDocument[]): readonly Value[] {
  const lengths = documents.map(({ bytes }) => bytes.length);
  const starts = lengths.map((_, i) => 1 + lengths.slice(0, i).reduce((sum, length) => sum + length, 0));
  const tags = documents.map(({ bytes }) => documentTag(bytes));
  const bytes = Buffer.concat(documents.map((document) => document.bytes));
  return [documents.map(({ name }) => name), tags, starts, lengths, bytes];
}

/** Lengths that stand for no blob, see `commit_spaces`. */
const removes = -1;
const onlyRequires = -2;

/** Puts all blobs into one parameter: an array would be sent as text, twice as long, and could exceed a string's limit. */
export function changesParameters(changes: readonly Change[], bases: readonly ReadVersion[]) {
  const lengths = [...changes.map(({ blob }) => blob?.length ?? removes), ...bases.map(() => onlyRequires)];
  const starts: number[] = [];
  let at = 1;
  for (const length of lengths) {
    starts.push(at);
    at += Math.max(0, length);
  }
  const blobs = Buffer.concat(changes.flatMap(({ blob }) => blob ?? []));
  const places = [...changes, ...bases];
  const spaces = places.map(({ space = "secrets" }) => space);
  const paths = places.map(({ path }) => path);
  const expected = [...changes.map((change) => change.expected), ...bases].map(expectedText);
  const values: readonly Value[] = [spaces, paths, starts, lengths, blobs, expected];
  return { values, bytes: blobs.length };
}
