/** Data types of the SSH protocols (RFC 4251 section 5): strings, numbers and mpints, read and written. */

/** Thrown where a message is shorter than it says, or has another form. */
export class MalformedMessage extends Error {}

export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** @throws MalformedMessage */
  byte(): number {
    return this.#take(1).readUInt8();
  }

  /** @throws MalformedMessage */
  uint32(): number {
    return this.#take(4).readUInt32BE();
  }

  /** Returns a view of a string's bytes. @throws MalformedMessage */
  bytes(): Buffer {
    return this.#take(this.uint32());
  }

  /** @throws MalformedMessage */
  text(): string {
    return this.bytes().toString("utf8");
  }

  rest(): Buffer {
    return this.#take(this.#bytes.length - this.#at);
  }

  #take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new MalformedMessage();
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A string, of text as UTF-8. */
export function string(value: Uint8Array | string): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.concat([uint32(bytes.length), bytes]);
}

/** A positive number, of its big-endian digits. */
export function mpint(digits: Uint8Array): Buffer {
  const start = digits.findIndex((byte) => byte !== 0);
  const shortest = start < 0 ? digits.subarray(digits.length) : digits.subarray(start);
  const isHigh = (shortest[0] ?? 0) > 0x7f;
  return string(isHigh ? Buffer.concat([Buffer.of(0), shortest]) : shortest);
}
