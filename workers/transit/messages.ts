/**
 * Counts of the messages that keys encrypt. Random nonces of 96 bits allow 2^32 messages a key (NIST SP 800-38D section 8.3).
 *
 * A count on disk for each message would make every encryption a write. So messages are reserved in blocks: a block counts as
 * used once it is stored in the key's metadata, before the first message of it. What a lock leaves of a block is lost.
 */
import type { KeyInfo } from "./key-format.js";

export const mostMessages = 2 ** 32;
const firstBlock = 4096;
const largestBlock = 2 ** 20;

/** `etag`: of the blob that holds the reservation; whether it was stored is known when a request brings that blob. */
type Reservation = { readonly etag: string; readonly count: number };

type Counter = { left: number; last: number; reservation: Reservation | null };

export class Messages {
  readonly #counters = new Map<string, Counter>();

  /**
   * Takes messages of versions: how many of each. Returns those of which too few were reserved; if there are any, none is taken.
   * `etag`: of the key's blob.
   */
  take(info: KeyInfo, etag: string, wanted: ReadonlyMap<number, number>): readonly number[] {
    const taken = [...wanted].map(([version, count]) => ({ version, count, counter: this.#counter(info, version) }));
    for (const { counter } of taken) {
      if (counter.reservation?.etag !== etag) continue;
      counter.left += counter.reservation.count;
      counter.last = counter.reservation.count;
      counter.reservation = null;
    }
    const lacking = taken.filter(({ count, counter }) => counter.left < count).map(({ version }) => version);
    if (lacking.length === 0) for (const { count, counter } of taken) counter.left -= count;
    return lacking;
  }

  /** Returns how many messages to reserve: twice as many as the last time. Zero: the version has no more. */
  block(info: KeyInfo, version: number): number {
    const reserved = info.versions[version - 1]?.messages ?? 0;
    const { last } = this.#counter(info, version);
    return Math.min(Math.max(firstBlock, 2 * last), largestBlock, mostMessages - reserved);
  }

  /** Records a reservation that is about to be stored in the blob with this etag. */
  reserve(info: KeyInfo, version: number, etag: string, count: number): void {
    this.#counter(info, version).reservation = { etag, count };
  }

  clear(): void {
    this.#counters.clear();
  }

  #counter({ id }: KeyInfo, version: number): Counter {
    const place = `${id}:${version}`;
    const counter = this.#counters.get(place) ?? { left: 0, last: 0, reservation: null };
    this.#counters.set(place, counter);
    return counter;
  }
}
