/** Owns the vault's directory: blobs as files in a tree that mirrors the secret paths, written so that they last. */
import { dirname, join } from "node:path";
import type { Bytes } from "../../workers/protocol.js";
import { systemCode, VaultError } from "../errors.js";
import { type Claim, claimVault } from "./claim.js";
import { Directories } from "./directories.js";
import { DirectorySyncs, type Hold } from "./directory-syncs.js";
import {
  type FileOperations,
  ignoring,
  missingAsNull,
  moveIntoPlace,
  NotPlainFile,
  readFileBytes,
  systemFiles,
} from "./durable.js";
import {
  currentGeneration,
  type Generation,
  generationDirectories,
  switchGeneration,
  UncertainSwitch,
} from "./generations.js";
import { NameIndex } from "./name-index.js";
import type { SecretStore, StoredSnapshot } from "./secret-store.js";
import { Slots } from "./slots.js";
import { Snapshot } from "./snapshot.js";
import { blobFile, readTree, removeTemps } from "./tree.js";

/** A put whose directory goes missing under it is tried this often as a whole. */
const maxAttempts = 16;

/** Bounds the files that are open at once, and with them what a crowd of clients costs. */
const readsAtOnce = 64;
const writesAtOnce = 32;

/** Longer than any blob we write: a body of the largest value, escaped. Guards memory against a planted file. */
const maxBlobBytes = 512 * 2 ** 20;

/** All that belongs to the vault in force, and changes with it. */
type Current = {
  readonly generation: Generation;
  readonly names: NameIndex;
  readonly directories: Directories;
  readonly syncs: DirectorySyncs;
  /** Paths whose file is gone, but whose delete failed before it was certain to last. */
  readonly unconfirmed: Set<string>;
};

export class FileStore implements SecretStore {
  readonly vaultPath: string;
  /** How many files in the tree are not ours, as found at start. */
  readonly strangers: number;
  readonly #files: FileOperations;
  readonly #claim: Claim;
  readonly #reads = new Slots(readsAtOnce);
  readonly #writes = new Slots(writesAtOnce);
  readonly #snapshots = new Set<Snapshot>();
  #current: Current | null;
  /** A failed init has left open which vault is in force on disk. */
  #uncertain = false;

  private constructor(
    vaultPath: string,
    files: FileOperations,
    claim: Claim,
    current: Current | null,
    strangers: number,
  ) {
    this.vaultPath = vaultPath;
    this.#files = files;
    this.#claim = claim;
    this.#current = current;
    this.strangers = strangers;
  }

  /**
   * Claims an existing directory and reads the names in it. `claimed` is called in between: there is time for other work.
   * @throws StartError when another server holds it, or what is in it cannot be understood.
   */
  static async open(vaultPath: string, files = systemFiles, claimed: () => void = () => {}): Promise<FileStore> {
    const claim = await claimVault(vaultPath);
    try {
      claimed();
      await removeLeftovers(files, vaultPath);
      const generation = await currentGeneration(files, vaultPath);
      if (generation === null) return new FileStore(vaultPath, files, claim, null, 0);
      await ignoring(files.mkdir(generation.secrets, { mode: 0o700 }), "EEXIST"); // some backups drop empty directories
      const { paths, strangers } = await readTree(files, generation.secrets);
      return new FileStore(vaultPath, files, claim, makeCurrent(files, generation, paths), strangers);
    } catch (error) {
      await claim.release();
      throw error;
    }
  }

  /** As `open`, but null when there is no vault: nothing is made. */
  static async openExisting(vaultPath: string): Promise<FileStore | null> {
    if ((await missingAsNull(systemFiles.lstat(vaultPath))) === null) return null;
    const store = await FileStore.open(vaultPath);
    if (store.header !== null) return store;
    await store.close();
    return null;
  }

  get header(): Bytes | null {
    return this.#current?.generation.header ?? null;
  }

  get count(): number {
    return this.#current?.names.count ?? 0;
  }

  list(prefix: string, after: string, limit: number): readonly string[] {
    return this.#current?.names.list(prefix, after, limit) ?? [];
  }

  async read(path: string, first = maxBlobBytes): Promise<Bytes | null> {
    if (!this.#current?.names.has(path)) return null;
    const file = blobFile(this.#current.generation.secrets, path);
    try {
      return await this.#reads.take(() => readFileBytes(this.#files, file, first));
    } catch (error) {
      if (error instanceof NotPlainFile) {
        throw new VaultError("INTEGRITY", `the stored secret at ${path} is not a plain file`, { cause: error });
      }
      throw unavailable("the storage cannot be read now: try again, and look into the server's log", error);
    }
  }

  async write(path: string, blob: Bytes): Promise<void> {
    const current = this.#inForce();
    const directory = dirname(blobFile(current.generation.secrets, path));
    try {
      await this.#working(current, directory, () => this.#writeBlob(current, path, blob));
    } catch (error) {
      if (!current.names.has(path)) await current.directories.prune(directory);
      throw unavailable("the storage cannot take the write: free space or mend the disk, then try again", error);
    }
  }

  async remove(path: string): Promise<boolean> {
    const current = this.#inForce();
    if (!current.names.has(path) && !current.unconfirmed.has(path)) return false;
    const directory = dirname(blobFile(current.generation.secrets, path));
    try {
      const removed = await this.#working(current, directory, () => this.#removeBlob(current, path));
      await current.directories.prune(directory);
      return removed;
    } catch (error) {
      throw unavailable("the storage cannot delete now: mend the disk, then try again", error);
    }
  }

  async startNewVault(header: Bytes): Promise<string | null> {
    const before = this.#current?.generation ?? null;
    this.#refuseUncertain();
    try {
      const generation = await switchGeneration(this.#files, this.vaultPath, header, before);
      this.#current = makeCurrent(this.#files, generation, []);
      return before?.directory ?? null;
    } catch (error) {
      this.#uncertain = error instanceof UncertainSwitch;
      this.#refuseUncertain();
      throw unavailable("the storage cannot take a new vault: the old state is untouched", error);
    }
  }

  async snapshot(): Promise<StoredSnapshot> {
    const { generation, names } = this.#inForce();
    // DANGER: nothing may be awaited between the list of names and the snapshot's place among those that writes ask.
    const snapshot = new Snapshot(this.#files, this.vaultPath, generation, names.list("", "", names.count));
    this.#snapshots.add(snapshot);
    try {
      await snapshot.complete();
      return snapshot;
    } catch (error) {
      throw unavailable("the storage cannot take a snapshot: free space or mend the disk, then try again", error);
    } finally {
      this.#snapshots.delete(snapshot);
    }
  }

  /** Tells commands that look for the vault's server where it listens. */
  announce(url: string): Promise<void> {
    return this.#claim.announce(url);
  }

  close(): Promise<void> {
    return this.#claim.release();
  }

  #working<T>({ directories }: Current, directory: string, work: () => Promise<T>): Promise<T> {
    return this.#writes.take(() => directories.within(directory, work));
  }

  async #writeBlob(current: Current, path: string, blob: Bytes): Promise<void> {
    const { directories, syncs, unconfirmed } = current;
    const directory = dirname(blobFile(current.generation.secrets, path));
    for (let attempt = 1; ; attempt++) {
      try {
        await directories.ensure(directory);
        await holding(syncs, directory, (held) => this.#replaceBlob(current, held, path, blob));
        unconfirmed.delete(path);
        return;
      } catch (error) {
        if (systemCode(error) !== "ENOENT" || attempt === maxAttempts) throw error;
        directories.forget(directory);
      }
    }
  }

  async #replaceBlob({ generation, names }: Current, directory: Hold, path: string, blob: Bytes): Promise<void> {
    const file = blobFile(generation.secrets, path);
    await moveIntoPlace(this.#files, file, blob, 0o600, () => this.#keepOld(path));
    names.add(path);
    await directory.sync();
  }

  /** The directory is opened first: when that fails, nothing has happened yet. */
  async #removeBlob({ generation, names, syncs, unconfirmed }: Current, path: string): Promise<boolean> {
    const file = blobFile(generation.secrets, path);
    const existed = await missingAsNull(
      holding(syncs, dirname(file), async (directory) => {
        await this.#keepOld(path);
        await this.#files.unlink(file);
        names.delete(path);
        unconfirmed.add(path);
        await directory.sync();
        return true;
      }),
    );
    names.delete(path);
    if (existed === null && unconfirmed.has(path)) await syncs.syncNearest(dirname(file));
    return unconfirmed.delete(path);
  }

  async #keepOld(path: string): Promise<void> {
    for (const snapshot of this.#snapshots) await snapshot.keep(path);
  }

  /** Nothing may be acknowledged in a vault that may not be the one after the next start. */
  #refuseUncertain(): void {
    if (!this.#uncertain) return;
    const mend = "stop the server, mend the disk, see that vault/current names the right vault, and start again";
    throw new VaultError("UNAVAILABLE", `an init failed half-way and could not be undone: ${mend}`);
  }

  #inForce(): Current {
    this.#refuseUncertain();
    if (this.#current === null) throw new Error("no vault is in force");
    return this.#current;
  }
}

async function holding<T>(syncs: DirectorySyncs, directory: string, work: (held: Hold) => Promise<T>): Promise<T> {
  const held = await syncs.hold(directory);
  try {
    return await work(held);
  } finally {
    await held.release();
  }
}

const unfinished = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/** What a crash may have left outside of the tree: temp files of an init in any generation, snapshots, restores. */
async function removeLeftovers(files: FileOperations, vaultPath: string): Promise<void> {
  for (const name of await files.readdir(vaultPath)) {
    if (unfinished.test(name)) await files.rm(join(vaultPath, name), { recursive: true, force: true });
  }
  for (const directory of [vaultPath, ...(await generationDirectories(files, vaultPath))]) {
    await removeTemps(files, directory);
  }
}

function makeCurrent(files: FileOperations, generation: Generation, paths: readonly string[]): Current {
  const syncs = new DirectorySyncs(files);
  const directories = new Directories(files, syncs, generation.secrets);
  return { generation, names: new NameIndex(paths), directories, syncs, unconfirmed: new Set() };
}

function unavailable(message: string, cause: unknown): VaultError {
  return new VaultError("UNAVAILABLE", message, { cause });
}
