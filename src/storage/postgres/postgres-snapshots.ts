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
import { isSecretPath, maxPathBytes } from "../../paths/secret-path.js";
import { snapshotFailure } from "../files/errors.js";
import { headerFile } from "../files/generations.js";
import { SnapshotHolder } from "../files/snapshot.js";
import { type Space, type StoredSnapshot, spaces } from "../secret-store.js";
import { answerMs, type Database, extraMsFor } from "./database.js";
import { databaseUnavailable } from "./database-errors.js";
import { decodeBytea } from "./statement-values.js";
import { maxBlobBytes, maxHeaderBytes } from "./statements.js";
import { inTransaction } from "./transaction.js";

const snapshotName = /^snapshot-[0-9a-f]{16}$/;

/** Blobs in memory at once, as text of twice their length; a larger one is read alone. */
const rowsAtOnce = 64;
const maxBytesAtOnce = 16 * 2 ** 20;

/** Reads in table order: along the index, pages are read in random order, which takes many times as long. */
const inTableOrder =
  "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = off";

const oneMoment = "ISOLATION LEVEL REPEATABLE READ READ ONLY";

/** `blob`: null when it is read alone. */
type BlobRow = { readonly path: string; readonly length: string; readonly blob: string | null };

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
    `SELECT v.id, substring(v.header FROM 1 FOR ${maxHeaderBytes + 1}) AS header FROM strongroom.current c
  JOIN strongroom.vault v ON v.id = c.vault`,
  );
  const [vault] = rows;
  if (vault === undefined) throw new VaultError("UNAVAILABLE", "the vault is not initialized: init it first");
  await writeNew(join(directory, headerFile), decodeBytea(vault.header));
  await client.query(inTableOrder);
  const counts = [];
  for (const space of spaces) counts.push(await copyBlobs(client, blobsIn(space, vault.id), join(directory, space)));
  return counts[0] ?? 0;
}

/** DANGER: without a path that the server writes, a row could become a file outside of the directory. */
function blobsIn(space: Space, vault: string): string {
  const table = space === "secrets" ? "strongroom.secret" : "strongroom.blob";
  const inSpace = space === "secrets" ? "" : ` AND space = '${space}'`;
  return `FROM ${table} WHERE vault = ${Number(vault)}${inSpace} AND octet_length(path) <= ${maxPathBytes}
  AND octet_length(blob) <= ${maxBlobBytes}`;
}

/** Returns the number of blobs. Rows that no server has written are left out, as in a directory of files. */
async function copyBlobs(client: PoolClient, blobs: string, directory: string): Promise<number> {
  const blob = `CASE WHEN octet_length(blob) <= ${maxBytesAtOnce / rowsAtOnce} THEN blob END AS blob`;
  await client.query(`DECLARE blobs NO SCROLL CURSOR FOR SELECT path, octet_length(blob) AS length, ${blob} ${blobs}`);
  let count = 0;
  for (;;) {
    const { rows } = await client.query<BlobRow>(limited(`FETCH ${rowsAtOnce} FROM blobs`, maxBytesAtOnce));
    if (rows.length === 0) break;
    for (const { path, length, blob: small } of rows.filter((row) => isSecretPath(row.path))) {
      const alone = { ...limited(`SELECT blob ${blobs} AND path = $1`, Number(length)), values: [path] };
      const found = small ?? (await client.query<BlobRow>(alone)).rows[0]?.blob;
      await writeNew(blobFile(directory, path), decodeBytea(found ?? "\\x"));
      count++;
    }
  }
  await client.query("CLOSE blobs");
  return count;
}

/** How many times as long as a batch an answer may take for its bytes: no other request waits for a snapshot. */
const patience = 4;

/** DANGER: with a fixed limit, one blob that is large for the connection would make every snapshot fail. */
function limited(text: string, bytes: number) {
  return { text, query_timeout: answerMs + patience * extraMsFor(bytes) };
}

async function writeNew(file: string, bytes: Uint8Array): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(file, bytes, { mode: 0o600, flag: "wx" });
  } catch (error) {
    throw snapshotFailure(error); // unlike a failure of the database
  }
}
