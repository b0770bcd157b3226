/** Secret store on files: the claim on the vault's directory, the current vault in it, and its snapshots. */
import type { Bytes } from "../../../workers/protocol.js";
import { type Clock, systemClock } from "../../clock.js";
import { VaultError } from "../../errors.js";
import { type FileOperations, missingAsNull, systemFiles } from "../../files/durable.js";
import type { Change, CommitResult, Reader, SecretStore, StoredDocument, StoredSnapshot } from "../secret-store.js";
import { type Claim, claimVault } from "./claim.js";
import type { Announcement } from "./claim-holder.js";
import { CurrentVault, type LoadedVault } from "./current-vault.js";
import { currentGeneration, findRestored, switchGeneration, UncertainSwitch } from "./generations.js";
import { SnapshotHolder } from "./snapshot-holder.js";
import { lostSecrets, snapshotFailure, unavailable } from "./store-errors.js";

export class FileStore implements SecretStore {
  readonly vaultPath: string;
  /** See `LoadedVault`. */
  readonly foreignFiles: number;
  readonly madeSecrets: boolean;
  readonly #files: FileOperations;
  readonly #claim: Claim;
  readonly #snapshots: SnapshotHolder;
  #current: CurrentVault | null;
  /** A failed init left it unknown which vault is current on disk. */
  #uncertain = false;

  private constructor(
    vaultPath: string,
    files: FileOperations,
    claim: Claim,
    clock: Clock,
    loaded: LoadedVault | null,
  ) {
    this.vaultPath = vaultPath;
    this.foreignFiles = loaded?.foreignFiles ?? 0;
    this.madeSecrets = loaded?.madeSecrets ?? false;
    this.#files = files;
    this.#claim = claim;
    this.#snapshots = new SnapshotHolder(files, clock);
    this.#current = loaded?.vault ?? null;
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
    const claim = await claimVault(vaultPath);
    try {
      claimed();
      return new FileStore(vaultPath, files, claim, clock, await CurrentVault.load(files, vaultPath));
    } catch (error) {
      await claim.release();
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
    return this.#current?.header ?? null;
  }

  async count(): Promise<number> {
    return this.#current?.names.count ?? 0;
  }

  async list(prefix: string, after: string, limit: number): Promise<readonly string[]> {
    return this.#current?.names.list(prefix, after, limit) ?? [];
  }

  read(path: string, first?: number): Promise<Bytes | null> {
    return this.#current?.read(path, first) ?? Promise.resolve(null);
  }

  async commit(changes: readonly Change[]): Promise<CommitResult> {
    return this.#mustBeWritable().commit(changes);
  }

  async settle(path: string): Promise<void> {
    return this.#mustBeWritable().settle(path);
  }

  async startNewVault(header: Bytes): Promise<string | null> {
    this.#refuseUncertain();
    try {
      await this.#current?.drain(); // the old vault is kept whole
      const before = this.#current?.generation ?? null;
      const generation = await switchGeneration(this.#files, this.vaultPath, header.slice(), before);
      this.#current = new CurrentVault(this.#files, generation, []);
      this.#snapshots.thaw();
      return before?.directory ?? null;
    } catch (error) {
      this.#uncertain = error instanceof UncertainSwitch;
      this.#refuseUncertain();
      throw unavailable("the storage cannot create a new vault: the old state is untouched", error);
    }
  }

  async replaceHeader(header: Bytes, before: Bytes): Promise<boolean> {
    return this.#mustBeWritable().replaceHeader(header, before);
  }

  async readDocument(name: string): Promise<StoredDocument | null> {
    return this.#current?.documents.read(name) ?? null;
  }

  async writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    return this.#mustHaveVault().documents.write(name, bytes, expected);
  }

  async snapshot(): Promise<StoredSnapshot> {
    const current = this.#mustHaveVault();
    try {
      return await this.#snapshots.replace(() => current.snapshot(this.vaultPath));
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

  /** DANGER: acknowledges nothing in a vault that may not be current after the next start. */
  #refuseUncertain(): void {
    if (!this.#uncertain) return;
    const remedy = "stop the server, repair the disk, check that vault/current names the right vault, and start again";
    throw new VaultError("UNAVAILABLE", `an init failed half-way and could not be undone: ${remedy}`);
  }

  #mustHaveVault(): CurrentVault {
    this.#refuseUncertain();
    if (this.#current === null) throw new Error("there is no vault");
    return this.#current;
  }

  #mustBeWritable(): CurrentVault {
    const current = this.#mustHaveVault();
    this.#snapshots.refuseFrozen();
    return current;
  }
}
