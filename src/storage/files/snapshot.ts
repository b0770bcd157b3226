/**
 * Point-in-time snapshot of all blobs, taken while writes continue: hard links to their files, which are never changed
 * in place. A write or delete links the old file first if the snapshot lacks it.
 *
 *   vault/snapshot-0123456789abcdef/header.json
 *   vault/snapshot-0123456789abcdef/secrets/…    the tree as it was; trash/… and keys/… where there are any
 */
import { constants } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../clock.js";
import { systemCode, VaultError } from "../../errors.js";
import { type FileOperations, missingAsNull, NotPlainFile, randomName, writeNew } from "../../files/durable.js";
import { isAlive } from "../../files/process-identity.js";
import { removeTree } from "../../files/remove-tree.js";
import { blobFile } from "../../paths/file-name.js";
import { type BackupProcess, type Space, spaces } from "../secret-store.js";
import { findHolder } from "./claim.js";
import { headerFile } from "./generations.js";
import type { Names } from "./name-index.js";

/** The thread pool's 4 and a few more; leaves room for writes. */
const linksAtOnce = 8;

export class Snapshot {
  readonly directory: string;
  /** Number of secrets in it, once complete. */
  count = 0;
  readonly #files: FileOperations;
  readonly #source: string;
  readonly #header: Uint8Array;
  readonly #pending: ReadonlyMap<Space, Set<string>>;
  readonly #linking = new Map<string, Promise<void>>();
  readonly #made = new Map<string, Promise<void>>();
  #failure: unknown = null;

  /**
   * @param source directory of the vault
   * @param names all blobs at this moment
   * @param header the vault's header, without which they may not open
   */
  constructor(files: FileOperations, vaultPath: string, source: string, names: Names, header: Uint8Array) {
    this.#files = files;
    this.#header = header;
    this.#source = source;
    this.#pending = new Map(spaces.map((space) => [space, new Set(names[space].list("", "", names[space].count))]));
    this.directory = join(vaultPath, `snapshot-${randomName()}`);
  }

  /** Must be awaited before a blob is replaced or removed. Never rejects: the snapshot fails, not the write. */
  async keep(space: Space, path: string): Promise<void> {
    if (this.#failure !== null) return;
    const isPending = this.#pending.get(space)?.delete(path) === true;
    await (isPending ? this.#begin(space, path) : this.#linking.get(`${space}/${path}`));
  }

  /** @throws the first failure; nothing of the snapshot is left then. */
  async complete(): Promise<void> {
    try {
      await this.#makeOnce(join(this.directory, "secrets"));
      await writeNew(this.#files, join(this.directory, headerFile), this.#header, 0o600);
      await Promise.all(Array.from({ length: linksAtOnce }, () => this.#linkPending()));
      await this.#linked();
      if (this.#failure !== null) throw this.#failure;
    } catch (error) {
      this.#failure = error;
      await this.#linked();
      await removeTree(this.#files, this.directory).catch(() => {}); // or at the next start
      throw error;
    }
  }

  async #linkPending(): Promise<void> {
    for (const [space, paths] of this.#pending) for (const path of paths) await this.keep(space, path);
  }

  /** Waits for the links that writes have begun: neither pending nor in the snapshot yet. */
  async #linked(): Promise<void> {
    await Promise.all(this.#linking.values());
  }

  #begin(space: Space, path: string): Promise<void> {
    const fail = (error: unknown) => {
      this.#failure = error;
    };
    const key = `${space}/${path}`;
    const linking = this.#linkBlob(space, path)
      .catch(fail)
      .finally(() => this.#linking.delete(key));
    this.#linking.set(key, linking);
    return linking;
  }

  /** A missing file was removed at the moment of the snapshot. */
  async #linkBlob(space: Space, path: string): Promise<void> {
    const file = blobFile(join(this.#source, space), path);
    const copy = blobFile(join(this.directory, space), path);
    try {
      if (!(await this.#files.lstat(file)).isFile()) throw new NotPlainFile(file);
      await this.#makeOnce(dirname(copy));
      await this.#linkOrCopy(file, copy);
      if (space === "secrets") this.count++;
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || (await missingAsNull(this.#files.lstat(file))) !== null) throw error;
    }
  }

  async #linkOrCopy(file: string, copy: string): Promise<void> {
    try {
      await this.#files.link(file, copy);
    } catch (error) {
      if (!cannotLink.has(systemCode(error) ?? "")) throw error;
      await this.#files.copyFile(file, copy, constants.COPYFILE_EXCL);
    }
  }

  #makeOnce(directory: string): Promise<void> {
    let making = this.#made.get(directory);
    if (making === undefined) {
      making = this.#make(directory);
      this.#made.set(directory, making);
    }
    return making;
  }

  /** Not `recursive`: Node then reports a read-only disk as ENOENT. */
  async #make(directory: string): Promise<void> {
    if (directory !== this.directory) await this.#makeOnce(dirname(directory));
    await this.#files.mkdir(directory, { mode: 0o700 });
  }
}

/** Errors of file systems without hard links, or with too many on one file. */
const cannotLink = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"]);

/** Milliseconds. */
const lifetimeMs = 3600 * 1000;

type Taken = { readonly directory: string };

/**
 * The one snapshot of a vault: the next one replaces it, and it expires after an hour, unless a running backup has entered
 * itself as its reader (see `enterHolder`). Where a disk takes none, a backup reads the vault itself, which is frozen
 * until its process has ended.
 */
export class SnapshotHolder {
  readonly #files: FileOperations;
  readonly #clock: Clock;
  #taking = false;
  #taken: Taken | null = null;
  #cancelExpiry: () => void = () => {};
  #frozenFor: BackupProcess | null = null;

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
  freeze(reader: BackupProcess): void {
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

  /** Stops the expiry, and removes a snapshot that no backup reads; the next start removes what is left. */
  async close(): Promise<void> {
    this.#cancelExpiry();
    await this.#removeUnlessRead().catch(() => {});
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
