/**
 * Small boxes that have opened under one key, with what was in them: metadata, and values that are read again and again. A box
 * is known by its AAD and all of its bytes: a box that was moved, or changed in a single bit, has to open.
 *
 * DANGER: no plaintext may stay readable between operations. It is remembered xor a pad, AES-256-CTR under a random key of
 * its own, which exists only in OpenSSL's key schedule, as the master key does.
 */
import { createDecipheriv, type Decipher } from "node:crypto";
import { allocate, concatScratch, equal, randomize, readUint32, wipe, xorWithPads } from "../memory.js";
import type { Bytes } from "../protocol.js";

/** A box, nonce (24) ‖ ciphertext ‖ tag (16), and its expected AAD. */
export type Sealed = { readonly box: Uint8Array; readonly aad: Uint8Array };

export type OpenedBox = Sealed & { readonly plaintext: Uint8Array };

/** Number of places: 8 MiB at most, of which the system allocates only written pages. */
const places = 8 * 1024;

/** Bytes of a place, for AAD, box and plaintext: values of some 400 bytes fit. A larger box is not remembered. */
const placeBytes = 1024;

const zeroBlock = allocate(16);

/**
 * Two neighbouring places for each box, by the first bytes of its random nonce; where neither is free, it replaces one of two
 * boxes by chance. With one place, every eighth entry of a page of 1,000 opened again in each list.
 */
export class KnownBoxes {
  readonly #memory: Bytes;
  /** Three lengths for each place: of the AAD, the box and its plaintext. */
  readonly #lengths = new Uint16Array(allocate(places * 3 * Uint16Array.BYTES_PER_ELEMENT).buffer);
  /** A part of a nonce for each place: of the box that was there last for `keepAgain`. */
  readonly #seen = new Uint32Array(allocate(places * Uint32Array.BYTES_PER_ELEMENT).buffer);
  #pads: Decipher | null = null;

  constructor(memory: Bytes = allocate(places * placeBytes)) {
    this.#memory = memory;
  }

  /** Returns copies of the boxes' plaintexts, in scratch memory; null for an unknown box. */
  find(sealed: readonly Sealed[]): (Uint8Array | null)[] {
    const hidden: { nonce: Uint8Array; bytes: Uint8Array }[] = [];
    const found = sealed.map(({ box, aad }) => {
      const bytes = this.#findHidden(box, aad);
      if (bytes !== null) hidden.push({ nonce: lastOfNonce(box), bytes });
      return bytes;
    });
    if (hidden.length > 0) xorWithPads(this.#padCipher(), hidden);
    return found;
  }

  #findHidden(box: Uint8Array, aad: Uint8Array): Uint8Array | null {
    if (box.length === 0) return null; // an empty place also has this length
    const place = boxPlace(box);
    return this.#hiddenAt(place, box, aad) ?? this.#hiddenAt(neighbour(place), box, aad);
  }

  #hiddenAt(place: number, box: Uint8Array, aad: Uint8Array): Uint8Array | null {
    const lengths = this.#lengths;
    if (lengths[3 * place] !== aad.length || lengths[3 * place + 1] !== box.length) return null;
    const at = place * placeBytes;
    const boxAt = at + aad.length;
    const end = boxAt + box.length;
    const memory = this.#memory;
    if (!equal(memory.subarray(boxAt, end), box) || !equal(memory.subarray(at, boxAt), aad)) return null;
    return concatScratch(memory.subarray(end, end + (lengths[3 * place + 2] ?? 0)));
  }

  /** Keeps what is in boxes that were sealed, or have opened, with these AADs. */
  keep(opened: readonly OpenedBox[]): void {
    const fitting = opened.filter((one) => one.aad.length + one.box.length + one.plaintext.length <= placeBytes);
    if (fitting.length === 0) return;
    // Hidden elsewhere first: two of them may have one place, and no plaintext may stay there if this fails.
    const hidden = fitting.map(({ box, aad, plaintext }) => {
      return { box, aad, nonce: lastOfNonce(box), bytes: concatScratch(plaintext) };
    });
    xorWithPads(this.#padCipher(), hidden);
    for (const { box, aad, bytes } of hidden) this.#put(box, aad, bytes);
  }

  #put(box: Uint8Array, aad: Uint8Array, hidden: Uint8Array): void {
    const lengths = this.#lengths;
    const first = boxPlace(box);
    const candidates = (box[4] ?? 0) % 2 === 0 ? [first, neighbour(first)] : [neighbour(first), first];
    const place = candidates.find((one) => lengths[3 * one + 1] === 0) ?? candidates[0] ?? first;
    const at = place * placeBytes;
    this.#memory.set(aad, at);
    this.#memory.set(box, at + aad.length);
    this.#memory.set(hidden, at + aad.length + box.length);
    lengths[3 * place] = aad.length;
    lengths[3 * place + 1] = box.length;
    lengths[3 * place + 2] = hidden.length;
  }

  /** Keeps what is opened a second time, so that one look at everything does not cost what is in use its places. */
  keepAgain(opened: OpenedBox): void {
    const place = boxPlace(opened.box);
    const part = readUint32(opened.box, 4);
    if (this.#seen[place] === part) this.keep([opened]);
    else this.#seen[place] = part;
  }

  /** Nothing is known any more; the pads cannot be made again. */
  wipe(): void {
    this.#pads?.final(); // DANGER: a cipher that never reaches final() keeps its key schedule until garbage collection
    this.#pads = null;
    for (let place = 0; place < places; place++) {
      if (this.#lengths[3 * place] === 0) continue;
      wipe(this.#memory.subarray(place * placeBytes, (place + 1) * placeBytes));
    }
    this.#lengths.fill(0);
    this.#seen.fill(0);
  }

  #padCipher(): Decipher {
    if (this.#pads !== null) return this.#pads;
    const key = randomize(allocate(32));
    try {
      this.#pads = createDecipheriv("aes-256-cfb", key, zeroBlock);
    } finally {
      wipe(key);
    }
    return this.#pads;
  }
}

/** Wiped ones, for later keys. DANGER: new memory of this size for each unlock would make V8 stop for full collections. */
const spare: KnownBoxes[] = [];

export function takeKnownBoxes(): KnownBoxes {
  return spare.pop() ?? new KnownBoxes();
}

/** Wipes them. */
export function giveBackKnownBoxes(known: KnownBoxes): void {
  known.wipe();
  spare.push(known);
}

function boxPlace(box: Uint8Array): number {
  return readUint32(box, 0) % places;
}

/** The other place of a pair. */
function neighbour(place: number): number {
  return place ^ 1;
}

/** The half of the nonce that is fresh whenever something is sealed, so that no pad hides two plaintexts. */
function lastOfNonce(box: Uint8Array): Uint8Array {
  return box.subarray(12, 24);
}
