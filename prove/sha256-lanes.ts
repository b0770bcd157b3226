/**
 * HMAC-SHA-256 of four keys at once over the same message, as WebAssembly with vectors of four 32-bit lanes (FIPS 180-4,
 * RFC 2104). The attacker's scan tries millions of keys: with Node's HMAC, 200 MiB of ciphertext in memory take minutes.
 * The module is assembled here, instruction by instruction, since it is the two loops of the standard and no more.
 */

const roundConstants = firstPrimes(64).map((prime) => fraction(Math.cbrt(prime)));
const initialState = firstPrimes(8).map((prime) => fraction(Math.sqrt(prime)));

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}

/** The first 32 bits behind the binary point, which doubles hold exactly for these. */
function fraction(root: number): number {
  return ((root % 1) * 2 ** 32) >>> 0;
}

/** WebAssembly's binary format: a few instructions as bytes. */
const get = (local: number) => [0x20, ...leb(local)];
const set = (local: number) => [0x21, ...leb(local)];
const constant = (value: number) => [0x41, ...leb(value)];
const vector = (instruction: number) => [0xfd, ...leb(instruction)];
const load = (offset: number) => [...vector(0x00), 4, ...leb(offset)];
const store = (offset: number) => [...vector(0x0b), 4, ...leb(offset)];
const [and, xor, shl, shr, add, splat] = [0x4e, 0x51, 0xab, 0xad, 0xae, 0x11].map(vector) as [
  number[],
  number[],
  number[],
  number[],
  number[],
  number[],
];

function leb(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)];
}

/** As `leb`, signed, of any 32 bits. */
function signedLeb(value: number): number[] {
  const rest = value >> 7;
  const isLast = (rest === 0 && (value & 64) === 0) || (rest === -1 && (value & 64) !== 0);
  return isLast ? [value & 127] : [(value & 127) | 128, ...signedLeb(rest)];
}

function rotated(local: number, bits: number): number[] {
  return [...get(local), ...constant(bits), ...shr, ...get(local), ...constant(32 - bits), ...shl, ...xor];
}

/** Xor of three rotations; a negative one is a shift. */
function sigma(local: number, a: number, b: number, c: number): number[] {
  const last = c > 0 ? rotated(local, c) : [...get(local), ...constant(-c), ...shr];
  return [...rotated(local, a), ...rotated(local, b), ...xor, ...last, ...xor];
}

const word = (i: number) => i * 16;

/** expand(words): computes the words 16 to 63 of the message schedule. */
function expandBody(): number[] {
  const [words, x] = [0, 1];
  return Array.from({ length: 48 }, (_, i) => [
    ...get(words),
    ...[...get(words), ...load(word(i + 1)), ...set(x), ...sigma(x, 7, 18, -3)],
    ...[...get(words), ...load(word(i + 14)), ...set(x), ...sigma(x, 17, 19, -10), ...add],
    ...[...get(words), ...load(word(i)), ...add, ...get(words), ...load(word(i + 9)), ...add],
    ...store(word(i + 16)),
  ]).flat();
}

/** compress(state, words): 64 rounds, then adds the result to the state. */
function compressBody(): number[] {
  const [state, words, first, sum] = [0, 1, 2, 10];
  const code: number[] = [];
  for (let i = 0; i < 8; i++) code.push(...get(state), ...load(word(i)), ...set(first + i));
  for (let round = 0; round < 64; round++) {
    const [a, b, c, d, e, f, g, h] = Array.from({ length: 8 }, (_, i) => first + ((i - round + 64) & 7)) as Eight;
    const k = roundConstants[round] ?? 0;
    const choice = [...get(f), ...get(g), ...xor, ...get(e), ...and, ...get(g), ...xor];
    const majority = [...get(a), ...get(b), ...xor, ...get(b), ...get(c), ...xor, ...and, ...get(b), ...xor];
    code.push(...get(h), ...sigma(e, 6, 11, 25), ...add, ...choice, ...add);
    code.push(0x41, ...signedLeb(k | 0), ...splat, ...add, ...get(words), ...load(word(round)), ...add, ...set(sum));
    code.push(...get(d), ...get(sum), ...add, ...set(d));
    code.push(...get(sum), ...sigma(a, 2, 13, 22), ...add, ...majority, ...add, ...set(h));
  }
  for (let i = 0; i < 8; i++) {
    code.push(...get(state), ...get(state), ...load(word(i)), ...get(first + i), ...add, ...store(word(i)));
  }
  return code;
}

type Eight = [number, number, number, number, number, number, number, number];

function moduleBytes(pages: number): Uint8Array<ArrayBuffer> {
  const section = (id: number, content: readonly number[]) => [id, ...leb(content.length), ...content];
  const body = (vectors: number, code: readonly number[]) => {
    const locals = [1, ...leb(vectors), 0x7b];
    return [...leb(locals.length + code.length + 1), ...locals, ...code, 0x0b];
  };
  const name = (text: string) => [text.length, ...Buffer.from(text)];
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [2, 0x60, 1, 0x7f, 0, 0x60, 2, 0x7f, 0x7f, 0]),
    ...section(3, [2, 0, 1]),
    ...section(5, [1, 0, ...leb(pages)]),
    ...section(7, [3, ...name("memory"), 2, 0, ...name("expand"), 0, 0, ...name("compress"), 0, 1]),
    ...section(10, [2, ...body(1, expandBody()), ...body(9, compressBody())]),
  ]);
}

/** The part of WebAssembly's interface that Node's types lack. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
  }
  class Instance {
    constructor(module: Module);
    readonly exports: unknown;
  }
}

type Exports = {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly expand: (words: number) => void;
  readonly compress: (state: number, words: number) => void;
};

/** A message whose schedule is computed once; `blocks` are places in the memory. */
export type Message = { readonly blocks: readonly number[] };

/** Words of four keys or digests: word i of lane j is at 4·i + j. */
export type Lanes = Uint32Array;

/** Places in the memory, in bytes: the state, and three blocks of which only the first eight words change. */
const [stateAt, innerAt, outerAt, digestAt, messagesAt] = [0, 1024, 2048, 3072, 4096];
const lanesInWord = 4;

export class HmacLanes {
  readonly #words: Uint32Array;
  readonly #expand: Exports["expand"];
  readonly #compress: Exports["compress"];
  readonly #start = new Uint32Array(32);
  #end = messagesAt;

  /** @param messageBytes - how long all messages may be together */
  constructor(messageBytes: number) {
    const module = new WebAssembly.Module(moduleBytes(pagesFor(messageBytes)));
    const { memory, expand, compress } = new WebAssembly.Instance(module).exports as Exports;
    this.#words = new Uint32Array(memory.buffer);
    this.#expand = expand;
    this.#compress = compress;
    for (const [i, word] of initialState.entries()) this.#start.fill(word, 4 * i, 4 * i + 4);
    this.#words.fill(0x36363636, innerAt / 4 + 32, innerAt / 4 + 64);
    this.#words.fill(0x5c5c5c5c, outerAt / 4 + 32, outerAt / 4 + 64);
    this.#setWord(digestAt, 8, 0x80000000);
    this.#setWord(digestAt, 15, (64 + 32) * 8);
  }

  #setWord(block: number, i: number, word: number): void {
    const at = block / 4 + lanesInWord * i;
    this.#words.fill(word, at, at + lanesInWord);
  }

  /** Prepares a message, which follows the 64 bytes of a padded key. */
  message(bytes: Uint8Array): Message {
    const padded = Buffer.alloc(Math.ceil((bytes.length + 9) / 64) * 64);
    padded.set(bytes);
    padded[bytes.length] = 0x80;
    padded.writeUInt32BE((64 + bytes.length) * 8, padded.length - 4);
    const blocks: number[] = [];
    for (let at = 0; at < padded.length; at += 64) {
      for (let i = 0; i < 16; i++) this.#setWord(this.#end, i, padded.readUInt32BE(at + 4 * i));
      this.#expand(this.#end);
      blocks.push(this.#end);
      this.#end += 1024;
    }
    return { blocks };
  }

  /** Writes the HMACs of a message under four keys of 32 bytes. `target` may be `keys`. */
  hmac(keys: Lanes, { blocks }: Message, target: Lanes): void {
    const words = this.#words;
    this.#begin(keys, innerAt, 0x36363636);
    for (let i = 0; i < blocks.length; i++) this.#compress(stateAt, blocks[i] ?? 0);
    for (let i = 0; i < 32; i++) words[digestAt / 4 + i] = words[stateAt / 4 + i] ?? 0;
    this.#expand(digestAt);
    this.#begin(keys, outerAt, 0x5c5c5c5c);
    this.#compress(stateAt, digestAt);
    for (let i = 0; i < 32; i++) target[i] = words[stateAt / 4 + i] ?? 0;
  }

  /** Compresses the block of the padded keys. */
  #begin(keys: Lanes, block: number, pad: number): void {
    const words = this.#words;
    for (let i = 0; i < 32; i++) {
      words[block / 4 + i] = (keys[i] ?? 0) ^ pad;
      words[stateAt / 4 + i] = this.#start[i] ?? 0;
    }
    this.#expand(block);
    this.#compress(stateAt, block);
  }

  wipe(): void {
    this.#words.fill(0);
  }
}

/** Each block of 64 bytes takes 1 KiB as 64 words of four lanes. */
function pagesFor(messageBytes: number): number {
  return Math.ceil((messagesAt + messageBytes * 16 + 64 * 1024) / 65_536);
}
