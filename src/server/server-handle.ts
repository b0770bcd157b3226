/** A running server, and the dependencies that tests may replace. */
import type { BrokerDependencies } from "../broker/broker.js";
import type { Clock } from "../clock.js";
import type { FileOperations } from "../files/durable.js";
import type { Limits } from "../http/listener.js";
import type { Log } from "../log.js";
import type { Observer } from "../observer.js";
import type { ServerStart } from "../storage/files/claim.js";

/** Longest time, in milliseconds, from the request to stop to the end. */
export const stopMs = 5_000;

/** Dependencies that tests replace. Default: the system's. */
export type Dependencies = {
  readonly log: Log;
  readonly clock?: Clock;
  readonly files?: FileOperations;
  readonly limits?: Partial<Limits>;
  readonly brokerLimits?: Partial<BrokerDependencies["limits"]>;
  /** Told of the same as the server's own observers. */
  readonly observer?: Observer;
  /** Accepts vaults of a lower scrypt cost than any setting can ask for. */
  readonly minScryptLogN?: number;
  /** For the commands that find this server. */
  readonly start?: ServerStart;
};

/** Dependencies with the system's own where nothing was replaced. */
export type AllDependencies = Dependencies & Required<Pick<Dependencies, "clock" | "files">>;

export interface Strongroom {
  readonly url: string;
  readonly port: number;
  /** Null: it is off. */
  readonly vaultPort: number | null;
  /** Null: it is off. */
  readonly brokerPort: number | null;
  readonly tokenSource: string;
  readonly certificateFile: string;
  readonly vaultPath: string;
  /** Null when there is none. */
  readonly socket: string | null;
  /** Resolves when the stop begins. */
  readonly stopping: Promise<unknown>;
  /** Resolves once the server has stopped, whatever the reason. */
  readonly stopped: Promise<void>;
  /** Reads the certificate and its key again; never throws. The log says what came of it. */
  reloadCertificate(): Promise<void>;
  /** Locks the vault and continues to serve. */
  lock(): Promise<void>;
  /** Locks, drains for at most 5 s, then stops; further calls return the same promise. */
  stop(): Promise<void>;
}
