/** Bounded queue of records. Once it is full every record is lost, until a gap record has said how many were. */

export type Gap = { readonly count: number; readonly since: number };

export class RecordQueue {
  #records: string[] = [];
  #gap: Gap | null = null;
  #gaps = 0;
  #lost = 0;

  get length(): number {
    return this.#records.length;
  }

  /** The records that were lost since the last gap record; null when none was. */
  get gap(): Gap | null {
    return this.#gap;
  }

  /** Since the start: how often records were lost, and how many. */
  get losses(): { readonly gaps: number; readonly records: number } {
    return { gaps: this.#gaps, records: this.#lost };
  }

  add(text: string): void {
    this.#records.push(text);
  }

  /** Counts a record that has no room. `now`: milliseconds since 1970. */
  lose(now: number): void {
    if (this.#gap === null) this.#gaps++;
    const { count, since } = this.#gap ?? { count: 0, since: now };
    this.#gap = { count: count + 1, since };
    this.#lost++;
  }

  /** Ends the gap, for a record that tells of it. */
  takeGap(): Gap | null {
    const gap = this.#gap;
    this.#gap = null;
    return gap;
  }

  /** Removes and returns the first records: at most `most`, and the first that reaches `maxCharacters` is the last. */
  take(most: number, maxCharacters: number): readonly string[] {
    let [count, characters] = [0, 0];
    for (; count < this.#records.length && count < most && characters < maxCharacters; count++)
      characters += this.#records[count]?.length ?? 0;
    const isAll = count === this.#records.length;
    const taken = isAll ? this.#records : this.#records.slice(0, count);
    this.#records = isAll ? [] : this.#records.slice(count);
    return taken;
  }
}
