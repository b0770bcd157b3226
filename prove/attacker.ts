/**
 * The attacker's scan, which knows no secret: every 32 bytes of memory that could be a key are tried on the header, as the
 * master key and as a KEK, and so is every expanded AES-256 key, which is found by the relation between its words.
 */
import { encryptBlock, expandKey, findSchedules, inOrder, scheduleWords, type WordOrder } from "./aes.js";
import { type Header, slotUse } from "./format.js";
import type { MemoryCopy } from "./memory.js";
import { HmacLanes, type Lanes, type Message } from "./sha256-lanes.js";

/** Random 32 bytes have fewer distinct values once in 60,000 keys. */
const fewestDistinct = 22;
const keyBytes = 32;
const stride = 8;
const laneCount = 4;

/** Where a key is, and what it opens. */
export type Place = { readonly address: number; readonly opens: "header" | "slot" };

/** `tried`: candidates; `schedules`: expanded AES-256 keys of any kind, those of TLS connections included. */
export type AttackResult = { readonly places: readonly Place[]; readonly tried: number; readonly schedules: number };

export type OnProgress = (done: number, total: number) => void;

/** Tries all of a copy. A header of version 1 has no check of the master key: only KEKs are then tried. */
export function attack(
  header: Header,
  { bytes, regions }: MemoryCopy,
  onProgress: OnProgress = () => {},
): AttackResult {
  const trial = new KeyTrial(header);
  let schedules = 0;
  let done = 0;
  const total = regions.reduce((sum, { length }) => sum + length, 0);
  try {
    for (const { address, offset, length } of regions) {
      const words = asUint32Words(bytes, offset, length);
      findSchedules(words, (at, order) => {
        schedules++;
        trial.add(words, at, address + 4 * at, order);
      });
      forEachCandidate(bytes.subarray(offset, offset + length), (at) => {
        trial.add(words, at / 4, address + at, "bytes");
        if ((at & 0xfffff) === 0) onProgress(done + at, total);
      });
      done += length;
      onProgress(done, total);
    }
    return { places: trial.end(), tried: trial.tried, schedules };
  } finally {
    trial.wipe();
  }
}

/** Segments of a dump need not begin at a multiple of four bytes. */
function asUint32Words(bytes: Uint8Array<ArrayBuffer>, offset: number, length: number): Uint32Array {
  const at = bytes.byteOffset + offset;
  const count = length >>> 2;
  return at % 4 === 0
    ? new Uint32Array(bytes.buffer, at, count)
    : new Uint32Array(bytes.slice(offset, offset + 4 * count).buffer);
}

/** Calls `found` for each aligned 32 bytes with enough distinct values. Counts them in a window that moves by 8 bytes. */
function forEachCandidate(bytes: Uint8Array, found: (at: number) => void): void {
  const window = new DistinctCount();
  for (let end = 0; end + stride <= bytes.length; ) {
    for (const next = end + stride; end < next; end++) {
      window.add(bytes[end] ?? 0);
      if (end >= keyBytes) window.remove(bytes[end - keyBytes] ?? 0);
    }
    if (window.distinct >= fewestDistinct && end >= keyBytes) found(end - keyBytes);
  }
}

/** Counts the distinct values of a few bytes. */
class DistinctCount {
  distinct = 0;
  readonly #counts = new Uint8Array(256);

  add(byte: number): void {
    const before = this.#counts[byte] ?? 0;
    this.#counts[byte] = before + 1;
    if (before === 0) this.distinct++;
  }

  remove(byte: number): void {
    const left = (this.#counts[byte] ?? 0) - 1;
    this.#counts[byte] = left;
    if (left === 0) this.distinct--;
  }
}

/** Collects candidates and tries four at a time. */
class KeyTrial {
  tried = 0;
  readonly #header: Header;
  readonly #lanes: HmacLanes;
  readonly #signed: Message;
  readonly #slotUse: Message;
  readonly #slots: readonly { readonly covered: Message; readonly check: readonly number[] }[];
  readonly #mac: readonly number[];
  readonly #keys: Lanes = new Uint32Array(8 * laneCount);
  readonly #derived: Lanes = new Uint32Array(8 * laneCount);
  readonly #addresses = new Float64Array(laneCount);
  #filled = 0;
  readonly #found = new Map<number, Place>();

  constructor(header: Header) {
    const covered = header.slots.map(({ checked }) => {
      return header.version === 1 ? checked : Buffer.concat([header.vaultId, checked]);
    });
    const length = [header.signed, ...covered].reduce((sum, message) => sum + message.length + 128, 256);
    this.#header = header;
    this.#lanes = new HmacLanes(length);
    this.#signed = this.#lanes.message(header.signed);
    this.#slotUse = this.#lanes.message(Buffer.from(slotUse(header.version)));
    this.#slots = header.slots.map(({ check }, i) => {
      return { covered: this.#lanes.message(covered[i] ?? Buffer.alloc(0)), check: bigEndianWords(check) };
    });
    this.#mac = bigEndianWords(header.mac);
  }

  /** `at`: index of the key's first word. */
  add(words: Uint32Array, at: number, address: number, order: WordOrder): void {
    const [keys, lane] = [this.#keys, this.#filled];
    for (let i = 0; i < 8; i++) keys[4 * i + lane] = inOrder(words[at + i] ?? 0, order);
    this.#addresses[lane] = address;
    this.#filled = lane + 1;
    if (this.#filled === laneCount) this.#try();
  }

  /** Tries what is left, and returns the places in order. */
  end(): Place[] {
    if (this.#filled > 0) this.#try();
    return [...this.#found.values()].sort((a, b) => a.address - b.address);
  }

  wipe(): void {
    for (const words of [this.#keys, this.#derived, schedule, block, mask]) words.fill(0);
    this.#lanes.wipe();
  }

  #try(): void {
    this.tried += this.#filled;
    if (this.#header.version === 2) {
      for (let lane = 0; lane < this.#filled; lane++) deriveHeaderKey(this.#keys, this.#derived, lane);
      this.#compare(this.#signed, this.#mac, "header");
    }
    const slotKeys = this.#derived;
    this.#lanes.hmac(this.#keys, this.#slotUse, slotKeys);
    const kept = this.#slots.length > 1 ? slotKeys.slice() : slotKeys;
    for (const { covered, check } of this.#slots) {
      if (kept !== slotKeys) slotKeys.set(kept);
      this.#compare(covered, check, "slot");
    }
    this.#filled = 0;
  }

  /** Compares the HMACs under the derived keys with the expected one. */
  #compare(message: Message, expected: readonly number[], opens: Place["opens"]): void {
    this.#lanes.hmac(this.#derived, message, this.#derived);
    const first = expected[0];
    for (let lane = 0; lane < this.#filled; lane++) {
      if (this.#derived[lane] !== first) continue;
      const address = this.#addresses[lane] ?? 0;
      if (expected.every((word, i) => this.#derived[4 * i + lane] === word))
        this.#found.set(address, { address, opens });
    }
  }
}

function bigEndianWords(bytes: Buffer): number[] {
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readUInt32BE(4 * i));
}

const schedule = new Uint32Array(scheduleWords);
const block = new Uint32Array(4);
const mask = new Uint32Array(4);
const use = bigEndianWords(Buffer.from("header check"));

/** K("header check") of docs/on-disk.md, of one lane. */
function deriveHeaderKey(keys: Lanes, derived: Lanes, lane: number): void {
  for (let i = 0; i < 8; i++) schedule[i] = keys[4 * i + lane] ?? 0;
  expandKey(schedule);
  encryptBlock(schedule, mask.fill(0));
  double(mask);
  for (let counter = 1; counter <= 2; counter++) {
    block[0] = (mask[0] ?? 0) ^ ((counter << 16) | 0x4b00);
    for (let i = 1; i < 4; i++) block[i] = (mask[i] ?? 0) ^ (use[i - 1] ?? 0);
    encryptBlock(schedule, block);
    for (let i = 0; i < 4; i++) derived[4 * (4 * (counter - 1) + i) + lane] = block[i] ?? 0;
  }
}

/** Times x in GF(2^128), as in CMAC. */
function double(words: Uint32Array): void {
  const [a = 0, b = 0, c = 0, d = 0] = words;
  words[0] = (a << 1) | (b >>> 31);
  words[1] = (b << 1) | (c >>> 31);
  words[2] = (c << 1) | (d >>> 31);
  words[3] = (d << 1) ^ (a >>> 31 ? 0x87 : 0);
}
