/**
 * Reader of an audit log's lines and groups, see `format.ts`: the one place that finds where a line and a group end, for a file
 * that is read from its beginning, from its end, or from anywhere.
 */
import { type Bytes, lineSequenceNumber, parseChainLine } from "./format.js";

/** A whole line, without its line feed. */
type Line = {
  readonly text: string;
  /** Offset of its first byte, and of the next line's. */
  readonly start: number;
  readonly next: number;
};

/** Yields the whole lines of `bytes`, the first of which begins at `start`. */
export function* linesIn(bytes: Uint8Array, start = 0): Generator<Line, void> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  let next = start;
  for (let at = buffer.indexOf(10, next); at >= 0; at = buffer.indexOf(10, next)) {
    yield { text: buffer.toString("utf8", next, at), start: next, next: at + 1 };
    next = at + 1;
  }
}

/** A whole group. */
type ReadGroup = {
  /** All its bytes but the last line. */
  readonly content: Bytes;
  /** The chain's value that its last line claims. */
  readonly chain: string;
  /** Number of the last record up to its end; 0 when none was read. */
  readonly seq: number;
  /** Offset of the next group. */
  readonly next: number;
};

/** Yields the whole groups of `bytes`, the first of which begins at `start`. */
export function* groupsIn(bytes: Bytes, start = 0): Generator<ReadGroup, void> {
  let [begin, seq] = [start, 0];
  for (const line of linesIn(bytes, start)) {
    const chain = parseChainLine(line.text);
    if (chain === null) seq = lineSequenceNumber(line.text) ?? seq;
    else {
      yield { content: bytes.subarray(begin, line.start), chain, seq, next: line.next };
      begin = line.next;
    }
  }
}
