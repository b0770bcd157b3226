/** Groups of records: numbers the records, continues the chain, and begins a new file where one is full. */
import { type Bytes, base64url, chainLine, chainLineBytes, fileNameOf, headerLine, nextChain } from "./audit-format.js";

/** Where the next group goes. `length`: bytes in the file; 0: no first line yet. `seq`: number of the next record. */
export type LogPosition = {
  readonly log: string;
  readonly file: number;
  readonly length: number;
  readonly seq: number;
  readonly chain: Bytes;
};

export type Group = {
  readonly fileName: string;
  readonly file: number;
  /** Where in the file it begins. */
  readonly at: number;
  readonly bytes: Bytes;
  readonly records: number;
  /** Number of its last record. */
  readonly seq: number;
  readonly chain: string;
  /** Whether it is synced to the disk at once. */
  readonly durable: boolean;
};

type GroupOptions = {
  /** The group goes into the current file, even if that is full. */
  readonly stays?: boolean;
  readonly durable?: boolean;
};

export class GroupMaker {
  #position: LogPosition;
  readonly #maxFileBytes: number;

  constructor(position: LogPosition, maxFileBytes: number) {
    this.#position = position;
    this.#maxFileBytes = maxFileBytes;
  }

  get position(): LogPosition {
    return this.#position;
  }

  /** The next group begins a new file, unless it stays. */
  get isFull(): boolean {
    return this.#position.length >= this.#maxFileBytes;
  }

  /** `records`: the text of each behind its `seq`, with a line feed. */
  make(records: readonly string[], { stays = false, durable = false }: GroupOptions = {}): Group {
    const before = this.isFull && !stays ? nextFile(this.#position) : this.#position;
    const { log, file, length, chain } = before;
    const header = length === 0 ? headerLine({ file, log, seq: before.seq, chain: base64url(chain) }) : "";
    const content = header + records.map((text, i) => `{"seq":${before.seq + i}${text}`).join("");
    const size = Buffer.byteLength(content);
    const bytes = new Uint8Array(new ArrayBuffer(size + chainLineBytes));
    const buffer = Buffer.from(bytes.buffer);
    buffer.write(content);
    const after = nextChain(chain, bytes.subarray(0, size));
    buffer.write(chainLine(after), size, "latin1");
    const seq = before.seq + records.length;
    this.#position = { log, file, length: length + bytes.length, seq, chain: after };
    const place = { fileName: fileNameOf(file), file, at: length };
    return { ...place, bytes, records: records.length, seq: seq - 1, chain: base64url(after), durable };
  }
}

function nextFile(position: LogPosition): LogPosition {
  return { ...position, file: position.file + 1, length: 0 };
}
