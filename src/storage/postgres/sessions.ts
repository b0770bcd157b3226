/** Database sessions: the check of a new one, and the termination of one whose connection failed. */
import type { ClientBase, PoolConfig } from "pg";
import type { Clock } from "../../clock.js";
import { StartError } from "../../errors.js";
import type { Log } from "../../log.js";

/** The process that serves a connection. Its pid alone may be reused. */
type Session = { readonly pid: string; readonly started: string };

/** Time limit for ending a session, in milliseconds. */
const endMs = 2_000;

/** Most that a server's clock may differ from the database's, in milliseconds. */
const mostDifferenceMs = 3_600_000;

const checkText = `SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('server_encoding'),
  current_setting('synchronous_commit'), current_setting('search_path'), pid, backend_start, extract(epoch FROM clock_timestamp()) FROM pg_stat_activity WHERE pid = pg_backend_pid()`;
const endText = `SELECT pg_terminate_backend(pid, ${endMs / 2}) FROM pg_stat_activity
  WHERE pid = $1::integer AND backend_start = $2::timestamptz`;

type Client = Pick<ClientBase, "query" | "on"> & { connect(): Promise<unknown>; end(): Promise<void> };

export class Sessions {
  readonly #makeClient: (config: PoolConfig) => Client;
  readonly #config: PoolConfig;
  readonly #log: Log;
  readonly #clock: Clock | null;
  readonly #known = new WeakMap<object, Session>();
  #hasWarned = false;
  /** Why the last new connection was refused. */
  #problem: string | null = null;

  /** `config`: for connections. `clock`: see `DatabaseOptions`. */
  constructor(makeClient: (config: PoolConfig) => Client, config: PoolConfig, log: Log, clock: Clock | null) {
    this.#makeClient = makeClient;
    this.#config = { ...config, connectionTimeoutMillis: endMs, query_timeout: endMs };
    this.#log = log;
    this.#clock = clock;
  }

  /**
   * Checks a new connection. DANGER: a standby would return old secrets, and without fsync a power cut loses what was
   * acknowledged. A server whose clock is far ahead removes client tokens that it takes for long expired. @throws StartError
   */
  async check(client: Pick<ClientBase, "query">): Promise<void> {
    try {
      await this.#check(client);
      this.#problem = null;
    } catch (error) {
      if (error instanceof StartError && error.message !== this.#problem) {
        this.#problem = error.message;
        this.#log.error({ event: "database-unusable", hint: error.message });
      }
      throw error;
    }
  }

  async #check(client: Pick<ClientBase, "query">): Promise<void> {
    const { rows } = await client.query<(string | null)[]>({ text: checkText, rowMode: "array" });
    const [inRecovery, fsync, encoding, synchronous, path, pid, started, seconds] = rows[0] ?? [];
    if (inRecovery !== "f") throw new StartError("the database is a read-only standby: connect to the primary");
    if (fsync !== "on") throw new StartError("the database runs with fsync=off and may lose secrets: set fsync=on");
    if (encoding !== "UTF8")
      throw new StartError("the database's encoding is not UTF8: create it with ENCODING 'UTF8'");
    if (this.#clock !== null && Math.abs(this.#clock.now() - Number(seconds) * 1000) > mostDifferenceMs)
      throw new StartError("clock skew with the database exceeds one hour: synchronize the clocks");
    if (path !== "pg_catalog")
      throw new StartError(
        "a connection pooler drops the session's settings, such as PgBouncer does: connect directly to the database",
      );
    if (synchronous === "off") this.#warn();
    if (pid && started) this.#known.set(client, { pid, started });
  }

  /**
   * Ends the session of a connection that failed during a change, which is then either committed or rolled back: a late commit
   * could overwrite a newer change. Gives up on a database that cannot be reached.
   */
  async end(client: object): Promise<void> {
    const session = this.#known.get(client);
    if (session === undefined) return;
    const ending = this.#makeClient(this.#config);
    ending.on("error", () => {}); // also fails the query
    try {
      await ending.connect();
      await ending.query({ text: endText, values: [session.pid, session.started] });
    } catch (error) {
      this.#log.debug({ event: "database-session-not-ended", error });
    }
    await ending.end().catch(() => {}); // it has failed already
  }

  #warn(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const hint = "the database runs with synchronous_commit=off: its crash may lose secrets that were acknowledged";
    this.#log.warn({ event: "not-durable", hint });
  }
}
