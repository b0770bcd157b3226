/** Opening of a server's store with the claim on its home: files in the home or, where a setting says so, a database. */
import { join } from "node:path";
import type { Clock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { type FileOperations, missingAsNull } from "../files/durable.js";
import type { Home } from "../files/home.js";
import type { Log } from "../log.js";
import { type Claim, claimVault } from "../storage/files/claim.js";
import { FileStore } from "../storage/files/file-store.js";
import type { SecretStore } from "../storage/secret-store.js";

export type ClaimedStore = {
  readonly store: SecretStore;
  /** Publishes where the server listens, for clients and commands that look for it. */
  readonly announce: Claim["announce"];
  /** Releases the claim on the home; after the store was closed. */
  readonly release: () => Promise<void>;
};

export type StoreOptions = {
  readonly settings: Pick<Settings, "store" | "storePasswordFile" | "storeConnections">;
  readonly home: Home;
  readonly files: FileOperations;
  readonly log: Log;
  readonly clock: Clock;
  /** Called once the home is claimed: slow work that needs no claim can then run at the same time. */
  readonly claimed: () => void;
};

/** @throws StartError when another server uses the home, or the store cannot be used. */
export function openStore(options: StoreOptions): Promise<ClaimedStore> {
  const { store } = options.settings;
  return store === null ? openFiles(options) : openShared(options, store);
}

async function openFiles({ home, files, claimed, clock, log }: StoreOptions): Promise<ClaimedStore> {
  const store = await FileStore.open(home.vault, files, claimed, clock);
  warnOfForeignFiles(store, log);
  return {
    store,
    announce: (announcement) => store.announce(announcement),
    release: async () => {}, // by its close
  };
}

function warnOfForeignFiles({ madeSecrets, foreignFiles }: FileStore, log: Log): void {
  const missing = "the directory of the secrets was missing and an empty one was made: secrets in it are lost";
  if (madeSecrets) log.warn({ event: "secrets-missing", hint: missing });
  if (foreignFiles > 0) log.warn({ event: "foreign-files", count: foreignFiles, hint: "not touched" });
}

/** Claims the home only: any number of servers share the database, each with its own home. */
async function openShared(options: StoreOptions, url: string): Promise<ClaimedStore> {
  const { settings, home, files, claimed, log, clock } = options;
  const claim = await claimVault(home.vault, files);
  try {
    claimed();
    const { openDatabase } = await import("../storage/postgres/open-database.js");
    const hasFiles = (await missingAsNull(files.lstat(join(home.vault, "current")))) !== null;
    const role = { isServer: true, creates: true, clock };
    const store = await openDatabase({ ...settings, store: url, snapshotsAt: home.vault, ...role }, log);
    const hint = "the home also has a vault of files, which is not served: strongroom migrate copies it to a database";
    if (hasFiles) log.warn({ event: "unused-vault", hint });
    return { store, announce: claim.announce, release: claim.release };
  } catch (error) {
    await claim.release();
    throw error;
  }
}
