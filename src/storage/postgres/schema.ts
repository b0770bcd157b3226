/** Database schema: created or updated by the first server that starts. */
import type { PoolClient } from "pg";
import { StartError } from "../../errors.js";
import type { Database } from "./database.js";
import { lockClass, locks, migrations } from "./migrations.js";
import { inTransaction } from "./transaction.js";

const lock = `(${lockClass}, ${locks.migrating})`;

/** Most that a step of an update may take, or the wait for another server's update, in milliseconds. */
const updateMs = 60_000;

/** Creates the schema, or updates it. @throws StartError when it is newer than this program. */
export async function updateSchema(database: Database): Promise<void> {
  await database.withClient(async (client) => {
    if ((await versionOf(client)) === migrations.length) return; // needs no right to change the schema
    // DANGER: outside the transaction, whose view of the schema would be older than the wait for the lock.
    await client.query(unhurried(`SELECT pg_advisory_lock${lock}`));
    try {
      await inTransaction(client, "", () => updateAlone(client));
    } finally {
      await client.query(`SELECT pg_advisory_unlock${lock}`).catch(() => {}); // a connection that failed has lost it
    }
  });
}

/** Returns false when there is none. @throws StartError when it is older or newer than this program. */
export async function hasSchema(database: Database): Promise<boolean> {
  const version = await database.withClient(versionOf);
  if (version !== null && version < migrations.length) throw new StartError(tooOld);
  return version !== null;
}

const tooOld =
  "the database belongs to an earlier strongroom: start a server of this version on it, or run strongroom doctor --fix";

const notOurs = "strongroom.schema_version in the database was changed by hand: restore a backup into another database";

async function updateAlone(client: PoolClient): Promise<void> {
  const version = await versionOf(client);
  if (version === null) await create(client);
  for (const text of migrations.slice(version ?? 0)) await client.query(unhurried(text));
  await client.query(`UPDATE strongroom.schema_version SET version = ${migrations.length}`);
}

function unhurried(text: string) {
  return { text, query_timeout: updateMs };
}

async function create(client: PoolClient): Promise<void> {
  if (!(await exists(client, "to_regnamespace('strongroom')"))) await client.query("CREATE SCHEMA strongroom");
  await client.query("CREATE TABLE strongroom.schema_version (version integer NOT NULL)");
  await client.query("INSERT INTO strongroom.schema_version VALUES (0)");
}

/** Returns null when there is no schema. @throws StartError when it is newer than this program. */
async function versionOf(client: PoolClient): Promise<number | null> {
  if (!(await exists(client, "to_regclass('strongroom.schema_version')"))) return null;
  const { rows } = await client.query<{ version: string | null }>(
    "SELECT version FROM strongroom.schema_version LIMIT 2",
  );
  const version = rows.length === 1 ? Number(rows[0]?.version ?? Number.NaN) : Number.NaN;
  if (!(version >= 0)) throw new StartError(notOurs);
  if (version > migrations.length)
    throw new StartError("the database belongs to a newer strongroom: install that version on this server");
  return version;
}

async function exists(client: PoolClient, name: string): Promise<boolean> {
  const { rows } = await client.query(`SELECT ${name} IS NOT NULL AS found`);
  return rows[0]?.found === "t";
}
