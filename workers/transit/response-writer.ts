/** JSON of a response as it is written, in memory of our own that grows: what it holds may be secret. */
import { allocate, putText, wipe } from "../memory.js";
import type { Bytes } from "../protocol.js";
import { copySecret } from "../registers.js";
import { base64Length, putBase64 } from "./base64.js";

export class ResponseWriter {
  #bytes: Bytes;
  #length = 0;

  /** @param expected about how many bytes will be written. */
  constructor(expected: number) {
    this.#bytes = allocate(expected);
  }

  text(text: string): void {
    this.#reserve(3 * text.length);
    this.#length += putText(this.#bytes, this.#length, text);
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    copySecret(this.#bytes, bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Writes bytes in the standard alphabet, with padding. */
  base64(bytes: Uint8Array): void {
    const length = base64Length(bytes.length);
    this.#reserve(length);
    putBase64(this.#bytes, this.#length, bytes);
    this.#length += length;
  }

  /** Returns what was written, to be moved: the memory behind it holds zeros. */
  written(): Bytes {
    return this.#bytes.subarray(0, this.#length);
  }

  wipe(): void {
    wipe(this.written());
    this.#length = 0;
  }

  #reserve(length: number): void {
    const end = this.#length + length;
    if (end <= this.#bytes.length) return;
    const larger = allocate(Math.max(end, 2 * this.#bytes.length));
    copySecret(larger, this.written());
    wipe(this.#bytes);
    this.#bytes = larger;
  }
}
