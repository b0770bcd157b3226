/** Opening of a vault in a database. Loads the engine and its client library only when they are needed. */
import type { Clock } from "../../clock.js";
import type { Settings } from "../../config/definitions.js";
import type { Log } from "../../log.js";
import { readConnectionUrl } from "./connection-url.js";
import { findPassword } from "./pass-file.js";
import type { PostgresStore } from "./postgres-store.js";

export type DatabaseSettings = Pick<Settings, "storePasswordFile" | "storeConnections"> & {
  readonly store: string;
  /** Null: no snapshots. */
  readonly snapshotsAt: string | null;
  readonly isServer: boolean;
  /** See `DatabaseOptions`. */
  readonly clock?: Clock;
  /** See `PostgresStoreOptions`. */
  readonly creates: boolean;
};

/** @throws StartError when the database cannot be used. */
export async function openDatabase(settings: DatabaseSettings, log: Log): Promise<PostgresStore> {
  const { store: url, storePasswordFile, storeConnections: poolSize, ...rest } = settings;
  const target = readConnectionUrl(url);
  const password = await findPassword(target, storePasswordFile);
  const { PostgresStore } = await import("./postgres-store.js");
  return PostgresStore.open({ ...rest, target, ...(password !== undefined && { password }), poolSize, log });
}
