/** Schema of the database: made, or brought to the present version, by the first of the servers that start. */
import type { PoolClient } from "pg";
import { StartError } from "../../errors.js";
import type { Database } from "./database.js";
import { lockClass, locks, migrations } from "./migrations.js";

const lock = `(${lockClass}, ${locks.migrating})`;

/** @throws StartError when the schema is newer than this program. */
export async function migrate(database: Database): Promise<void> {
  await database.withClient(async (client) => {
    if ((await versionOf(client)) === migrations.length) return; // needs no right to change the schema
    // DANGER: not in the transaction, which would go on with what it knew of the schema before it waited.
    await client.query(`SELECT pg_advisory_lock${lock}`);
    try {
      await inTransaction(client, () => migrateAlone(client));
    } finally {
      await client.query(`SELECT pg_advisory_unlock${lock}`).catch(() => {}); // a connection that failed has lost it
    }
  });
}

async function inTransaction(client: PoolClient, work: () => Promise<void>): Promise<void> {
  await client.query("BEGIN");
  try {
    await work();
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {}); // the failure itself is what matters
    throw error;
  }
}

async function migrateAlone(client: PoolClient): Promise<void> {
  const version = await versionOf(client);
  if (version === 0) await create(client);
  for (const [at, text] of migrations.entries()) if (at >= version) await client.query(text);
  await client.query(`UPDATE strongroom.schema_version SET version = ${migrations.length}`);
}

async function create(client: PoolClient): Promise<void> {
  if (!(await exists(client, "to_regnamespace('strongroom')"))) await client.query("CREATE SCHEMA strongroom");
  await client.query("CREATE TABLE strongroom.schema_version (version integer NOT NULL)");
  await client.query("INSERT INTO strongroom.schema_version VALUES (0)");
}

/** Returns 0 when there is none. @throws StartError when it is newer than this program. */
async function versionOf(client: PoolClient): Promise<number> {
  if (!(await exists(client, "to_regclass('strongroom.schema_version')"))) return 0;
  const { rows } = await client.query("SELECT version FROM strongroom.schema_version");
  const version = Number(rows[0]?.version);
  if (version > migrations.length)
    throw new StartError("the database belongs to a newer strongroom: install that version on this server, too");
  return version;
}

async function exists(client: PoolClient, name: string): Promise<boolean> {
  const { rows } = await client.query(`SELECT ${name} IS NOT NULL AS found`);
  return rows[0]?.found === "t";
}
