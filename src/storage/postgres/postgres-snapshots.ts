/**
 * Snapshots of a vault in a database, each in one repeatable-read transaction. Same layout as snapshots of files:
 * `header.json`, and the blobs of each space in a directory of its name.
 */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { PoolClient } from "pg";
import { systemClock } from "../../clock.js";
import { VaultError } from "../../errors.js";
import { randomName, systemFiles } from "../../files/durable.js";
import { removeTree } from "../../files/remove-tree.js";
import { blobFile } from "../../paths/file-name.js";
import { snapshotFailure } from "../files/errors.js";
import { headerFile } from "../files/generations.js";
import { SnapshotHolder } from "../files/snapshot.js";
import type { StoredSnapshot } from "../secret-store.js";
import type { Database } from "./database.js";
import { databaseUnavailable } from "./database-errors.js";
import { bytesOf } from "./statement-values.js";
import { inTransaction } from "./transaction.js";

const snapshotName = /^snapshot-[0-9a-f]{16}$/;

/** Blobs in memory at once. */
const rowsAtOnce = 64;

/** Reads in table order: along the index, pages are read in random order, which takes many times as long. */
const inTableOrder =
  "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = off";

const oneMoment = "ISOLATION LEVEL REPEATABLE READ READ ONLY";

type BlobRow = { readonly space: string; readonly path: string; readonly blob: string };

export class PostgresSnapshots {
  readonly #database: Database;
  readonly #directory: string | null;
  readonly #holder = new SnapshotHolder(systemFiles, systemClock);

  private constructor(database: Database, directory: string | null) {
    this.#database = database;
    this.#directory = directory;
  }

  /** Removes snapshots left by an earlier server. */
  static async open(database: Database, directory: string | null): Promise<PostgresSnapshots> {
    if (directory !== null) await removeSnapshots(directory);
    return new PostgresSnapshots(database, directory);
  }

  /** @throws VaultError UNAVAILABLE; nothing of the snapshot is left then. */
  async take(): Promise<StoredSnapshot> {
    const directory = this.#directory;
    if (directory === null) throw new Error("the store was opened without a place for snapshots");
    try {
      return await this.#holder.replace(() => this.#write(join(directory, `snapshot-${randomName()}`)));
    } catch (error) {
      throw snapshotFailure(error);
    }
  }

  /** See `SnapshotHolder.close`. */
  close(): Promise<void> {
    return this.#holder.close();
  }

  async #write(directory: string): Promise<StoredSnapshot> {
    try {
      const copy = (client: PoolClient) => inTransaction(client, oneMoment, () => copyVault(client, directory));
      const copying = this.#database.withClient(copy).catch((error: unknown) => {
        throw databaseUnavailable(error);
      });
      return { directory, count: await copying };
    } catch (error) {
      await removeTree(systemFiles, directory).catch(() => {}); // or by the next start
      throw error;
    }
  }
}

async function removeSnapshots(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (snapshotName.test(name)) await removeTree(systemFiles, join(directory, name));
  }
}

/** Returns the number of secrets. */
async function copyVault(client: PoolClient, directory: string): Promise<number> {
  const { rows } = await client.query<{ id: string; header: string }>(
    "SELECT v.id, v.header FROM strongroom.current c JOIN strongroom.vault v ON v.id = c.vault",
  );
  const [vault] = rows;
  if (vault === undefined) throw new VaultError("UNAVAILABLE", "the vault is not initialized: init it first");
  await writeNew(join(directory, headerFile), bytesOf(vault.header));
  await client.query(inTableOrder);
  const secrets = `SELECT 'secrets' AS space, path, blob FROM strongroom.secret WHERE vault = ${Number(vault.id)}`;
  const others = `SELECT space, path, blob FROM strongroom.blob WHERE vault = ${Number(vault.id)}`;
  const count = await copyBlobs(client, secrets, directory);
  await copyBlobs(client, others, directory);
  return count;
}

/** Returns the number of blobs. */
async function copyBlobs(client: PoolClient, query: string, directory: string): Promise<number> {
  await client.query(`DECLARE blobs NO SCROLL CURSOR FOR ${query}`);
  let count = 0;
  for (;;) {
    const { rows } = await client.query<BlobRow>(`FETCH ${rowsAtOnce} FROM blobs`);
    if (rows.length === 0) break;
    for (const { space, path, blob } of rows) await writeNew(blobFile(join(directory, space), path), bytesOf(blob));
    count += rows.length;
  }
  await client.query("CLOSE blobs");
  return count;
}

async function writeNew(file: string, bytes: Uint8Array): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(file, bytes, { mode: 0o600, flag: "wx" });
  } catch (error) {
    throw snapshotFailure(error); // unlike a failure of the database
  }
}
