/** Database schema: created or updated by the first server that starts. */
import type { PoolClient } from "pg";
import { StartError } from "../../errors.js";
import type { Database } from "./database.js";
import { lockClass, locks, migrations } from "./migrations.js";
import { type ForeignOwner, foreignOwnerError, readOwners, type SchemaOwners } from "./schema-owners.js";
import { inTransaction } from "./transaction.js";

const lock = `(${lockClass}, ${locks.migrating})`;

/** Most that a step of an update may take, or the wait for another server's update, in milliseconds. */
const updateMs = 60_000;

/**
 * Creates the schema, or updates it; returns a foreign owner of it, if there is one.
 * @throws StartError when it is newer than this program, or belongs to another role and holds no vault.
 */
export async function updateSchema(database: Database): Promise<ForeignOwner | null> {
  return database.withClient(async (client) => {
    const owners = await usableOwners(client);
    if ((await readVersion(client, owners)) === migrations.length) return owners.foreign; // needs no right to change the schema
    // DANGER: outside the transaction, whose view of the schema would be older than the wait for the lock.
    await client.query(unhurried(`SELECT pg_advisory_lock${lock}`));
    try {
      return await inTransaction(client, "", () => updateAlone(client));
    } finally {
      await client.query(`SELECT pg_advisory_unlock${lock}`).catch(() => {}); // a connection that failed has lost it
    }
  });
}

export type FoundSchema = { readonly exists: boolean; readonly foreign: ForeignOwner | null };

/** Creates nothing. @throws StartError as `updateSchema`, and when the schema is older than this program. */
export async function findSchema(database: Database): Promise<FoundSchema> {
  return database.withClient(async (client) => {
    const owners = await usableOwners(client);
    const version = await readVersion(client, owners);
    if (version !== null && version < migrations.length) throw new StartError(tooOld);
    return { exists: version !== null, foreign: owners.foreign };
  });
}

/**
 * Vaults of earlier versions may be in a schema of any role.
 * @throws StartError when the schema belongs to a role that is not trusted, and holds no vault.
 */
async function usableOwners(client: PoolClient): Promise<SchemaOwners> {
  const owners = await readOwners(client);
  const { foreign, hasVaultTable } = owners;
  if (foreign !== null && !(hasVaultTable && (await hasVault(client)))) throw foreignOwnerError(foreign);
  return owners;
}

async function hasVault(client: PoolClient): Promise<boolean> {
  return (await client.query("SELECT FROM strongroom.vault LIMIT 1")).rows.length > 0;
}

const tooOld =
  "the database belongs to an earlier strongroom: start a server of this version on it, or run strongroom doctor --fix";

const notOurs = "strongroom.schema_version in the database was changed by hand: restore a backup into another database";

async function updateAlone(client: PoolClient): Promise<ForeignOwner | null> {
  const owners = await usableOwners(client);
  const version = await readVersion(client, owners);
  if (version === null) await create(client, owners);
  for (const text of migrations.slice(version ?? 0)) await client.query(unhurried(text));
  // Without a key, a table of a publication takes no update.
  await client.query("ALTER TABLE strongroom.schema_version REPLICA IDENTITY FULL");
  await client.query(`UPDATE strongroom.schema_version SET version = ${migrations.length}`);
  return owners.foreign;
}

function unhurried(text: string) {
  return { text, query_timeout: updateMs };
}

/** DANGER: a schema that was not there for `usableOwners` must not be there: the statement fails then. */
async function create(client: PoolClient, { schemaExists }: SchemaOwners): Promise<void> {
  if (!schemaExists) await client.query("CREATE SCHEMA strongroom");
  await client.query("CREATE TABLE strongroom.schema_version (version integer NOT NULL)");
  await client.query("INSERT INTO strongroom.schema_version VALUES (0)");
}

/** Returns null when there is no schema. @throws StartError when it is newer than this program. */
async function readVersion(client: PoolClient, { hasVersionTable }: SchemaOwners): Promise<number | null> {
  if (!hasVersionTable) return null;
  const { rows } = await client.query<{ version: string | null }>(
    "SELECT version FROM strongroom.schema_version LIMIT 2",
  );
  const version = rows.length === 1 ? Number(rows[0]?.version ?? Number.NaN) : Number.NaN;
  if (!(version >= 0)) throw new StartError(notOurs);
  if (version > migrations.length)
    throw new StartError("the database belongs to a newer strongroom: install that version on this server");
  return version;
}
