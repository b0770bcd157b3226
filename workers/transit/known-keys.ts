/**
 * Keys that were used, so that their public parts need not be read for each use; the oldest makes room for the next. A
 * key is known by all bytes of its blob: a key that was moved, or changed in a single bit, has to open. Private parts
 * are not kept here.
 */
import { etagOfCurrent, metadataEnd, openBoxes, type SealingKey, splitBlob, versionBoxes } from "../crypto/blob.js";
import { openKnown } from "../crypto/xaes.js";
import { concat, equal } from "../memory.js";
import type { Bytes } from "../protocol.js";
import { forTransit, type KeyInfo, openKeyInfo, splitParts } from "./key-format.js";

/** Keys with more versions are opened for each use. */
const mostBlobBytes = 16 * 1024;
const mostKnown = 256;

export class KnownKeys {
  readonly #keys = new Map<string, KnownKey>();

  /** Returns the key in a blob, opened unless it is known; null when it is damaged, moved or foreign. */
  open(key: SealingKey, name: string, blob: Uint8Array): KnownKey | null {
    const known = this.#keys.get(name);
    if (known?.isIn(key, blob)) return known;
    this.#keys.delete(name);
    const info = splitBlob(blob)?.isWhole ? openKeyInfo(key, name, blob.subarray(0, metadataEnd(blob))) : null;
    if (info === null) return null;
    const opened = new KnownKey(key, name, concat([blob]), info);
    if (blob.length <= mostBlobBytes) this.#keys.set(name, opened);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > mostKnown && oldest !== undefined) this.#keys.delete(oldest);
    return opened;
  }

  clear(): void {
    this.#keys.clear();
  }
}

/** A key without its private parts. */
export class KnownKey {
  readonly info: KeyInfo;
  readonly name: string;
  readonly etag: string;
  readonly #key: SealingKey;
  readonly #blob: Bytes;

  constructor(key: SealingKey, name: string, blob: Bytes, info: KeyInfo) {
    this.info = info;
    this.name = name;
    this.etag = etagOfCurrent(blob);
    this.#key = key;
    this.#blob = blob;
  }

  isIn({ masterKey, oldKey }: SealingKey, blob: Uint8Array): boolean {
    return this.#key.masterKey === masterKey && this.#key.oldKey === oldKey && equal(this.#blob, blob);
  }

  /** Returns the private parts of all versions, in scratch memory; null when they are damaged. */
  openParts(): readonly Uint8Array[] | null {
    const split = splitBlob(this.#blob);
    if (split === null) return null;
    const key = forTransit(this.#key);
    const [value = null] = openBoxes(key, versionBoxes(key, this.name, split.current).slice(1), openKnown);
    return value && splitParts(value);
  }
}
