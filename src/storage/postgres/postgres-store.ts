/** Secret store in a PostgreSQL database that any number of servers share. Nothing is cached. */
import { hash } from "node:crypto";
import type { Bytes } from "../../../workers/protocol.js";
import { VaultError } from "../../errors.js";
import {
  type Change,
  type CommitResult,
  type DocumentChange,
  documentChanged,
  type Listed,
  maxDocumentBytes,
  type NamedDocument,
  type ReadVersion,
  type SecretStore,
  type SharedStore,
  type Space,
  type StoredDocument,
  type StoredSnapshot,
  type StoreProblem,
} from "../secret-store.js";
import { type ConnectionTarget, shownTarget } from "./connection-url.js";
import { Database, type DatabaseOptions, extraMsFor, type Row, serverName } from "./database.js";
import { databaseStartError } from "./database-errors.js";
import { EpochGuard } from "./epoch-guard.js";
import { locks } from "./migrations.js";
import { PostgresSnapshots } from "./postgres-snapshots.js";
import { type FoundSchema, findSchema, updateSchema } from "./schema.js";
import { ownerProblem } from "./schema-owners.js";
import {
  changesParameters,
  decodeBytea,
  documentsParameters,
  documentTag,
  expectedText,
  pathsBelow,
} from "./statement-values.js";
import { maxHeadsBytes, statements, statementsIn, tooLarge } from "./statements.js";

type PostgresStoreOptions = DatabaseOptions & {
  /** Local directory for snapshots: absolute, existing, private to the user, used only by this server. Null: no snapshots. */
  readonly snapshotsAt: string | null;
  /** Creates or updates the schema. False for reading: a database without the schema then has no vault. */
  readonly creates: boolean;
};

/** Extra time for reading all rows, in milliseconds. */
const wholeTablesMs = 120_000;

export class PostgresStore implements SecretStore, SharedStore {
  readonly shared: SharedStore = this;
  /** Host and database only: anyone may read it. */
  readonly vaultPath: string;
  readonly foreignOwner: StoreProblem | null;
  readonly #schemaExists: boolean;
  readonly #database: Database;
  readonly #snapshots: PostgresSnapshots;
  readonly #guard: EpochGuard;

  private constructor(
    target: ConnectionTarget,
    database: Database,
    snapshots: PostgresSnapshots,
    { exists, foreign }: FoundSchema,
  ) {
    this.vaultPath = shownTarget(target);
    this.foreignOwner = foreign && ownerProblem(foreign);
    this.#schemaExists = exists;
    this.#database = database;
    this.#snapshots = snapshots;
    this.#guard = new EpochGuard(database);
  }

  /**
   * Connects, and prepares the schema.
   * @throws StartError when the database cannot be reached or used; no message contains any part of the URL.
   */
  static async open(options: PostgresStoreOptions): Promise<PostgresStore> {
    const database = await Database.open(options);
    try {
      const schema = options.creates
        ? { exists: true, foreign: await updateSchema(database) }
        : await findSchema(database);
      const snapshots = await PostgresSnapshots.open(database, options.snapshotsAt);
      const store = new PostgresStore(options.target, database, snapshots, schema);
      await store.header();
      const { foreignOwner: found } = store;
      if (found !== null) options.log.warn({ event: "foreign-owner", hint: `${found.message}: ${found.remedy}` });
      return store;
    } catch (error) {
      await database.close();
      throw databaseStartError(error instanceof VaultError ? error.cause : error);
    }
  }

  get generation(): string | null {
    return this.#guard.generation;
  }

  onReplaced(listener: () => void): void {
    this.#guard.onReplaced = listener;
  }

  async confirm(): Promise<void> {
    await this.#guard.ask(statements.epoch, []);
  }

  async serverConnections(): Promise<number> {
    const [row] = await this.#database.query(statements.serverConnections, [serverName]);
    return Number(row?.[0]);
  }

  async header(): Promise<Bytes | null> {
    if (!this.#schemaExists) return null;
    return this.#guard.readHeader();
  }

  async count(space: Space = "secrets"): Promise<number> {
    const [count] = await this.#guard.ask(statementsIn[space].count, []);
    return Number(count);
  }

  async list(prefix: string, after: string, limit: number, space: Space = "secrets"): Promise<readonly string[]> {
    const below = pathsBelow(prefix);
    const { list, listBelow } = statementsIn[space];
    const [paths] =
      below === null
        ? await this.#guard.ask(list, [prefix, after, limit])
        : await this.#guard.ask(listBelow, [prefix, after, limit, below]);
    return JSON.parse(paths ?? "[]") as string[];
  }

  async listWithHeads(
    prefix: string,
    after: string,
    limit: number,
    first: number,
    space: Space = "secrets",
  ): Promise<readonly Listed[]> {
    const below = pathsBelow(prefix);
    const { listHeads, listHeadsBelow } = statementsIn[space];
    const most = Math.min(first, Math.floor(maxHeadsBytes / limit));
    const [paths, heads] =
      below === null
        ? await this.#guard.ask(listHeads, [prefix, after, limit, most])
        : await this.#guard.ask(listHeadsBelow, [prefix, after, limit, below, most]);
    const digits = (heads ?? "").split(",");
    const found: Listed[] = [];
    for (const [i, path] of (JSON.parse(paths ?? "[]") as string[]).entries()) {
      const begin = decodeBytea(`\\x${digits[i] ?? ""}`);
      const isCut = most < first && begin.length === most;
      const head = isCut ? await this.read(path, first, space) : begin;
      if (head !== null) found.push({ path, head });
    }
    return found;
  }

  async currentRun(): Promise<string> {
    const [run] = await this.#guard.ask(statements.currentRun, []);
    return run ?? "";
  }

  async foreignRows(): Promise<readonly string[]> {
    if (!this.#schemaExists) return [];
    const rows = await this.#database.query(statements.foreignRows, [], wholeTablesMs);
    return rows.flatMap(([what]) => what ?? []);
  }

  alone(work: () => Promise<void>, path?: string): Promise<boolean> {
    return this.#database.alone(path === undefined ? locks.sweeping : lockForPath(path), work);
  }

  async read(path: string, first?: number, space: Space = "secrets"): Promise<Bytes | null> {
    const { read, readHead } = statementsIn[space];
    const [blob = null] =
      first === undefined ? await this.#guard.ask(read, [path]) : await this.#guard.ask(readHead, [path, first]);
    if (blob === tooLarge)
      throw new VaultError("INTEGRITY", `${path} in the database is too large to be a sealed secret: delete it`);
    return blob === null ? null : decodeBytea(blob);
  }

  async commit(changes: readonly Change[]): Promise<CommitResult> {
    const [only, another] = changes;
    if (only === undefined) return { committed: true };
    const { space = "secrets", path, blob, expected } = only;
    if (another !== undefined || space !== "secrets") return this.commitOn(changes, []);
    return commitResult(await this.#guard.ask(statements.commitOne, [path, blob, expectedText(expected)]));
  }

  async commitOn(changes: readonly Change[], bases: readonly ReadVersion[]): Promise<CommitResult> {
    const { values, bytes } = changesParameters(changes, bases);
    return commitResult(await this.#guard.ask(statements.commitMany, values, extraMsFor(bytes)));
  }

  /** A read returns only what is committed. */
  async flush(): Promise<void> {}

  async startNewVault(header: Bytes, documents: readonly NamedDocument[] = []): Promise<string | null> {
    const kept = await this.#guard.startVault(header, documentsParameters(documents));
    return kept === null ? null : `vault ${kept} in ${this.vaultPath}`;
  }

  async replaceHeader(header: Bytes, before: Bytes, document: DocumentChange | null = null): Promise<boolean> {
    const values = document && [document.name, document.bytes, documentTag(document.bytes), document.expected];
    const replaced = await this.#guard.replaceHeader(header, before, values);
    if (replaced === null) throw documentChanged();
    return replaced;
  }

  async readDocument(name: string): Promise<StoredDocument | null> {
    const [bytes = null, tag = null] = await this.#guard.ask(statements.readDocument, [name]);
    return bytes === null || tag === null ? null : { bytes: decodeBytea(bytes), tag };
  }

  async documentTags(names: readonly string[]): Promise<readonly (string | null)[]> {
    const [tags] = await this.#guard.ask(statements.documentTags, [names]);
    return (tags ?? "").split(",").map((tag) => tag || null);
  }

  async writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    if (bytes.length > maxDocumentBytes) throw new Error(`a document has more than ${maxDocumentBytes} bytes`);
    const tag = documentTag(bytes);
    const [written] = await this.#guard.ask(statements.writeDocument, [name, bytes, tag, expected]);
    return written === "t" ? tag : null;
  }

  snapshot(): Promise<StoredSnapshot> {
    return this.#snapshots.take();
  }

  async freeze(): Promise<StoredSnapshot> {
    const remedy = "free space or make it writable, then try again";
    throw new VaultError("UNAVAILABLE", `the server's home is full or read-only, and takes no snapshot: ${remedy}`);
  }

  async close(): Promise<void> {
    await this.#snapshots.close();
    await this.#database.close();
  }
}

function commitResult([refused = null]: Row): CommitResult {
  return refused === null ? { committed: true } : { committed: false, refused: Number(refused) };
}

/** Number of an advisory lock: negative, unlike the others. Two paths may share one, and take turns then. */
function lockForPath(path: string): number {
  return -1 - (Number.parseInt(hash("sha256", path).slice(0, 8), 16) >>> 1);
}
