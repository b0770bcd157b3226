/** Signing of checkpoints. Only the latest is awaited: it stands for more than those before it. */
import type { CheckpointSignature } from "../../workers/protocol.js";
import { base64url, checkpointText } from "./audit-format.js";
import { textOfRecord } from "./audit-record.js";
import type { LogPosition } from "./group-maker.js";

/** Makes the MAC of a checkpoint; rejects when the vault is locked. */
export type Signer = (text: string) => Promise<CheckpointSignature>;

/** The checkpoint of a lock; `end` takes its signature, or null when there is none. */
export type LastCheckpoint = { readonly text: string; readonly end: (signed: CheckpointSignature | null) => void };

/** Why a checkpoint is made. */
export type CheckpointReason = "unlock" | "lock" | "time" | "records" | "file" | "key";

export class CheckpointSigning {
  /** No checkpoint is made without one. */
  signer: Signer | null = null;
  #latest: Promise<void> | null = null;

  /** A MAC is awaited. */
  get isPending(): boolean {
    return this.#latest !== null;
  }

  /** Resolves once none is awaited any more. */
  async ended(): Promise<void> {
    while (this.#latest !== null) await this.#latest;
  }

  /**
   * Calls the signer at once. `end` is called later, with the record, or with null when the vault was locked meanwhile; not
   * at all when another checkpoint was begun meanwhile.
   */
  begin(
    { log, seq, chain }: LogPosition,
    time: string,
    reason: CheckpointReason,
    end: (record: string | null) => void,
  ) {
    if (this.signer === null) return;
    const signed = this.signer(checkpointText({ log, seq, time, chain: base64url(chain) }));
    const record = signed.then(
      ({ key, mac }) => textOfRecord(time, { event: "checkpoint", reason, key, mac }),
      () => null,
    );
    const latest: Promise<void> = record.then((text) => {
      if (latest !== this.#latest) return;
      this.#latest = null;
      end(text);
    });
    this.#latest = latest;
  }
}
