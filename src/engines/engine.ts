/** Interface of a storage engine for servers and maintenance. All other code knows its `SecretStore` only. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Bytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import type { Settings } from "../config/definitions.js";
import { StartError } from "../errors.js";
import type { FileOperations } from "../files/durable.js";
import type { Home } from "../files/home.js";
import type { Log } from "../log.js";
import type { Claim } from "../storage/files/claim.js";
import type { SecretStore } from "../storage/secret-store.js";

/** `place`: where a vault is, as the path of a home or the URL of a database. `passwordFile`: holds the database's password. */
export type Engine = {
  /** Claims the home and opens its vault for a server; creates what is missing. @throws StartError */
  serve(options: ServeOptions): Promise<ClaimedStore>;

  /**
   * Opens a vault that no server uses. With `creates`, what is missing is created or updated; otherwise null says that there is no
   * vault. @throws StartError, also when a server uses it
   */
  openUnserved(place: string, passwordFile: string | null, mode: OpenMode): Promise<SecretStore | null>;

  /** Claims the home and opens its vault for a snapshot; null when there is none. @throws StartError */
  openClaimed(home: string, place: string, passwordFile: string | null): Promise<ClosableStore | null>;

  /** Returns the header of a vault that servers may be using; null when there is none. @throws StartError */
  header(place: string, passwordFile: string | null): Promise<Bytes | null>;

  /** Null for files of a home, which are read as they are. */
  readonly database: DatabaseEngine | null;
};

export type DatabaseEngine = {
  /** Opens a vault that servers may be using. It takes no snapshots. @throws StartError */
  open(place: string, passwordFile: string | null, mode: OpenMode): Promise<SecretStore>;

  /** Opens the database for statements of one's own. @throws StartError */
  openQueries(place: string, passwordFile: string | null): Promise<Queries>;
};

type OpenMode = { readonly creates: boolean };

type Queries = {
  /** Returns the rows of one statement, all columns in the database's text format. */
  readonly query: (
    text: string,
    values: readonly (string | number)[],
  ) => Promise<readonly Readonly<Record<string, string | null>>[]>;
  readonly close: () => Promise<void>;
};

type ServeOptions = {
  readonly settings: Pick<Settings, "store" | "storePasswordFile" | "storeConnections">;
  readonly home: Home;
  readonly files: FileOperations;
  readonly log: Log;
  readonly clock: Clock;
  /** Called once the home is claimed: slow work that needs no claim can then run at the same time. */
  readonly claimed: () => void;
};

export type ClaimedStore = {
  readonly store: SecretStore;
  /** Publishes where the server listens, for clients and commands that look for it. */
  readonly announce: Claim["announce"];
  /** Releases the claim on the home; after the store was closed. */
  readonly release: () => Promise<void>;
};

/** `close` also releases the claim. */
type ClosableStore = { readonly store: SecretStore; readonly close: () => Promise<void> };

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
