/** Places of vaults, opened for maintenance without a server: the files of a home, or a database. */
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Bytes } from "../../workers/protocol.js";
import { isStoreUrl, readStoreUrl } from "../config/readers.js";
import { StartError } from "../errors.js";
import { systemFiles } from "../files/durable.js";
import { homeAt, openHome } from "../files/home.js";
import { createLog } from "../log.js";
import { claimVault } from "../storage/files/claim.js";
import { FileStore } from "../storage/files/file-store.js";
import { currentGeneration } from "../storage/files/generations.js";
import { openDatabase, openQueries, type Queries } from "../storage/postgres/open-database.js";
import type { PostgresStore } from "../storage/postgres/postgres-store.js";
import type { SecretStore } from "../storage/secret-store.js";

/** `url` of a database, or the path of a home. */
export type VaultPlace = { readonly home: string; readonly url: null } | { readonly home: null; readonly url: string };

/** `creates`: missing tables are created and old ones updated; otherwise a database without tables has no vault. */
type OpenMode = { readonly creates: boolean };

/** @throws Problem */
export function readPlace(text: string): VaultPlace {
  return isStoreUrl(text) ? { home: null, url: readStoreUrl(text) } : { home: resolve(text), url: null };
}

/** Creates nothing; returns null for a home without a vault. @throws StartError, also when a server uses it. */
export async function openSource({ home, url }: VaultPlace, passwordFile: string | null): Promise<SecretStore | null> {
  return url === null
    ? FileStore.openExisting(homeAt(home).vault)
    : openUnserved(url, passwordFile, { creates: false });
}

/** Creates a missing home, or the tables of an empty database. @throws StartError, also when a server uses it. */
export async function openTarget({ home, url }: VaultPlace, passwordFile: string | null): Promise<SecretStore> {
  return url === null
    ? FileStore.open((await openHome(home)).vault)
    : openUnserved(url, passwordFile, { creates: true });
}

/** Opens a database that no server uses. @throws StartError */
export async function openUnserved(url: string, passwordFile: string | null, mode: OpenMode): Promise<SecretStore> {
  const store = await openDatabaseAt(url, passwordFile, mode);
  try {
    await refuseServed(store);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** In milliseconds. PostgreSQL lists the connections of a server that has ended until its own processes have noticed. */
const connectionEndMs = 3000;

/** @throws StartError when servers are connected to the store's database; a home is claimed instead. */
export async function refuseServed({ shared, vaultPath }: SecretStore): Promise<void> {
  if (shared === undefined) return;
  const deadline = performance.now() + connectionEndMs;
  while ((await shared.serverConnections()) > 0) {
    if (performance.now() > deadline)
      throw new StartError(`servers are connected to ${vaultPath}: stop all of them, then run the command again`);
    await sleep(100);
  }
}

const silent = createLog("error", () => {}, Date.now);

/** Enough for the concurrent reads and writes of maintenance. */
const storeConnections = 8;

/** Opens a database that servers may be using; it takes no snapshots. @throws StartError */
export function openDatabaseAt(
  store: string,
  passwordFile: string | null,
  { creates }: OpenMode,
): Promise<PostgresStore> {
  const settings = { store, storePasswordFile: passwordFile, storeConnections, snapshotsAt: null };
  return openDatabase({ ...settings, isServer: false, creates }, silent);
}

/** Opens a database for statements of one's own. @throws StartError */
export function openQueriesAt(store: string, passwordFile: string | null): Promise<Queries> {
  return openQueries(store, passwordFile, silent);
}

/** Returns the header of a vault that servers may be using; null when there is none. @throws StartError */
export async function readHeader(
  vaultPath: string,
  url: string | null,
  passwordFile: string | null,
): Promise<Bytes | null> {
  if (url === null) return (await currentGeneration(systemFiles, vaultPath))?.header ?? null;
  const store = await openDatabaseAt(url, passwordFile, { creates: false });
  return store.header().finally(() => store.close());
}

export type OpenedDatabase = { readonly store: SecretStore; readonly close: () => Promise<void> };

/** Opens a database as a server with this home would; creates a missing home. @throws StartError */
export async function openClaimedDatabase(
  path: string,
  url: string,
  storePasswordFile: string | null,
): Promise<OpenedDatabase> {
  const { vault } = await openHome(path);
  const claim = await claimVault(vault);
  try {
    const role = { snapshotsAt: vault, isServer: false, creates: false };
    const store = await openDatabase({ store: url, storePasswordFile, storeConnections, ...role }, silent);
    return { store, close: () => store.close().finally(claim.release) };
  } catch (error) {
    await claim.release();
    throw error;
  }
}
