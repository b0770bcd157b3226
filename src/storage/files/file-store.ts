/** Owns the vault's directory: the claim on it, which vault in it is in force, and what its failures mean to a client. */
import { join } from "node:path";
import pLimit from "p-limit";
import type { Bytes } from "../../../workers/protocol.js";
import { systemCode, VaultError } from "../../errors.js";
import {
  type FileOperations,
  ignoring,
  makeDirectory,
  missingAsNull,
  syncDirectory,
  systemFiles,
} from "../../files/durable.js";
import { NotPlainFile } from "../../files/read-file.js";
import type { SecretStore, StoredSnapshot } from "../secret-store.js";
import { BlobTree } from "./blob-tree.js";
import { type Claim, claimVault } from "./claim.js";
import { currentGeneration, isGenerationName, switchGeneration, UncertainSwitch } from "./generations.js";
import { cleaned, readTree, removeTemps } from "./tree-scan.js";

/** Bounds the files that are open at once, and with them what a crowd of clients costs. */
const readsAtOnce = 64;
const writesAtOnce = 32;

/** Longer than any blob we write: a body of the largest value, escaped. Guards memory against a planted file. */
const maxBlobBytes = 512 * 2 ** 20;

export class FileStore implements SecretStore {
  readonly vaultPath: string;
  /** How many files in the tree are not ours, as found at start. */
  strangers = 0;
  /** The directory of secrets was missing: an empty one was made. */
  madeSecrets = false;
  readonly #files: FileOperations;
  readonly #claim: Claim;
  readonly #reads = pLimit(readsAtOnce);
  readonly #writes = pLimit(writesAtOnce);
  #current: BlobTree | null = null;
  /** A failed init has left open which vault is in force on disk. */
  #uncertain = false;

  private constructor(vaultPath: string, files: FileOperations, claim: Claim) {
    this.vaultPath = vaultPath;
    this.#files = files;
    this.#claim = claim;
  }

  /**
   * Claims an existing directory and reads the names in it. `claimed` is called in between: there is time for other work.
   * @throws StartError when another server holds it, or what is in it cannot be understood.
   */
  static async open(vaultPath: string, files = systemFiles, claimed: () => void = () => {}): Promise<FileStore> {
    const store = new FileStore(vaultPath, files, await claimVault(vaultPath));
    try {
      claimed();
      await store.#load();
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** As `open`, but null when there is no vault: nothing is made. @throws VaultError INTEGRITY */
  static async openExisting(vaultPath: string): Promise<FileStore | null> {
    if ((await missingAsNull(systemFiles.lstat(vaultPath))) === null) return null;
    const generation = await currentGeneration(systemFiles, vaultPath);
    if (generation === null) return null;
    if ((await missingAsNull(systemFiles.lstat(generation.secrets))) === null) throw lostSecrets(vaultPath);
    return FileStore.open(vaultPath);
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
    const current = this.#current;
    if (current === null) return null;
    try {
      return await this.#reads(() => current.read(path, first));
    } catch (error) {
      if (error instanceof NotPlainFile) {
        throw new VaultError("INTEGRITY", `the stored secret at ${path} is not a plain file: ${askDoctor}`, {
          cause: error,
        });
      }
      throw unavailable("the storage cannot be read now: try again, and look into the server's log", error);
    }
  }

  async write(path: string, blob: Bytes): Promise<void> {
    const current = this.#inForce();
    try {
      await this.#writes(() => current.write(path, blob));
    } catch (error) {
      if (systemCode(error) === "EISDIR") throw directoryAt(path, error);
      throw unavailable("the storage cannot take the write: free space or mend the disk, then try again", error);
    }
  }

  async remove(path: string): Promise<boolean> {
    const current = this.#inForce();
    try {
      return await this.#writes(() => current.remove(path));
    } catch (error) {
      if (systemCode(error) === "EISDIR") throw directoryAt(path, error);
      throw unavailable("the storage cannot delete now: mend the disk, then try again", error);
    }
  }

  async startNewVault(header: Bytes): Promise<string | null> {
    const before = this.#current?.generation ?? null;
    this.#refuseUncertain();
    try {
      const generation = await switchGeneration(this.#files, this.vaultPath, header, before);
      this.#current = new BlobTree(this.#files, generation, []);
      return before?.directory ?? null;
    } catch (error) {
      this.#uncertain = error instanceof UncertainSwitch;
      this.#refuseUncertain();
      throw unavailable("the storage cannot take a new vault: the old state is untouched", error);
    }
  }

  async snapshot(): Promise<StoredSnapshot> {
    const current = this.#inForce();
    try {
      return await current.snapshot(this.vaultPath);
    } catch (error) {
      if (error instanceof NotPlainFile) throw unavailable(`${error.message}: ${askDoctor}`, error);
      throw unavailable("the storage cannot take a snapshot: free space or mend the disk, then try again", error);
    }
  }

  /** Tells commands that look for the vault's server where it listens. */
  announce(url: string): Promise<void> {
    return this.#claim.announce(url);
  }

  close(): Promise<void> {
    return this.#claim.release();
  }

  async #load(): Promise<void> {
    await removeLeftovers(this.#files, this.vaultPath);
    const generation = await currentGeneration(this.#files, this.vaultPath);
    if (generation === null) return;
    // Whoever replaced it may have been killed before the fsync, and what is acknowledged from now on depends on it.
    await ignoring(syncDirectory(this.#files, this.vaultPath), "EROFS");
    this.madeSecrets = await makeDirectory(this.#files, generation.secrets); // some backups drop empty directories
    const { paths, strangers } = await readTree(this.#files, generation.secrets);
    this.#current = new BlobTree(this.#files, generation, paths);
    this.strangers = strangers;
  }

  /** Nothing may be acknowledged in a vault that may not be the one after the next start. */
  #refuseUncertain(): void {
    if (!this.#uncertain) return;
    const mend = "stop the server, mend the disk, see that vault/current names the right vault, and start again";
    throw new VaultError("UNAVAILABLE", `an init failed half-way and could not be undone: ${mend}`);
  }

  #inForce(): BlobTree {
    this.#refuseUncertain();
    if (this.#current === null) throw new Error("no vault is in force");
    return this.#current;
  }
}

function lostSecrets(vaultPath: string): VaultError {
  const mend = "put it back from a backup, or start the server, which makes an empty one";
  return new VaultError(
    "INTEGRITY",
    `the directory of secrets was missing in ${vaultPath}: nothing was saved; ${mend}`,
  );
}

function directoryAt(path: string, cause: unknown): VaultError {
  return new VaultError("INTEGRITY", `the stored secret at ${path} is a directory: ${askDoctor}`, { cause });
}

const askDoctor = "strongroom doctor tells what is there; move it away";

const unfinished = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/** What a crash may have left outside of the tree: temp files of an init in any generation, snapshots, restores. */
async function removeLeftovers(files: FileOperations, vaultPath: string): Promise<void> {
  for (const entry of await files.readdir(vaultPath, { withFileTypes: true })) {
    const path = join(vaultPath, entry.name);
    if (unfinished.test(entry.name)) await cleaned(files.rm(path, { recursive: true, force: true }));
    else if (entry.isDirectory() && isGenerationName(entry.name)) await removeTemps(files, path); // a link leads elsewhere
  }
  await removeTemps(files, vaultPath);
}

function unavailable(message: string, cause: unknown): VaultError {
  return new VaultError("UNAVAILABLE", message, { cause });
}
