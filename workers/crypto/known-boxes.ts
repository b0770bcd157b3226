/**
 * Small boxes that have opened under one key, with what was in them: the metadata of secrets in use, which nearly every
 * request opens again. Values never come here. A box is known by its AAD and all of its bytes: one that was moved, or changed
 * in a single bit, has to open.
 *
 * DANGER: these are plaintexts: `wipe` them with the key.
 */
import { allocate, equal, readUint32, scratchOf, wipe } from "../memory.js";
import type { Bytes } from "../protocol.js";

/** At most 8 MiB, of which the system gives only the pages that are written. */
const places = 16 * 1024;

/** Metadata rarely takes 200 bytes, and as much when it is sealed. What does not fit is not remembered. */
const placeBytes = 512;

/** A place for each box, by the first bytes of its random nonce: a box replaces the one that had its place. */
export class KnownBoxes {
  readonly #memory: Bytes;
  /** Of each place, the lengths of the AAD, of the box and of what was in it. */
  readonly #lengths = new Uint16Array(allocate(places * 3 * Uint16Array.BYTES_PER_ELEMENT).buffer);

  constructor(memory: Bytes = allocate(places * placeBytes)) {
    this.#memory = memory;
  }

  /** Returns a copy of what was in the box, in scratch memory; null when it is not known. */
  find(aad: Uint8Array, box: Uint8Array): Uint8Array | null {
    const place = placeOf(box);
    const lengths = this.#lengths;
    if (lengths[3 * place] !== aad.length || lengths[3 * place + 1] !== box.length) return null;
    const at = place * placeBytes;
    const boxAt = at + aad.length;
    const end = boxAt + box.length;
    const memory = this.#memory;
    if (!equal(memory.subarray(boxAt, end), box) || !equal(memory.subarray(at, boxAt), aad)) return null;
    return scratchOf(memory.subarray(end, end + (lengths[3 * place + 2] ?? 0)));
  }

  /** `opened`: what is in the box, which was sealed or has opened with this AAD. */
  keep(aad: Uint8Array, box: Uint8Array, opened: Uint8Array): void {
    const place = placeOf(box);
    const at = place * placeBytes;
    const end = at + aad.length + box.length + opened.length;
    if (end > at + placeBytes) return;
    this.#memory.set(aad, at);
    this.#memory.set(box, at + aad.length);
    this.#memory.set(opened, at + aad.length + box.length);
    this.#lengths.set([aad.length, box.length, opened.length], 3 * place);
  }

  wipe(): void {
    for (let place = 0; place < places; place++) {
      if (this.#lengths[3 * place] === 0) continue;
      wipe(this.#memory.subarray(place * placeBytes, (place + 1) * placeBytes));
    }
    this.#lengths.fill(0);
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

function placeOf(box: Uint8Array): number {
  return readUint32(box, 0) % places;
}
