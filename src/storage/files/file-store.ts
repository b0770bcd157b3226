/** Secret store on files: the claim on the vault's directory, the current vault in it, and errors for clients. */
import { join } from "node:path";
import pLimit from "p-limit";
import type { Bytes } from "../../../workers/protocol.js";
import { type Clock, systemClock } from "../../clock.js";
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
import { removeTree } from "../../files/remove-tree.js";
import type { SecretStore, StoredSnapshot } from "../secret-store.js";
import { BlobTree } from "./blob-tree.js";
import { type Claim, claimVault } from "./claim.js";
import type { Announcement } from "./claim-holder.js";
import {
  currentGeneration,
  findRestored,
  finishRestored,
  isGenerationName,
  switchGeneration,
  UncertainSwitch,
} from "./generations.js";
import { SnapshotHolder } from "./snapshot-holder.js";
import { cleaned, readTree, removeTemps } from "./tree-scan.js";

/** Bounds the number of open files under load. */
const readsAtOnce = 64;
const writesAtOnce = 32;

/** Larger than any blob we write. Protects memory against a planted file. */
const maxBlobBytes = 512 * 2 ** 20;

export class FileStore implements SecretStore {
  readonly vaultPath: string;
  /** Number of foreign files found in the tree at start. */
  foreignFiles = 0;
  /** The directory of secrets was missing, and an empty one was created. */
  madeSecrets = false;
  readonly #files: FileOperations;
  readonly #claim: Claim;
  readonly #snapshots: SnapshotHolder;
  readonly #reads = pLimit(readsAtOnce);
  readonly #writes = pLimit(writesAtOnce);
  #current: BlobTree | null = null;
  /** A failed init left it unknown which vault is current on disk. */
  #uncertain = false;

  private constructor(vaultPath: string, files: FileOperations, claim: Claim, clock: Clock) {
    this.vaultPath = vaultPath;
    this.#files = files;
    this.#claim = claim;
    this.#snapshots = new SnapshotHolder(files, clock);
  }

  /**
   * Claims an existing directory, calls `claimed`, and reads the names in it.
   * @throws StartError when another server holds it, or its content is invalid.
   */
  static async open(
    vaultPath: string,
    files = systemFiles,
    claimed: () => void = () => {},
    clock = systemClock,
  ): Promise<FileStore> {
    const store = new FileStore(vaultPath, files, await claimVault(vaultPath), clock);
    try {
      claimed();
      await store.#load();
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** As `open`, but returns null when there is no vault, and creates nothing. @throws VaultError INTEGRITY */
  static async openExisting(vaultPath: string): Promise<FileStore | null> {
    if ((await missingAsNull(systemFiles.lstat(vaultPath))) === null) return null;
    if ((await findRestored(systemFiles, vaultPath)) !== null) return FileStore.open(vaultPath);
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
      throw unavailable("the storage cannot be read now: try again, and check the server's log", error);
    }
  }

  async write(path: string, blob: Bytes): Promise<void> {
    const current = this.#mustHaveVault();
    try {
      await this.#writes(() => current.write(path, blob));
    } catch (error) {
      if (systemCode(error) === "EISDIR") throw directoryAt(path, error);
      throw unavailable("the storage cannot take the write: free space or repair the disk, then try again", error);
    }
  }

  async remove(path: string): Promise<boolean> {
    const current = this.#mustHaveVault();
    try {
      return await this.#writes(() => current.remove(path));
    } catch (error) {
      if (systemCode(error) === "EISDIR") throw directoryAt(path, error);
      throw unavailable("the storage cannot delete now: repair the disk, then try again", error);
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
      throw unavailable("the storage cannot create a new vault: the old state is untouched", error);
    }
  }

  async snapshot(): Promise<StoredSnapshot> {
    const current = this.#mustHaveVault();
    try {
      return await this.#snapshots.replace(() => current.snapshot(this.vaultPath));
    } catch (error) {
      if (error instanceof VaultError) throw error;
      if (error instanceof NotPlainFile) throw unavailable(`${error.message}: ${askDoctor}`, error);
      throw unavailable("the storage cannot take a snapshot: free space or repair the disk, then try again", error);
    }
  }

  /** Publishes where the server listens, for clients and commands that look for it. */
  announce(announcement: Announcement): Promise<void> {
    return this.#claim.announce(announcement);
  }

  close(): Promise<void> {
    this.#snapshots.close();
    return this.#claim.release();
  }

  async #load(): Promise<void> {
    await removeLeftovers(this.#files, this.vaultPath);
    await finishRestored(this.#files, this.vaultPath);
    const generation = await currentGeneration(this.#files, this.vaultPath);
    if (generation === null) return;
    // The process that replaced `current` may have been killed before the fsync, and all later writes depend on it.
    await ignoring(syncDirectory(this.#files, this.vaultPath), "EROFS");
    this.madeSecrets = await makeDirectory(this.#files, generation.secrets); // some backups drop empty directories
    const { paths, foreignFiles } = await readTree(this.#files, generation.secrets);
    this.#current = new BlobTree(this.#files, generation, paths);
    this.foreignFiles = foreignFiles;
  }

  /** DANGER: acknowledges nothing in a vault that may not be current after the next start. */
  #refuseUncertain(): void {
    if (!this.#uncertain) return;
    const remedy = "stop the server, repair the disk, check that vault/current names the right vault, and start again";
    throw new VaultError("UNAVAILABLE", `an init failed half-way and could not be undone: ${remedy}`);
  }

  #mustHaveVault(): BlobTree {
    this.#refuseUncertain();
    if (this.#current === null) throw new Error("there is no vault");
    return this.#current;
  }
}

function lostSecrets(vaultPath: string): VaultError {
  const remedy = "restore it from a backup, or start the server, which creates an empty one";
  return new VaultError(
    "INTEGRITY",
    `the directory of secrets is missing in ${vaultPath}: nothing was saved; ${remedy}`,
  );
}

function directoryAt(path: string, cause: unknown): VaultError {
  return new VaultError("INTEGRITY", `the stored secret at ${path} is a directory: ${askDoctor}`, { cause });
}

const askDoctor = "run strongroom doctor to see what it is, and move it away";

const unfinished = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/** Removes what a crash left outside of the tree: temp files in any generation, snapshots, unfinished restores. */
async function removeLeftovers(files: FileOperations, vaultPath: string): Promise<void> {
  for (const entry of await files.readdir(vaultPath, { withFileTypes: true })) {
    const path = join(vaultPath, entry.name);
    if (unfinished.test(entry.name)) await cleaned(removeTree(files, path));
    else if (entry.isDirectory() && isGenerationName(entry.name)) await removeTemps(files, path); // never through a link
  }
  await removeTemps(files, vaultPath);
}

function unavailable(message: string, cause: unknown): VaultError {
  return new VaultError("UNAVAILABLE", message, { cause });
}
