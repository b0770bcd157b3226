/** Check of an audit log against an earlier head, kept where the log's files are not. Each part returns what is wrong, or null. */
import type { LogHead } from "./audit-format.js";

export class HeadCheck {
  /** Null: nothing to check. */
  readonly #wanted: LogHead | null;
  #isFound = false;

  constructor(wanted: LogHead | null) {
    this.#wanted = wanted;
  }

  /** At the end of each group. */
  atGroup(found: LogHead): string | null {
    const wanted = this.#wanted;
    if (wanted?.seq !== found.seq) return null;
    this.#isFound = true;
    if (wanted.log === found.log && wanted.chain === found.chain) return null;
    return `up to record ${wanted.seq}, this is not the log of the head that was given`;
  }

  /** At the end of the log; `lastSeq`: number of its last record, 0 when it has none. */
  atEnd(lastSeq: number, oldest: OldestPart): string | null {
    const wanted = this.#wanted;
    if (wanted === null || this.#isFound || this.isTooOld(oldest)) return null;
    if (lastSeq < wanted.seq) return `the log was cut: it ends with record ${lastSeq}, and once had ${wanted.seq}`;
    return `record ${wanted.seq} ends no group any more: the log was changed since`;
  }

  /** Whether the head is older than all that is left of the log. */
  isTooOld({ log, firstSeq }: OldestPart): boolean {
    const wanted = this.#wanted;
    return wanted !== null && wanted.log === log && firstSeq !== null && wanted.seq < firstSeq;
  }
}

/** `firstSeq`: number of the oldest record; null when no file can be read. */
type OldestPart = { readonly log: string; readonly firstSeq: number | null };
