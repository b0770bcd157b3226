/** Secret store on files: the claim on the vault's directory, the current vault in it, and errors for clients. */
import { join } from "node:path";
import pLimit from "p-limit";
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
} from "../../files/durable.js";
import { tagHeadBytes, tagOf } from "../blob-tag.js";
import type { Change, CommitResult, Reader, SecretStore, StoredDocument, StoredSnapshot } from "../secret-store.js";
import { BatchTree } from "./batch-tree.js";
import { type Claim, claimVault } from "./claim.js";
import type { Announcement } from "./claim-holder.js";
import { readDocument, writeDocument } from "./documents.js";
import {
  currentGeneration,
  findRestored,
  finishRestored,
  headerFile,
  removeRestoredMark,
  switchGeneration,
  UncertainSwitch,
} from "./generations.js";
import { removeLeftovers } from "./leftovers.js";
import { SnapshotHolder } from "./snapshot-holder.js";
import {
  cannotRead,
  cannotWrite,
  lostSecrets,
  readFailure,
  removalFailure,
  snapshotFailure,
  unavailable,
  writeFailure,
} from "./store-errors.js";
import { readTree } from "./tree-scan.js";

/** Bounds the number of open files under load. */
const readsAtOnce = 64;
const writesAtOnce = 32;

/** Larger than any blob we write. Protects memory against a planted file. */
const maxBlobBytes = 2 ** 30;

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
  /** Document writes run one at a time. */
  readonly #documents = pLimit(1);
  #current: BatchTree | null = null;
  #header: Bytes | null = null;
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

  async header(): Promise<Bytes | null> {
    return this.#header?.slice() ?? null;
  }

  async count(): Promise<number> {
    return this.#current?.names.count ?? 0;
  }

  async list(prefix: string, after: string, limit: number): Promise<readonly string[]> {
    return this.#current?.names.list(prefix, after, limit) ?? [];
  }

  async read(path: string, first = maxBlobBytes): Promise<Bytes | null> {
    const current = this.#current;
    if (current === null) return null;
    try {
      return await this.#reads(() => current.read(path, first));
    } catch (error) {
      throw readFailure(path, error);
    }
  }

  async commit(changes: readonly Change[]): Promise<CommitResult> {
    const current = this.#mustHaveVault();
    this.#snapshots.refuseFrozen();
    for (const [refused, change] of changes.entries()) {
      if (!(await this.#isAsExpected(current, change))) return { committed: false, refused };
    }
    const [only, another] = changes;
    if (only === undefined) return { committed: true };
    if (another === undefined) return this.#commitOne(current, only);
    await current.commit(new Map(changes.map(({ path, blob }) => [path, blob]))).catch((error: unknown) => {
      throw cannotWrite(error);
    });
    return { committed: true };
  }

  async startNewVault(header: Bytes): Promise<string | null> {
    this.#refuseUncertain();
    try {
      await this.#current?.drain(); // the old vault is kept whole
      const before = this.#current?.generation ?? null;
      const generation = await switchGeneration(this.#files, this.vaultPath, header, before);
      this.#current = new BatchTree(this.#files, generation, []);
      this.#header = header.slice();
      this.#snapshots.thaw();
      return before?.directory ?? null;
    } catch (error) {
      this.#uncertain = error instanceof UncertainSwitch;
      this.#refuseUncertain();
      throw unavailable("the storage cannot create a new vault: the old state is untouched", error);
    }
  }

  async replaceHeader(header: Bytes, before: Bytes): Promise<boolean> {
    const { generation } = this.#mustHaveVault();
    this.#snapshots.refuseFrozen();
    if (this.#header === null || Buffer.compare(this.#header, before) !== 0) return false;
    try {
      await moveIntoPlace(this.#files, join(generation.directory, headerFile), header);
      this.#header = header.slice(); // what the next start finds, even when the fsync fails
      await syncDirectory(this.#files, generation.directory);
      return true;
    } catch (error) {
      throw cannotWrite(error);
    }
  }

  async readDocument(name: string): Promise<StoredDocument | null> {
    const directory = this.#current?.generation.directory;
    if (directory === undefined) return null;
    return readDocument(this.#files, directory, name).catch((error: unknown) => {
      throw cannotRead(error);
    });
  }

  writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    const { directory } = this.#mustHaveVault().generation;
    return this.#documents(() => writeDocument(this.#files, directory, name, bytes, expected)).catch(
      (error: unknown) => {
        throw cannotWrite(error);
      },
    );
  }

  async snapshot(): Promise<StoredSnapshot> {
    const current = this.#mustHaveVault();
    try {
      return await this.#snapshots.replace(() =>
        current.snapshot(this.vaultPath, () => this.#header ?? current.generation.header),
      );
    } catch (error) {
      throw snapshotFailure(error);
    }
  }

  async freeze(reader: Reader): Promise<StoredSnapshot> {
    const { generation, names } = this.#mustHaveVault();
    this.#snapshots.freeze(reader);
    return { directory: generation.directory, count: names.count };
  }

  /** Publishes where the server listens, for clients and commands that look for it. */
  announce(announcement: Announcement): Promise<void> {
    return this.#claim.announce(announcement);
  }

  async close(): Promise<void> {
    this.#snapshots.close();
    await this.#current?.drain().catch(() => {}); // or by the next start
    await this.#claim.release();
  }

  async #isAsExpected(current: BatchTree, { path, expected }: Change): Promise<boolean> {
    if (expected === undefined) return true;
    if (expected === "present") return current.isPresent(path);
    if (expected === "absent") return !current.names.has(path);
    const head = await this.read(path, tagHeadBytes);
    return head !== null && tagOf(head) === expected.tag;
  }

  async #commitOne(current: BatchTree, { path, blob, expected }: Change): Promise<CommitResult> {
    if (blob === null) {
      const removed = await this.#writes(() => current.remove(path)).catch((error: unknown) => {
        throw removalFailure(path, error);
      });
      return removed || expected !== "present" ? { committed: true } : { committed: false, refused: 0 };
    }
    await this.#writes(() => current.write(path, blob)).catch((error: unknown) => {
      throw writeFailure(path, error);
    });
    return { committed: true };
  }

  async #load(): Promise<void> {
    await removeLeftovers(this.#files, this.vaultPath);
    await finishRestored(this.#files, this.vaultPath);
    const generation = await currentGeneration(this.#files, this.vaultPath);
    if (generation === null) return;
    await removeRestoredMark(this.#files, generation.directory);
    // The process that replaced `current` may have been killed before the fsync, and all later writes depend on it.
    await ignoring(syncDirectory(this.#files, this.vaultPath), "EROFS");
    this.madeSecrets = await makeDirectory(this.#files, generation.secrets); // some backups drop empty directories
    const { paths, foreignFiles } = await readTree(this.#files, generation.secrets);
    this.#current = new BatchTree(this.#files, generation, paths);
    this.#header = generation.header;
    this.foreignFiles = foreignFiles;
    await this.#current.replay();
  }

  /** DANGER: acknowledges nothing in a vault that may not be current after the next start. */
  #refuseUncertain(): void {
    if (!this.#uncertain) return;
    const remedy = "stop the server, repair the disk, check that vault/current names the right vault, and start again";
    throw new VaultError("UNAVAILABLE", `an init failed half-way and could not be undone: ${remedy}`);
  }

  #mustHaveVault(): BatchTree {
    this.#refuseUncertain();
    if (this.#current === null) throw new Error("there is no vault");
    return this.#current;
  }
}
