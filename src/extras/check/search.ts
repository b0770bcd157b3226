/**
 * Search for values by their digests: this process finds a value in a file without knowing it. A polynomial hash rolls over the
 * file; where it is that of a value's first bytes, the value's HMAC decides.
 */
import { createHmac } from "node:crypto";
import type { CheckEntry } from "../../client/client.js";

type Digest = NonNullable<CheckEntry["search"]>[number];

/** A value that may begin with these bytes. */
type Candidate = Digest & { readonly path: string };

/** Bytes that the hash covers. */
const windowBytes = 8;
const filterBits = 20;

export class ValueSearch {
  readonly #key: Buffer;
  readonly #base: number;
  readonly #leading: number;
  readonly #byStart = new Map<number, Candidate[]>();
  readonly #filter = new Uint8Array(2 ** filterBits);

  /** `key`: that of the check which made the digests. */
  constructor(key: Buffer, entries: readonly CheckEntry[]) {
    this.#key = key;
    this.#base = key.readUInt32BE(0) | 1;
    let leading = 1;
    for (let i = 1; i < windowBytes; i++) leading = Math.imul(leading, this.#base);
    this.#leading = leading;
    for (const { path, search = [] } of entries) for (const digest of search) this.#add({ ...digest, path });
  }

  /** Returns where values are, in ascending order; of equal values, the first path. */
  find(bytes: Uint8Array): readonly { readonly at: number; readonly path: string }[] {
    const found: { at: number; path: string }[] = [];
    let hash = 0;
    for (let end = 0; end < bytes.length; end++) {
      if (end >= windowBytes) hash = (hash - Math.imul(bytes[end - windowBytes] ?? 0, this.#leading)) | 0;
      hash = (Math.imul(hash, this.#base) + (bytes[end] ?? 0)) | 0;
      if (this.#filter[hash >>> (32 - filterBits)] === 0 || end < windowBytes - 1) continue;
      const at = end - windowBytes + 1;
      for (const path of this.#valuesAt(bytes, at, hash >>> 0)) found.push({ at, path });
    }
    return found;
  }

  #add(candidate: Candidate): void {
    const others = this.#byStart.get(candidate.start) ?? [];
    this.#byStart.set(candidate.start, [...others, candidate]);
    this.#filter[candidate.start >>> (32 - filterBits)] = 1;
  }

  #valuesAt(bytes: Uint8Array, at: number, start: number): readonly string[] {
    const candidates = this.#byStart.get(start) ?? [];
    const fitting = candidates.filter((one) => at + one.bytes <= bytes.length);
    const matching = fitting.filter((one) => this.#keyedDigest(bytes.subarray(at, at + one.bytes)) === one.digest);
    return [...new Set(matching.map(({ path }) => path))];
  }

  #keyedDigest(text: Uint8Array): string {
    const mac = createHmac("sha256", this.#key).update("search").update(text).digest();
    return mac.toString("base64url", 0, 16);
  }
}
