/** A running server, and the dependencies that tests may replace. */
import type { Clock } from "../clock.js";
import type { FileOperations } from "../files/durable.js";
import type { Limits } from "../http/listener.js";
import type { Log } from "../log.js";

/** What tests replace; by default the system's own. */
export type Surroundings = {
  readonly log: Log;
  readonly clock?: Clock;
  readonly files?: FileOperations;
  readonly limits?: Partial<Limits>;
  /** Accepts vaults of a lower scrypt cost than any setting can ask for. */
  readonly minScryptLogN?: number;
};

export interface Strongroom {
  readonly url: string;
  readonly port: number;
  readonly tokenSource: string;
  readonly certificateFile: string;
  readonly vaultPath: string;
  /** Resolves once the server has stopped, whatever the reason. */
  readonly stopped: Promise<void>;
  /** Locks, drains for at most 5 s, then stops; further calls return the same promise. */
  stop(): Promise<void>;
}
