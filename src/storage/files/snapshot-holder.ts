/**
 * The one snapshot of a vault: the next one replaces it, and it expires after an hour, unless a running backup has entered
 * itself as its reader (see `enterHolder`). Where a disk takes none, a backup reads the vault itself, which is frozen
 * until its process has ended.
 */
import type { Clock } from "../../clock.js";
import { VaultError } from "../../errors.js";
import type { FileOperations } from "../../files/durable.js";
import { isAlive } from "../../files/process-identity.js";
import { removeTree } from "../../files/remove-tree.js";
import type { Reader } from "../secret-store.js";
import { findHolder } from "./claim-holder.js";

const lifetimeMs = 3600 * 1000;

type Taken = { readonly directory: string };

export class SnapshotHolder {
  readonly #files: FileOperations;
  readonly #clock: Clock;
  #taking = false;
  #taken: Taken | null = null;
  #cancelExpiry: () => void = () => {};
  #frozenFor: Reader | null = null;

  constructor(files: FileOperations, clock: Clock) {
    this.#files = files;
    this.#clock = clock;
  }

  /** @throws VaultError UNAVAILABLE while another snapshot is being taken or read. */
  async replace<S extends Taken>(take: () => Promise<S>): Promise<S> {
    if (this.#taking) throw busy("another snapshot is being taken");
    this.#taking = true;
    try {
      await this.#removeUnlessRead();
      const snapshot = await take();
      this.#taken = snapshot;
      this.#expireLater();
      return snapshot;
    } finally {
      this.#taking = false;
    }
  }

  /** From now on `refuseFrozen` throws, until the reader has ended. @throws VaultError UNAVAILABLE */
  freeze(reader: Reader): void {
    this.refuseFrozen();
    if (!isAlive(reader.pid, reader.started)) throw busy(`the reader (pid ${reader.pid}) does not run on this machine`);
    this.#frozenFor = reader;
  }

  /** @throws VaultError UNAVAILABLE while a backup reads the vault itself. */
  refuseFrozen(): void {
    if (this.#frozenFor === null) return;
    const { pid, started } = this.#frozenFor;
    if (isAlive(pid, started)) throw busy(`a backup (pid ${pid}) is reading the vault, whose disk takes no snapshot`);
    this.#frozenFor = null;
  }

  /** The vault that was frozen is no longer current. */
  thaw(): void {
    this.#frozenFor = null;
  }

  /** Stops the expiry; the next start removes what is left. */
  close(): void {
    this.#cancelExpiry();
  }

  async #removeUnlessRead(): Promise<void> {
    const taken = this.#taken; // the expiry of a snapshot and the next one may come together
    if (taken === null) return;
    const reader = await findHolder(taken.directory).catch(() => null);
    if (reader !== null) throw busy(`a backup (pid ${reader.pid}) is reading a snapshot`);
    this.#cancelExpiry();
    await removeTree(this.#files, taken.directory);
    if (this.#taken === taken) this.#taken = null;
  }

  #expireLater(): void {
    this.#cancelExpiry();
    this.#cancelExpiry = this.#clock.after(lifetimeMs, () => {
      if (!this.#taking) this.#removeUnlessRead().catch(() => this.#expireLater()); // still read, or the disk refuses
    });
  }
}

function busy(reason: string): VaultError {
  return new VaultError("UNAVAILABLE", `${reason}: try again when it has ended`);
}
