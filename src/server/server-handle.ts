/** A running server, and what tests may replace of its surroundings. */
import type { Clock } from "../clock.js";
import type { FileOperations } from "../files/durable.js";
import type { Limits } from "../http/listener.js";
import type { Log } from "../log.js";

/** What tests replace. */
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
  /** Resolves once the server has stopped, for whatever reason. */
  readonly stopped: Promise<void>;
  /** Locks, drains for at most 5 s, stops; the same promise however often it is asked. */
  stop(): Promise<void>;
}
