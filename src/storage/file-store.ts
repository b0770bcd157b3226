/** Owns the vault's directory: blobs as files in a tree that mirrors the secret paths, written so that they last. */
import { dirname, join } from "node:path";
import type { Bytes } from "../../workers/protocol.js";
import { systemCode, VaultError } from "../errors.js";
import { directoryName, secretFileName } from "../paths/file-name.js";
import { type Claim, claimVault } from "./claim.js";
import { Directories } from "./directories.js";
import {
  type FileOperations,
  ignoring,
  moveIntoPlace,
  readFileBytes,
  removeFile,
  syncDirectory,
  systemFiles,
} from "./durable.js";
import { currentGeneration, type Generation, switchGeneration, UncertainSwitch } from "./generations.js";
import { NameIndex } from "./name-index.js";
import type { SecretStore } from "./secret-store.js";
import { readTree, removeTemps } from "./tree.js";

/** A put that keeps meeting a directory which a delete has just pruned is tried this often as a whole. */
const maxAttempts = 16;

/** Longer than any blob we write: a body of the largest value, escaped. Guards memory against a planted file. */
const maxBlobBytes = 512 * 2 ** 20;

/** All that belongs to the vault in force, and changes with it. */
type Current = {
  readonly generation: Generation;
  readonly names: NameIndex;
  readonly directories: Directories;
  /** Paths whose file is gone, but whose delete failed before it was certain to last. */
  readonly unconfirmed: Set<string>;
};

export class FileStore implements SecretStore {
  readonly vaultPath: string;
  /** How many files in the tree are not ours, as found at start. */
  readonly strangers: number;
  readonly #files: FileOperations;
  readonly #claim: Claim;
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
   * Claims an existing directory and reads the names in it.
   * @throws StartError when another server holds it, or what is in it cannot be understood.
   */
  static async open(vaultPath: string, files: FileOperations = systemFiles): Promise<FileStore> {
    const claim = await claimVault(vaultPath);
    try {
      const generation = await currentGeneration(files, vaultPath);
      if (generation === null) return new FileStore(vaultPath, files, claim, null, 0);
      await ignoring(files.mkdir(generation.secrets, { mode: 0o700 }), "EEXIST"); // some backups drop empty directories
      for (const directory of [vaultPath, generation.directory]) await removeTemps(files, directory);
      const { paths, strangers } = await readTree(files, generation.secrets);
      return new FileStore(vaultPath, files, claim, makeCurrent(files, generation, paths), strangers);
    } catch (error) {
      await claim.release();
      throw error;
    }
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
    const file = this.#fileOf(path);
    try {
      return await readFileBytes(this.#files, file, first);
    } catch (error) {
      if (systemCode(error) === "ELOOP" || systemCode(error) === "EISDIR") {
        throw new VaultError("INTEGRITY", `the stored secret at ${path} is not a plain file`, { cause: error });
      }
      throw unavailable("the storage cannot be read now: try again, and look into the server's log", error);
    }
  }

  async write(path: string, blob: Bytes): Promise<void> {
    const { names, directories } = this.#inForce();
    const file = this.#fileOf(path);
    try {
      await this.#moveIntoTree(file, blob);
      names.add(path);
      await directories.ensure(dirname(file)); // it may have been pruned and made again since
      await syncDirectory(this.#files, dirname(file));
    } catch (error) {
      if (!names.has(path)) await directories.prune(dirname(file)).catch(() => {});
      throw unavailable("the storage cannot take the write: free space or mend the disk, then try again", error);
    }
  }

  async remove(path: string): Promise<boolean> {
    const { names, directories, unconfirmed } = this.#inForce();
    if (!names.has(path) && !unconfirmed.has(path)) return false;
    const file = this.#fileOf(path);
    try {
      const existed = await removeFile(this.#files, file, () => names.delete(path));
      const removed = unconfirmed.delete(path) || existed;
      await directories.prune(dirname(file)).catch(() => {}); // the secret is gone; an empty directory does no harm
      return removed;
    } catch (error) {
      if (!names.has(path)) unconfirmed.add(path);
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

  close(): Promise<void> {
    return this.#claim.release();
  }

  async #moveIntoTree(file: string, blob: Bytes): Promise<void> {
    const { directories } = this.#inForce();
    const directory = dirname(file);
    for (let attempt = 1; ; attempt++) {
      try {
        await directories.ensure(directory);
        return await moveIntoPlace(this.#files, file, blob);
      } catch (error) {
        if (systemCode(error) !== "ENOENT" || attempt === maxAttempts) throw error;
        directories.forget(directory);
      }
    }
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

  #fileOf(path: string): string {
    const segments = path.split("/");
    const directories = segments.slice(0, -1).map(directoryName);
    return join(this.#inForce().generation.secrets, ...directories, secretFileName(segments.at(-1) ?? ""));
  }
}

function makeCurrent(files: FileOperations, generation: Generation, paths: readonly string[]): Current {
  const directories = new Directories(files, generation.secrets);
  return { generation, names: new NameIndex(paths), directories, unconfirmed: new Set() };
}

function unavailable(message: string, cause: unknown): VaultError {
  return new VaultError("UNAVAILABLE", message, { cause });
}
