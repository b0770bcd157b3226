/**
 * Secret store in a PostgreSQL database that any number of servers share. Nothing is cached: every answer carries the epoch
 * of the vault it came from, and an answer from any other epoch than the expected one is refused.
 */
import { createHash, randomUUID } from "node:crypto";
import type { Bytes } from "../../../workers/protocol.js";
import { VaultError } from "../../errors.js";
import {
  type Basis,
  type Change,
  type CommitResult,
  type Listed,
  maxDocumentBytes,
  type SecretStore,
  type SharedStore,
  type StoredDocument,
  type StoredSnapshot,
} from "../secret-store.js";
import { type ConnectionTarget, shownTarget } from "./connection-url.js";
import { Database, type DatabaseOptions, type Row, serverName, type Value } from "./database.js";
import { databaseStartError } from "./database-errors.js";
import { locks } from "./migrations.js";
import { PostgresSnapshots } from "./postgres-snapshots.js";
import { hasSchema, updateSchema } from "./schema.js";
import { bytesOf, changesParameters, expectedText, pathsBelow } from "./statement-values.js";
import { type Statement, statements } from "./statements.js";

export type PostgresStoreOptions = DatabaseOptions & {
  /** Directory on this machine for snapshots: absolute, existing, private to the user, of this server alone. Null: none are taken. */
  readonly snapshotsAt: string | null;
  /** Creates or updates the schema. False for reading: a database without the schema then has no vault. */
  readonly creates: boolean;
};

/** A batch of many bytes has more time: milliseconds for each mebibyte. */
const msPerMebibyte = 250;

export class PostgresStore implements SecretStore, SharedStore {
  readonly shared: SharedStore = this;
  /** Host and database only: everyone may ask for it. */
  readonly vaultPath: string;
  readonly #hasSchema: boolean;
  readonly #database: Database;
  readonly #snapshots: PostgresSnapshots;
  #epoch = "";
  #generation: string | null = null;
  /** The epoch that a change of this server makes, while it runs. */
  #nextEpoch: string | null = null;
  #onReplaced: () => void = () => {};

  private constructor(target: ConnectionTarget, database: Database, snapshots: PostgresSnapshots, hasSchema: boolean) {
    this.vaultPath = shownTarget(target);
    this.#hasSchema = hasSchema;
    this.#database = database;
    this.#snapshots = snapshots;
  }

  /**
   * Connects, and prepares the schema.
   * @throws StartError when the database cannot be reached or used; no message contains any part of the URL.
   */
  static async open(options: PostgresStoreOptions): Promise<PostgresStore> {
    const database = await Database.open(options);
    try {
      if (options.creates) await updateSchema(database);
      const snapshots = await PostgresSnapshots.open(database, options.snapshotsAt);
      const isThere = options.creates || (await hasSchema(database));
      const store = new PostgresStore(options.target, database, snapshots, isThere);
      await store.header();
      return store;
    } catch (error) {
      await database.close();
      throw databaseStartError(error instanceof VaultError ? error.cause : error);
    }
  }

  get generation(): string | null {
    return this.#generation;
  }

  onReplaced(listener: () => void): void {
    this.#onReplaced = listener;
  }

  async confirm(): Promise<void> {
    await this.#ask(statements.epoch, []);
  }

  async serverConnections(): Promise<number> {
    const [row] = await this.#database.query(statements.serverConnections, [serverName]);
    return Number(row?.[0]);
  }

  async header(): Promise<Bytes | null> {
    if (!this.#hasSchema) return null;
    const [row] = await this.#database.query(statements.header, []);
    const [epoch, generation = null, header = null] = row ?? [];
    this.#epoch = epoch ?? "";
    this.#generation = generation;
    return header === null ? null : bytesOf(header);
  }

  async count(): Promise<number> {
    const [count] = await this.#ask(statements.count, []);
    return Number(count);
  }

  async list(prefix: string, after: string, limit: number): Promise<readonly string[]> {
    const below = pathsBelow(prefix);
    const [paths] =
      below === null
        ? await this.#ask(statements.list, [prefix, after, limit])
        : await this.#ask(statements.listBelow, [prefix, after, limit, below]);
    return JSON.parse(paths ?? "[]") as string[];
  }

  async listWithHeads(prefix: string, after: string, limit: number, first: number): Promise<readonly Listed[]> {
    const below = pathsBelow(prefix);
    const [paths, heads] =
      below === null
        ? await this.#ask(statements.listHeads, [prefix, after, limit, first])
        : await this.#ask(statements.listHeadsBelow, [prefix, after, limit, below, first]);
    const digits = (heads ?? "").split(",");
    return (JSON.parse(paths ?? "[]") as string[]).map((path, i) => ({ path, head: bytesOf(`\\x${digits[i]}`) }));
  }

  alone(work: () => Promise<void>): Promise<boolean> {
    return this.#database.alone(locks.sweeping, work);
  }

  async read(path: string, first?: number): Promise<Bytes | null> {
    const [blob = null] =
      first === undefined
        ? await this.#ask(statements.read, [path])
        : await this.#ask(statements.readHead, [path, first]);
    return blob === null ? null : bytesOf(blob);
  }

  async commit(changes: readonly Change[]): Promise<CommitResult> {
    const [only, another] = changes;
    if (only === undefined) return { committed: true };
    if (another !== undefined) return this.commitOn(changes, []);
    const { path, blob, expected } = only;
    return commitResult(await this.#ask(statements.commitOne, [this.#epoch, path, blob, expectedText(expected)]));
  }

  async commitOn(changes: readonly Change[], bases: readonly Basis[]): Promise<CommitResult> {
    const { values, bytes } = changesParameters(changes, bases);
    const extraMs = (bytes / 2 ** 20) * msPerMebibyte;
    return commitResult(await this.#ask(statements.commitMany, [this.#epoch, ...values], extraMs));
  }

  async startNewVault(header: Bytes): Promise<string | null> {
    const [kept = null, made = null] = await this.#changeEpoch((next) =>
      this.#ask(statements.startVault, [this.#epoch, next, header]),
    );
    this.#generation = made;
    return kept === null ? null : `vault ${kept} in ${this.vaultPath}`;
  }

  async replaceHeader(header: Bytes, before: Bytes): Promise<boolean> {
    try {
      const [replaced] = await this.#changeEpoch((next) =>
        this.#ask(statements.replaceHeader, [this.#epoch, next, header, before]),
      );
      return replaced === "t";
    } catch (error) {
      if (error instanceof VaultError && error.code === "VAULT_LOCKED") return false;
      throw error;
    }
  }

  async readDocument(name: string): Promise<StoredDocument | null> {
    const [bytes = null, tag = null] = await this.#ask(statements.readDocument, [name]);
    return bytes === null || tag === null ? null : { bytes: bytesOf(bytes), tag };
  }

  async documentTag(name: string): Promise<string | null> {
    const [tag = null] = await this.#ask(statements.documentTag, [name]);
    return tag;
  }

  async writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    if (bytes.length > maxDocumentBytes) throw new Error(`a document has more than ${maxDocumentBytes} bytes`);
    const tag = createHash("sha256").update(bytes).digest("base64url").slice(0, 16);
    const [written] = await this.#ask(statements.writeDocument, [this.#epoch, name, bytes, tag, expected]);
    return written === "t" ? tag : null;
  }

  snapshot(): Promise<StoredSnapshot> {
    return this.#snapshots.take();
  }

  async freeze(): Promise<StoredSnapshot> {
    const remedy = "free space in the server's home, then try again";
    throw new VaultError("UNAVAILABLE", `the disk of the server's home has no space for a snapshot: ${remedy}`);
  }

  async close(): Promise<void> {
    this.#snapshots.close();
    await this.#database.close();
  }

  /** Once committed, the new epoch is the expected one; answers that arrive before the change's own are accepted, too. */
  async #changeEpoch(change: (next: string) => Promise<Row>): Promise<Row> {
    const next = randomUUID();
    this.#nextEpoch = next;
    try {
      return await change(next);
    } finally {
      this.#nextEpoch = null;
    }
  }

  /** Returns the first row, without the epoch. @throws VaultError VAULT_LOCKED when it is not the one in mind. */
  async #ask(statement: Statement, values: readonly Value[], extraMs?: number): Promise<Row> {
    const asked = this.#epoch;
    const [row] = await this.#database.query(statement, values, extraMs);
    const [epoch = null, ...rest] = row ?? [];
    if (epoch !== null && epoch === this.#nextEpoch) this.#epoch = epoch;
    if (epoch === this.#epoch) return rest;
    if (epoch === asked && statement.isChange !== true) return this.#ask(statement, values, extraMs); // an own change came first
    this.#onReplaced();
    const problem = "another server has replaced the vault or changed its keys";
    throw new VaultError("VAULT_LOCKED", `${problem}: unlock it again, with its present passphrase`);
  }
}

function commitResult([refused = null]: Row): CommitResult {
  return refused === null ? { committed: true } : { committed: false, refused: Number(refused) };
}
