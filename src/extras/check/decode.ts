/**
 * Readings of a file in which a value may be written in another way: UTF-16, escapes of JSON, URLs and HTML, base64 within
 * base64, base64 over several lines, and compressed content. Base64, hex and UTF-16 of a value itself need none: they have
 * digests of their own.
 */
import { openArchive } from "./archive.js";
import { asUtf8, base64Runs, decodedBase64, escapedParts, unescaped } from "./spellings.js";

/** `inner`: a file in an archive, or "". `line` returns the file's line that a place is in; null in a binary file. */
type Reading = { readonly bytes: Buffer; readonly inner: string; readonly line: (at: number) => number | null };

/** Called with the reason for content that cannot be read. */
type Refuse = (why: string) => void;

/** Base64 in base64, as a pull secret in a manifest that was encoded again, and escapes in it. */
const deepest = 4;

export function* decodings(file: Buffer, refuse: Refuse, depth = 0): Generator<Reading> {
  const text = asUtf8(file);
  const bytes = text ?? file;
  const isText = text !== null || !file.subarray(0, 8_000).includes(0);
  const line = isText ? lineCounter(bytes) : () => null;
  yield { bytes, inner: "", line };
  if (depth >= deepest) return;
  yield* encoded(bytes, line, refuse, depth + 1);
  yield* archived(bytes, refuse, depth);
}

function* encoded(bytes: Buffer, line: Reading["line"], refuse: Refuse, depth: number): Generator<Reading> {
  for (const { from, to, isWrapped } of base64Runs(bytes)) {
    const run = bytes.toString("latin1", from, to);
    const joined = isWrapped ? run.replace(/[^A-Za-z0-9+/_-]+/g, "") : run;
    if (isWrapped) yield { bytes: Buffer.from(joined, "latin1"), inner: "", line: () => line(from) };
    const decoded = decodedBase64(joined);
    if (decoded !== null) yield* at(line, from, decodings(decoded, refuse, depth));
  }
  for (const { from, to } of escapedParts(bytes)) {
    for (const other of unescaped(bytes.subarray(from, to))) yield* at(line, from, decodings(other, refuse, depth));
  }
}

function* archived(bytes: Buffer, refuse: Refuse, depth: number): Generator<Reading> {
  const opened = openArchive(bytes);
  if (typeof opened === "string") refuse(opened);
  if (opened === null || typeof opened === "string") return;
  for (const { name, content } of opened) {
    const found = content();
    if (typeof found === "string") refuse(found);
    else
      for (const reading of decodings(found, refuse, depth + 1))
        yield { ...reading, inner: [name, reading.inner].filter(Boolean).join("/") };
  }
}

/** Yields readings of a part of a file, all on the line where it begins. */
function* at(line: Reading["line"], from: number, readings: Iterable<Reading>): Generator<Reading> {
  for (const { bytes, inner } of readings) yield { bytes, inner, line: () => line(from) };
}

/** Places are asked for in ascending order, or again from the start. */
function lineCounter(bytes: Buffer): (at: number) => number {
  let [counted, line] = [0, 1];
  return (at) => {
    if (at < counted) [counted, line] = [0, 1];
    for (let next = bytes.indexOf(0x0a, counted); next >= 0 && next < at; next = bytes.indexOf(0x0a, counted)) {
      counted = next + 1;
      line++;
    }
    return line;
  };
}
