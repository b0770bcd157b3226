/** Opening of a vault in a database, and of a database for statements of one's own. Loads the engine and its client library only when they are needed. */
import type { Clock } from "../../clock.js";
import type { Settings } from "../../config/definitions.js";
import type { Log } from "../../log.js";
import { readConnectionUrl } from "./connection-url.js";
import { openPassword } from "./pass-file.js";
import type { PostgresStore } from "./postgres-store.js";

type DatabaseSettings = Pick<Settings, "storePasswordFile" | "storeConnections"> & {
  readonly store: string;
  /** Null: no snapshots. */
  readonly snapshotsAt: string | null;
  readonly isServer: boolean;
  readonly clock?: Clock;
  /** See `PostgresStoreOptions`. */
  readonly creates: boolean;
};

/** @throws StartError when the database cannot be used. */
export async function openDatabase(settings: DatabaseSettings, log: Log): Promise<PostgresStore> {
  const { store: url, storePasswordFile, storeConnections: poolSize, ...rest } = settings;
  const target = readConnectionUrl(url);
  const password = await openPassword(target, storePasswordFile);
  const { PostgresStore } = await import("./postgres-store.js");
  return PostgresStore.open({ ...rest, target, password, poolSize, log });
}

/** Rows with all columns in PostgreSQL's text format. */
type QueryRows = readonly Readonly<Record<string, string | null>>[];

/**
 * Opens a database that servers may be using, whatever its schema's version is; the first query is refused as a start would be
 * where a foreign role has put code into it. @throws StartError for a wrong URL or password file
 */
export async function openQueries(url: string, passwordFile: string | null, log: Log) {
  const target = readConnectionUrl(url);
  const password = await openPassword(target, passwordFile);
  const [{ Database }, { readOwners }] = await Promise.all([import("./database.js"), import("./schema-owners.js")]);
  const database = await Database.open({ target, password, poolSize: 1, isServer: false, log });
  let isChecked = false;
  return {
    query: (text: string, values: readonly (string | number)[]): Promise<QueryRows> =>
      database.withClient(async (client) => {
        if (!isChecked) await readOwners(client);
        isChecked = true;
        return (await client.query(text, [...values])).rows;
      }),
    close: () => database.close(),
  };
}
