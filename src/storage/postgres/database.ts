/**
 * Connections to the database: a bounded pool, one round trip per query, a time limit for each. A failed connection is
 * dropped, and the next query opens a new one.
 */
import type { Pool, PoolClient, QueryArrayConfig } from "pg";
import type { Clock } from "../../clock.js";
import type { Log } from "../../log.js";
import type { ConnectionTarget } from "./connection-url.js";
import { databaseUnavailable, endsConnection, isBroken, isReadOnly, isRepeatable } from "./database-errors.js";
import { lockClass } from "./migrations.js";
import type { Password } from "./pass-file.js";
import { guardedClient } from "./password-guard.js";
import { Sessions } from "./sessions.js";
import type { Statement } from "./statements.js";

/** Columns in PostgreSQL's text format. */
export type Row = readonly (string | null)[];
export type Value = string | number | Uint8Array | readonly (string | number | null)[] | null;

export type DatabaseOptions = {
  readonly target: ConnectionTarget;
  readonly password?: string | Password;
  /** Maximum number of connections. */
  readonly poolSize: number;
  /** False for maintenance, which does not count as a server. */
  readonly isServer?: boolean;
  readonly log: Log;
  /** A server's, which must not differ much from the database's. */
  readonly clock?: Clock;
};

/** Name of a server's connections in `pg_stat_activity`: at least one while it runs, as it queries more often than they idle. */
export const serverName = "strongroom server";

/** Time limit for connecting, and then for each answer, in milliseconds. */
export const answerMs = 5_000;

/** Returns the extra time for blobs of so many bytes, in milliseconds. */
export function extraMsFor(bytes: number): number {
  return (bytes / 2 ** 20) * 250;
}

/** Attempts at a query after deadlocks and serialization failures; after a broken or read-only connection there are two. */
const mostAttempts = 4;

/** Time for reading an answer that has already arrived when the limit is reached, in milliseconds. */
const graceMs = 100;

const longestIdleMs = 60_000;
const longestLifeSeconds = 1_800;

/** The timeouts, in milliseconds, end what a dead server has left running. */
const sessionSettings = [
  // DANGER: a function that another role makes in a schema of the path would run with the server's rights.
  "search_path=pg_catalog",
  "default_transaction_isolation=read\\ committed", // after a function has its lock, it sees all earlier commits
  // DANGER: an operator may have set these otherwise, for the database or its cluster. Bytes are read in hexadecimal digits,
  // null is null in an array, names are compared as they are, and a session's start must name one moment.
  "bytea_output=hex",
  "array_nulls=on",
  "quote_all_identifiers=off",
  "DateStyle=ISO",
  "statement_timeout=300000",
  "idle_in_transaction_session_timeout=60000",
  "jit=off", // costs more than any statement here
  // DANGER: until a table that has grown is analyzed, the planner assumes it is small, and reads and sorts a whole prefix, or all
  // of it, rather than follow the index for a page.
  "enable_sort=off",
  "enable_bitmapscan=off",
  "enable_seqscan=off",
].map((setting) => `-c ${setting}`);

export class Database {
  readonly #makePool: () => Pool;
  readonly #sessions: Sessions;
  #pool: Pool;

  private constructor(makePool: () => Pool, sessions: Sessions) {
    this.#makePool = makePool;
    this.#sessions = sessions;
    this.#pool = makePool();
  }

  /** Loads the client and prepares the pool; the first query connects. */
  static async open(options: DatabaseOptions): Promise<Database> {
    const { target, password, poolSize, isServer = true, log, clock = null } = options;
    const { Client, Pool } = await import("pg");
    const config = {
      ...target,
      ...(password !== undefined && { password }),
      max: poolSize,
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
      idleTimeoutMillis: longestIdleMs,
      maxLifetimeSeconds: longestLifeSeconds,
      keepAlive: true,
      ...(isServer ? { application_name: serverName } : { application_name: "strongroom maintenance" }),
      options: sessionSettings.join(" "),
      types: { getTypeParser: () => (raw: unknown) => raw },
    };
    const isProtected = target.ssl !== false || target.host.startsWith("/");
    const ClientUsed = isProtected ? Client : guardedClient(Client);
    const sessions = new Sessions((each) => new ClientUsed(each), config, log, clock);
    const makePool = () => {
      const pool = new Pool({ ...config, Client: ClientUsed, onConnect: (client) => sessions.check(client) });
      pool.on("error", (error) => log.debug({ event: "database-connection-ended", error }));
      pool.on("connect", (client) => client.on("error", () => {})); // a connection in use has no listener; its query fails
      return pool;
    };
    return new Database(makePool, sessions);
  }

  /** Returns the rows of one statement. @throws VaultError UNAVAILABLE; a change was then made completely or not at all. */
  async query(statement: Statement, values: readonly Value[], extraMs = 0): Promise<readonly Row[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.withClient((client) => this.#queryOn(client, statement, values, extraMs));
      } catch (error) {
        const mayBeNew = isReadOnly(error) || (!statement.isChange && isBroken(error));
        const again = isRepeatable(error) || (attempt === 1 && mayBeNew);
        if (!again || attempt === mostAttempts) throw databaseUnavailable(error);
        await new Promise((resolve) => setTimeout(resolve, 5 * 2 ** attempt * Math.random()));
      }
    }
  }

  /**
   * Runs work on one connection. When that fails, or may not write, all idle ones are dropped, since they are probably the same.
   */
  async withClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const pool = this.#pool;
    const client = await this.#connect();
    try {
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      const ends = endsConnection(error) || isReadOnly(error);
      client.release(ends);
      if (ends && pool === this.#pool) this.#dropAll();
      throw error;
    }
  }

  /** Runs work while this connection holds an advisory lock; returns false, without running it, while another one does. */
  async alone(lock: number, work: () => Promise<void>): Promise<boolean> {
    const client = await this.#connect();
    let isHeld = true;
    try {
      const text = `SELECT pg_try_advisory_lock(${lockClass}, ${lock}) AS held`;
      const { rows } = await client.query<{ held: string }>(text).catch((error: unknown) => {
        throw databaseUnavailable(error);
      });
      isHeld = rows[0]?.held === "t";
      if (isHeld) await work();
      return isHeld;
    } finally {
      // The lock would end with its session too, but some time after this has returned.
      if (isHeld) await client.query(`SELECT pg_advisory_unlock(${lockClass}, ${lock})`).catch(() => {});
      client.release(isHeld);
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  #connect(): Promise<PoolClient> {
    return this.#pool.connect().catch((error: unknown) => {
      throw databaseUnavailable(error);
    });
  }

  async #queryOn(
    client: PoolClient,
    { name, text, isChange = false }: Statement,
    values: readonly Value[],
    extraMs: number,
  ): Promise<readonly Row[]> {
    const ms = answerMs + extraMs;
    const limits = { query_timeout: 2 * ms }; // the pool's own limit would fire before `withTimeLimit`
    const query = { name, text, values: [...values], rowMode: "array", ...limits };
    try {
      return (await withTimeLimit(client.query<(string | null)[]>(query as QueryArrayConfig), ms)).rows;
    } catch (error) {
      if (isChange && endsConnection(error)) await this.#sessions.end(client);
      throw error;
    }
  }

  #dropAll(): void {
    const dropped = this.#pool;
    this.#pool = this.#makePool();
    dropped.end().catch(() => {}); // its connections are closed one by one in any case
  }
}

/** Rejects when no answer arrives in time. A process that was paused first reads what has arrived. */
async function withTimeLimit<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error("timeout: the database did not answer"));
    timer = setTimeout(() => {
      timer = setTimeout(giveUp, graceMs);
    }, ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
