/**
 * D-Bus messages as bytes (D-Bus specification, "Type System" and "Message Protocol"). Arrays of bytes are views of the message
 * that they came in, so that a secret never becomes a string and goes when the message is wiped.
 *
 *   y n q i u d  number      b  boolean     s o g  string     v  Variant
 *   x t          bigint      ay Uint8Array  a      array, of which the entries of a dictionary are pairs      (…)  array
 */
import { isUtf8 } from "node:buffer";

export type Value = number | bigint | boolean | string | Uint8Array | Variant | readonly Value[];

export class Variant {
  readonly signature: string;
  readonly value: Value;

  constructor(signature: string, value: Value) {
    this.signature = signature;
    this.value = value;
  }
}

/** Bytes that are no message: their sender is dropped. */
export class MalformedMessage extends Error {}

/** Name and object of the bus itself. */
export const [busName, busPath] = ["org.freedesktop.DBus", "/org/freedesktop/DBus"];

export const messageTypes = { call: 1, reply: 2, error: 3, signal: 4 } as const;
export const noReplyExpected = 1;

export type Message = {
  readonly type: number;
  readonly flags: number;
  readonly serial: number;
  readonly path?: string;
  readonly interface?: string;
  readonly member?: string;
  readonly errorName?: string;
  readonly replySerial?: number;
  readonly destination?: string;
  readonly sender?: string;
  readonly signature: string;
  readonly body: readonly Value[];
};

/** The header's fields by their numbers, with their types; of a file descriptor's there can be none. */
const fields = [
  [1, "path", "o"],
  [2, "interface", "s"],
  [3, "member", "s"],
  [4, "errorName", "s"],
  [5, "replySerial", "u"],
  [6, "destination", "s"],
  [7, "sender", "s"],
  [8, "signature", "g"],
] as const;
const descriptorsField = 9;

/** Fields that a message of each type must have. */
const required: Readonly<Record<number, readonly (keyof Message)[]>> = {
  1: ["path", "member"],
  2: ["replySerial"],
  3: ["errorName", "replySerial"],
  4: ["path", "interface", "member"],
};

/** Length of the part of a header that says how long the message is. */
export const prefixBytes = 16;
const mostFieldBytes = 2 ** 16;
const mostArrayBytes = 2 ** 26;
const mostDepth = 64;
const littleEndian = 0x6c;
const bigEndian = 0x42;

/** Returns the length of the message that begins so. @throws MalformedMessage for one of more than `most` bytes */
export function messageLength(prefix: Uint8Array, most: number): number {
  if (prefix[0] !== littleEndian && prefix[0] !== bigEndian) throw new MalformedMessage();
  if (prefix[3] !== 1) throw new MalformedMessage();
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefixBytes);
  const isLittle = prefix[0] === littleEndian;
  const fieldBytes = view.getUint32(12, isLittle);
  const length = prefixBytes + aligned(fieldBytes, 8) + view.getUint32(4, isLittle);
  if (fieldBytes > mostFieldBytes || length > most) throw new MalformedMessage();
  return length;
}

function aligned(at: number, to: number): number {
  return Math.ceil(at / to) * to;
}

/** Reads a whole message. @throws MalformedMessage */
export function readMessage(bytes: Uint8Array): Message {
  const reader = new Reader(bytes);
  const head = reader.all("yyyyuua(yv)");
  const [type, flags, serial] = [head[1], head[2], head[5]].map(Number) as [number, number, number];
  const listed = head[6] as readonly (readonly [number, Variant])[];
  reader.align(8);
  const found = namedFields(listed);
  const { signature = "", ...named } = found;
  if (serial === 0 || type === 0 || required[type]?.some((name) => found[name] === undefined)) {
    throw new MalformedMessage();
  }
  const body = reader.all(signature);
  if (!reader.isAtEnd) throw new MalformedMessage();
  return { ...named, type, flags, serial, signature, body };
}

/** @throws MalformedMessage */
function namedFields(listed: readonly (readonly [number, Variant])[]): Partial<Message> {
  const found: Record<string, Value> = {};
  for (const [code, variant] of listed) {
    if (code === descriptorsField && variant.value !== 0) throw new MalformedMessage();
    const field = fields.find(([known]) => known === code);
    if (field === undefined) continue;
    if (variant.signature !== field[2]) throw new MalformedMessage();
    found[field[1]] = variant.value;
  }
  return found as Partial<Message>;
}

/** Returns the message in memory of its own, which the caller wipes. */
export function writeMessage(message: Message): Uint8Array<ArrayBuffer> {
  const { type, flags, serial, signature, body } = message;
  const content = new Writer();
  const whole = new Writer();
  try {
    content.all(signature, body);
    const listed = fields.flatMap(([code, name, type]): Value[] => {
      const value = message[name];
      return value === undefined || value === "" ? [] : [[code, new Variant(type, value)]];
    });
    whole.all("yyyyuua(yv)", [littleEndian, type, flags, 1, content.length, serial, listed]);
    whole.align(8);
    whole.put(content.bytes());
    return whole.bytes();
  } finally {
    content.wipe();
  }
}

/** Alignment of the types, by their first letters. */
const alignments: Readonly<Record<string, number>> = {
  ...{ y: 1, b: 4, n: 2, q: 2, i: 4, u: 4, x: 8, t: 8, d: 8, s: 4, o: 4, g: 1, v: 1 },
  ...{ a: 4, "(": 8, "{": 8 },
};

/** Types of a known signature, so that each is split once. Signatures come from clients: there are not many. */
const known = new Map<string, readonly string[]>();
const mostKnown = 256;

/** Splits a signature into its complete types. @throws MalformedMessage */
export function typesIn(signature: string): readonly string[] {
  const found = known.get(signature);
  if (found !== undefined) return found;
  if (signature.length > 255) throw new MalformedMessage();
  const types: string[] = [];
  for (let at = 0; at < signature.length; at += types.at(-1)?.length ?? 0) {
    types.push(signature.slice(at, endOfType(signature, at, { arrays: 0, structs: 0 })));
  }
  if (known.size < mostKnown) known.set(signature, types);
  return types;
}

type Depth = { readonly arrays: number; readonly structs: number };

function endOfType(signature: string, at: number, depth: Depth): number {
  const { arrays, structs } = depth;
  const letter = signature[at] ?? "";
  if (arrays > 32 || structs > 32) throw new MalformedMessage();
  if (letter === "a" && signature[at + 1] === "{")
    return endOfEntry(signature, at + 2, { arrays: arrays + 1, structs });
  if (letter === "a") return endOfType(signature, at + 1, { arrays: arrays + 1, structs });
  if (letter !== "(") {
    if (letter === "" || !"ybnqiuxtdsogv".includes(letter)) throw new MalformedMessage();
    return at + 1;
  }
  let end = at + 1;
  while (signature[end] !== ")") end = endOfType(signature, end, { arrays, structs: structs + 1 });
  if (end === at + 1) throw new MalformedMessage();
  return end + 1;
}

/** A dictionary's entry has a basic type and another one. */
function endOfEntry(signature: string, at: number, { arrays, structs }: Depth): number {
  if (!"ybnqiuxtdsog".includes(signature[at] ?? " ")) throw new MalformedMessage();
  const end = endOfType(signature, at + 1, { arrays, structs: structs + 1 });
  if (signature[end] !== "}") throw new MalformedMessage();
  return end + 1;
}

const objectPath = /^\/(?:[A-Za-z0-9_]+(?:\/[A-Za-z0-9_]+)*)?$/;

class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #little: boolean;
  #at = 0;
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#little = bytes[0] === littleEndian;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Skips padding, which is zero. */
  align(to: number): void {
    const start = this.#take(aligned(this.#at, to) - this.#at);
    for (let at = start; at < this.#at; at++) if (this.#bytes[at] !== 0) throw new MalformedMessage();
  }

  all(signature: string): Value[] {
    return typesIn(signature).map((type) => this.#value(type));
  }

  #value(type: string): Value {
    const letter = type[0] ?? "";
    this.align(alignments[letter] ?? 1);
    if (letter === "v") return this.#variant();
    if (letter === "a") return this.#array(type.slice(1));
    if (letter === "(" || letter === "{") return this.all(type.slice(1, -1));
    if (letter === "s" || letter === "o") return this.#text(letter, this.#view.getUint32(this.#take(4), this.#little));
    if (letter === "g") return this.#text(letter, this.#bytes[this.#take(1)] ?? 0);
    return this.#number(letter);
  }

  #number(letter: string): Value {
    const [view, little] = [this.#view, this.#little];
    if (letter === "y") return view.getUint8(this.#take(1));
    if (letter === "n") return view.getInt16(this.#take(2), little);
    if (letter === "q") return view.getUint16(this.#take(2), little);
    if (letter === "i") return view.getInt32(this.#take(4), little);
    if (letter === "x") return view.getBigInt64(this.#take(8), little);
    if (letter === "t") return view.getBigUint64(this.#take(8), little);
    if (letter === "d") return view.getFloat64(this.#take(8), little);
    const number = view.getUint32(this.#take(4), little);
    if (letter === "u") return number;
    if (number > 1) throw new MalformedMessage();
    return number === 1;
  }

  #text(letter: string, length: number): string {
    const start = this.#take(length + 1);
    const bytes = this.#bytes.subarray(start, start + length);
    if (this.#bytes[start + length] !== 0 || bytes.includes(0) || !isUtf8(bytes)) throw new MalformedMessage();
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, length).toString("utf8");
    if (letter === "o" && !objectPath.test(text)) throw new MalformedMessage();
    if (letter === "g") typesIn(text);
    return text;
  }

  #variant(): Variant {
    const signature = this.#text("g", this.#bytes[this.#take(1)] ?? 0);
    const [type, another] = typesIn(signature);
    if (type === undefined || another !== undefined || ++this.#depth > mostDepth) throw new MalformedMessage();
    const value = this.#value(type);
    this.#depth--;
    return new Variant(signature, value);
  }

  #array(element: string): Value {
    const length = this.#view.getUint32(this.#take(4), this.#little);
    if (length > mostArrayBytes) throw new MalformedMessage();
    this.align(alignments[element[0] ?? ""] ?? 1);
    const start = this.#at;
    if (element === "y") return this.#bytes.subarray(start, this.#take(length) + length);
    const values: Value[] = [];
    while (this.#at < start + length) values.push(this.#value(element));
    if (this.#at !== start + length) throw new MalformedMessage();
    return values;
  }

  /** Returns where the bytes begin. */
  #take(length: number): number {
    const start = this.#at;
    if (start + length > this.#bytes.length) throw new MalformedMessage();
    this.#at += length;
    return start;
  }
}

class Writer {
  #held = own(256);
  #view = new DataView(this.#held.buffer);
  #at = 0;

  get length(): number {
    return this.#at;
  }

  /** Returns a view of what was written. */
  bytes(): Uint8Array<ArrayBuffer> {
    return this.#held.subarray(0, this.#at);
  }

  wipe(): void {
    this.#held.fill(0);
  }

  align(to: number): void {
    this.#room(aligned(this.#at, to) - this.#at);
  }

  put(bytes: Uint8Array): void {
    const start = this.#room(bytes.length); // first, since the memory may be another one then
    this.#held.set(bytes, start);
  }

  all(signature: string, values: readonly Value[]): void {
    const types = typesIn(signature);
    if (types.length !== values.length) throw new TypeError(`${values.length} values for ${signature}`);
    for (const [i, type] of types.entries()) this.#value(type, values[i] ?? 0);
  }

  #value(type: string, value: Value): void {
    const letter = type[0] ?? "";
    this.align(alignments[letter] ?? 1);
    if (value instanceof Variant) {
      this.#text(value.signature, true);
      this.#value(value.signature, value.value);
    } else if (letter === "a") this.#array(type.slice(1), value as readonly Value[] | Uint8Array);
    else if (letter === "(" || letter === "{") this.all(type.slice(1, -1), value as readonly Value[]);
    else if (typeof value === "string") this.#text(value, letter === "g");
    else this.#number(letter, value as number | bigint | boolean);
  }

  #number(letter: string, value: number | bigint | boolean): void {
    if (letter === "y") this.#set(1, (at) => this.#view.setUint8(at, Number(value)));
    else if (letter === "n" || letter === "q") this.#set(2, (at) => this.#view.setUint16(at, Number(value), true));
    else if (letter === "x" || letter === "t") this.#set(8, (at) => this.#view.setBigUint64(at, BigInt(value), true));
    else if (letter === "d") this.#set(8, (at) => this.#view.setFloat64(at, Number(value), true));
    else this.#set(4, (at) => this.#view.setUint32(at, Number(value), true));
  }

  /** Makes room first: the view is another one then. */
  #set(length: number, set: (at: number) => void): void {
    set(this.#room(length));
  }

  #text(text: string, isSignature: boolean): void {
    const bytes = Buffer.from(text);
    this.#number(isSignature ? "y" : "u", bytes.length);
    this.put(bytes);
    this.#room(1);
  }

  #array(element: string, values: readonly Value[] | Uint8Array): void {
    const lengthAt = this.#room(4);
    this.align(alignments[element[0] ?? ""] ?? 1);
    const start = this.#at;
    if (values instanceof Uint8Array) this.put(values);
    else for (const value of values) this.#value(element, value);
    this.#view.setUint32(lengthAt, this.#at - start, true);
  }

  /** Returns where the next bytes go, which are zero. */
  #room(length: number): number {
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#held.length) {
      const larger = own(2 * this.#at);
      larger.set(this.#held);
      this.#held.fill(0);
      this.#held = larger;
      this.#view = new DataView(larger.buffer);
    }
    return start;
  }
}

/** Returns a copy that the caller wipes. */
export function ownCopy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copied = own(bytes.length);
  copied.set(bytes);
  return copied;
}

/** An explicit ArrayBuffer never moves: wiping reaches the only copy. */
export function own(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new ArrayBuffer(length));
}
