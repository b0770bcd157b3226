/** Secret store on files: the claim on the vault's directory, the current vault in it, and its snapshots. */
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { type Clock, systemClock } from "../../clock.js";
import { VaultError } from "../../errors.js";
import {
  type FileOperations,
  ignoring,
  makeDirectory,
  missingAsNull,
  moveIntoPlace,
  syncDirectory,
  systemFiles,
  UncertainChange,
} from "../../files/durable.js";
import { Semaphore } from "../../locks.js";
import { blobTag, tagHeadBytes } from "../blob-tag.js";
import {
  type BackupProcess,
  type Change,
  type CommitResult,
  type DocumentChange,
  documentChanged,
  type NamedDocument,
  type SecretStore,
  type Space,
  type StoredDocument,
  type StoredSnapshot,
} from "../secret-store.js";
import { PendingBatches } from "./batches.js";
import { type Announcement, type Claim, claimVault } from "./claim.js";
import { Documents } from "./documents.js";
import {
  cannotRead,
  cannotWrite,
  lostSecrets,
  readFailure,
  removalFailure,
  snapshotFailure,
  unavailable,
  writeFailure,
} from "./errors.js";
import {
  currentGeneration,
  findRestored,
  finishRestored,
  type Generation,
  headerFile,
  readHeader,
  removeLeftovers,
  removeRestoredMark,
  switchGeneration,
  UncertainSwitch,
} from "./generations.js";
import { indexNames, type Names } from "./name-index.js";
import { SnapshotHolder } from "./snapshot.js";
import { scanTrees } from "./tree.js";

/** Bounds the number of open files under load. */
const readsAtOnce = 64;
const writesAtOnce = 32;

/** Upper bound for reading a blob, in bytes. Protects memory against a planted file. */
const maxBlobBytes = 2 ** 30;

/** The current vault. */
type Vault = {
  readonly directory: string;
  readonly batches: PendingBatches;
  readonly documents: Documents;
  /** Null: a failed replacement left it unknown which header is on disk. */
  header: Bytes | null;
};

type LoadedVault = { readonly vault: Vault | null; readonly foreignFiles: number; readonly madeSecrets: boolean };

export class FileStore implements SecretStore {
  readonly vaultPath: string;
  readonly foreignFiles: number;
  /** The directory of secrets was missing, and an empty one was created. */
  readonly madeSecrets: boolean;
  readonly #files: FileOperations;
  readonly #claim: Claim;
  readonly #snapshots: SnapshotHolder;
  readonly #reads = new Semaphore(readsAtOnce);
  readonly #writes = new Semaphore(writesAtOnce);
  #vault: Vault | null;
  /** A failed init left it unknown which vault is current on disk. */
  #uncertain = false;

  private constructor(vaultPath: string, files: FileOperations, claim: Claim, clock: Clock, loaded: LoadedVault) {
    this.vaultPath = vaultPath;
    this.foreignFiles = loaded.foreignFiles;
    this.madeSecrets = loaded.madeSecrets;
    this.#files = files;
    this.#claim = claim;
    this.#snapshots = new SnapshotHolder(files, clock);
    this.#vault = loaded.vault;
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
    const claim = await claimVault(vaultPath, files);
    try {
      claimed();
      return new FileStore(vaultPath, files, claim, clock, await load(files, vaultPath));
    } catch (error) {
      await claim.release();
      throw error;
    }
  }

  /** Like `open`, but returns null when there is no vault, and creates nothing. @throws VaultError INTEGRITY */
  static async openExisting(vaultPath: string): Promise<FileStore | null> {
    if ((await missingAsNull(systemFiles.lstat(vaultPath))) === null) return null;
    if ((await findRestored(systemFiles, vaultPath)) !== null) return FileStore.open(vaultPath);
    const generation = await currentGeneration(systemFiles, vaultPath);
    if (generation === null) return null;
    const secrets = join(generation.directory, "secrets");
    if ((await missingAsNull(systemFiles.lstat(secrets))) === null) throw lostSecrets(vaultPath);
    return FileStore.open(vaultPath);
  }

  async header(): Promise<Bytes | null> {
    return this.#vault === null ? null : (await this.#vaultHeader(this.#vault)).slice();
  }

  async count(space: Space = "secrets"): Promise<number> {
    return this.#vault?.batches.tree.names[space].count ?? 0;
  }

  async list(prefix: string, after: string, limit: number, space: Space = "secrets"): Promise<readonly string[]> {
    return this.#vault?.batches.tree.names[space].list(prefix, after, limit) ?? [];
  }

  async read(path: string, first = maxBlobBytes, space: Space = "secrets"): Promise<Bytes | null> {
    if (this.#vault === null) return null;
    const { batches } = this.#vault;
    const pending = batches.pendingBlob(space, path);
    if (pending !== undefined) return pending?.slice(0, first) ?? null;
    await this.#reads.acquire();
    try {
      return await batches.tree.read(space, path, first);
    } catch (error) {
      throw readFailure(path, error);
    } finally {
      this.#reads.release();
    }
  }

  async commit(changes: readonly Change[]): Promise<CommitResult> {
    const { batches } = this.#mustBeWritable();
    for (const [refused, change] of changes.entries()) {
      if (!(await this.#isAsExpected(batches, change))) return { committed: false, refused };
    }
    const [only, another] = changes;
    if (only === undefined) return { committed: true };
    const { space = "secrets", path, blob } = only;
    if (another !== undefined || batches.isPending(space, path)) return this.#commitBatch(batches, changes);
    if (blob === null) return this.#remove(batches, only);
    await this.#writes.acquire();
    try {
      await batches.tree.write(space, path, blob);
      return { committed: true };
    } catch (error) {
      throw writeFailure(path, error);
    } finally {
      this.#writes.release();
    }
  }

  async flush(path: string, space: Space = "secrets"): Promise<void> {
    const { batches } = this.#mustBeWritable();
    await this.#writes.acquire();
    try {
      await batches.flush(space, path);
    } catch (error) {
      throw writeFailure(path, error);
    } finally {
      this.#writes.release();
    }
  }

  async startNewVault(header: Bytes, documents: readonly NamedDocument[] = []): Promise<string | null> {
    this.#refuseUncertain();
    const before = this.#vault?.directory ?? null;
    try {
      await this.#vault?.batches.drain(); // the old vault is kept whole
      const generation = await switchGeneration(this.#files, this.vaultPath, header.slice(), before, documents);
      this.#vault = vaultIn(this.#files, generation, indexNames());
      this.#snapshots.thaw();
      return before;
    } catch (error) {
      this.#uncertain = error instanceof UncertainSwitch;
      this.#refuseUncertain();
      throw unavailable("the storage cannot create a new vault: the old state is untouched", error);
    }
  }

  async replaceHeader(header: Bytes, before: Bytes, document: DocumentChange | null = null): Promise<boolean> {
    const vault = this.#mustBeWritable();
    if (Buffer.compare(await this.#vaultHeader(vault), before) !== 0) return false;
    if (document !== null) {
      const { name, bytes, expected } = document;
      if ((await vault.documents.write(name, bytes, expected)) === null) throw documentChanged();
    }
    try {
      await vault.batches.flushRemovals(); // the header may drop the key of what would come back
      await moveIntoPlace(this.#files, join(vault.directory, headerFile), header);
      vault.header = header.slice(); // what the next start finds, even when the fsync fails
      await syncDirectory(this.#files, vault.directory);
      return true;
    } catch (error) {
      if (error instanceof UncertainChange) vault.header = null;
      throw cannotWrite(error);
    }
  }

  async readDocument(name: string): Promise<StoredDocument | null> {
    return this.#vault?.documents.read(name) ?? null;
  }

  async writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    return this.#mustHaveVault().documents.write(name, bytes, expected);
  }

  async snapshot(): Promise<StoredSnapshot> {
    const vault = this.#mustHaveVault();
    const header = await this.#vaultHeader(vault);
    try {
      const take = () => vault.batches.snapshot(this.vaultPath, () => vault.header ?? header);
      return await this.#snapshots.replace(take);
    } catch (error) {
      throw snapshotFailure(error);
    }
  }

  async freeze(reader: BackupProcess): Promise<StoredSnapshot> {
    const { directory, batches } = this.#mustHaveVault();
    this.#snapshots.freeze(reader);
    return { directory, count: batches.tree.names.secrets.count };
  }

  /** Publishes where the server listens, for clients and commands that look for it. */
  announce(announcement: Announcement): Promise<void> {
    return this.#claim.announce(announcement);
  }

  async close(): Promise<void> {
    await this.#snapshots.close();
    await this.#vault?.batches.drain().catch(() => {}); // or by the next start
    await this.#claim.release();
  }

  async #isAsExpected(batches: PendingBatches, { space = "secrets", path, expected }: Change): Promise<boolean> {
    if (expected === undefined) return true;
    if (expected === "present") return batches.isPresent(space, path);
    if (expected === "absent") return !batches.tree.names[space].has(path);
    const head = await this.read(path, tagHeadBytes, space);
    return head !== null && blobTag(head) === expected.tag;
  }

  async #commitBatch(batches: PendingBatches, changes: readonly Change[]): Promise<CommitResult> {
    const all = changes.map(({ space = "secrets", path, blob }) => ({ space, path, blob }));
    try {
      await batches.commit(all);
      return { committed: true };
    } catch (error) {
      throw cannotWrite(error);
    }
  }

  async #remove(batches: PendingBatches, { space = "secrets", path, expected }: Change): Promise<CommitResult> {
    if (!batches.isPresent(space, path)) return { committed: true }; // otherwise it is not as expected
    await this.#writes.acquire();
    try {
      const removed = await batches.tree.remove(space, path);
      return removed || expected !== "present" ? { committed: true } : { committed: false, refused: 0 };
    } catch (error) {
      throw removalFailure(path, error);
    } finally {
      this.#writes.release();
    }
  }

  /** Returns the header that the next start finds. */
  async #vaultHeader(vault: Vault): Promise<Bytes> {
    vault.header ??= await readHeader(this.#files, vault.directory).catch((error: unknown) => {
      throw cannotRead(error);
    });
    return vault.header;
  }

  /** DANGER: acknowledges nothing in a vault that may not be current after the next start. */
  #refuseUncertain(): void {
    if (!this.#uncertain) return;
    const remedy = "stop the server, repair the disk, check that vault/current names the right vault, and start again";
    throw new VaultError("UNAVAILABLE", `a forced init failed and could not be rolled back: ${remedy}`);
  }

  #mustHaveVault(): Vault {
    this.#refuseUncertain();
    if (this.#vault === null) throw new Error("there is no vault");
    return this.#vault;
  }

  #mustBeWritable(): Vault {
    const vault = this.#mustHaveVault();
    this.#snapshots.refuseFrozen();
    return vault;
  }
}

/**
 * Completes what a crash or a restore left unfinished, and reads the names. The caller holds the claim.
 * @throws StartError
 */
async function load(files: FileOperations, vaultPath: string): Promise<LoadedVault> {
  await removeLeftovers(files, vaultPath);
  await finishRestored(files, vaultPath);
  const generation = await currentGeneration(files, vaultPath);
  if (generation === null) return { vault: null, foreignFiles: 0, madeSecrets: false };
  await removeRestoredMark(files, generation.directory);
  // The process that replaced `current` may have been killed before the fsync, and all later writes depend on it.
  await ignoring(syncDirectory(files, vaultPath), "EROFS");
  const madeSecrets = await makeDirectory(files, join(generation.directory, "secrets")); // some backups drop empty directories
  const { names, foreignFiles } = await scanTrees(files, generation.directory);
  const vault = vaultIn(files, generation, names);
  await vault.batches.replay();
  return { vault, foreignFiles, madeSecrets };
}

function vaultIn(files: FileOperations, { directory, header }: Generation, names: Names): Vault {
  return {
    directory,
    header,
    batches: new PendingBatches(files, directory, names),
    documents: new Documents(files, directory),
  };
}
