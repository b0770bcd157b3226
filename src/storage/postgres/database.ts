/**
 * Connections to the database: a bounded pool, one round trip a query, a time limit for each. A connection that fails is
 * dropped, and the next query makes a new one.
 */
import type { Pool, PoolClient, QueryArrayConfig } from "pg";
import { StartError, VaultError } from "../../errors.js";
import type { Log } from "../../log.js";
import type { ConnectionTarget } from "./connection-url.js";
import { databaseUnavailable, endsConnection, isBroken, isRepeatable } from "./database-errors.js";
import { lockClass } from "./migrations.js";
import { Sessions } from "./sessions.js";
import type { Statement } from "./statements.js";

/** Columns in PostgreSQL's text format. */
export type Row = readonly (string | null)[];
export type Value = string | number | Uint8Array | readonly (string | number | null)[] | null;

export type DatabaseOptions = {
  readonly target: ConnectionTarget;
  readonly password?: string;
  /** Most connections. */
  readonly poolSize: number;
  /** Longest time for a connection, and then for an answer, in milliseconds. */
  readonly answerMs?: number;
  /** False for maintenance: then the database's other users do not take it for a server. */
  readonly isServer?: boolean;
  readonly log: Log;
};

/** Name of a server's connections in `pg_stat_activity`: at least one while it runs. */
export const serverName = "strongroom server";

const defaultAnswerMs = 5_000;

/** Attempts at a query that a deadlock or a serialization failure has undone; a read that a broken connection has ended has two. */
const mostAttempts = 4;

/** For reading what has come, after the time for an answer is over. */
const graceMs = 100;

const longestIdleMs = 60_000;
const longestLifeSeconds = 1_800;

/** Ends what a server that is gone has left behind, in milliseconds. */
const sessionSettings = [
  "default_transaction_isolation=read\\ committed", // the functions see what was committed before they got their lock
  "statement_timeout=300000",
  "idle_in_transaction_session_timeout=60000",
  "jit=off", // costs more than any statement here
  // DANGER: until a table that has grown is analyzed, the planner takes it for small, and reads and sorts a whole prefix, or all
  // of it, rather than follow the index: 700 ms instead of 12 for a page of 1,000 under a prefix with 100,000 secrets.
  "enable_sort=off",
  "enable_bitmapscan=off",
  "enable_seqscan=off",
].map((setting) => `-c ${setting}`);

export class Database {
  readonly #makePool: () => Pool;
  readonly #sessions: Sessions;
  readonly #answerMs: number;
  #pool: Pool;

  private constructor(makePool: () => Pool, sessions: Sessions, answerMs: number) {
    this.#makePool = makePool;
    this.#sessions = sessions;
    this.#answerMs = answerMs;
    this.#pool = makePool();
  }

  /** Loads the client and prepares the pool; connects with the first query. @throws StartError */
  static async open(options: DatabaseOptions): Promise<Database> {
    const { target, password, poolSize, answerMs = defaultAnswerMs, isServer = true, log } = options;
    const { Client, Pool } = await loadClient();
    const config = {
      ...target,
      ...(password !== undefined && { password }),
      max: poolSize,
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
      idleTimeoutMillis: longestIdleMs,
      maxLifetimeSeconds: longestLifeSeconds,
      keepAlive: true,
      ...(isServer ? { application_name: serverName, min: 1 } : { application_name: "strongroom maintenance" }),
      options: sessionSettings.join(" "),
      types: { getTypeParser: () => (raw: unknown) => raw },
    };
    const sessions = new Sessions((each) => new Client(each), config, log);
    const makePool = () => {
      const pool = new Pool({ ...config, onConnect: (client) => sessions.check(client) });
      pool.on("error", (error) => log.debug({ event: "database-connection-ended", error }));
      pool.on("connect", (client) => client.on("error", () => {})); // one in use has no listener, and fails its query
      return pool;
    };
    return new Database(makePool, sessions, answerMs);
  }

  /** Returns the rows of one statement. @throws VaultError UNAVAILABLE; a change has then been made as a whole or not. */
  async query(statement: Statement, values: readonly Value[], extraMs = 0): Promise<readonly Row[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.withClient((client) => this.#queryOn(client, statement, values, extraMs));
      } catch (error) {
        const again = isRepeatable(error) || (attempt === 1 && !statement.isChange && isBroken(error));
        if (!again || attempt === mostAttempts) throw databaseUnavailable(error);
        await new Promise((resolve) => setTimeout(resolve, 5 * 2 ** attempt * Math.random()));
      }
    }
  }

  /** Runs work on one connection. A failure that ends it drops all idle ones, which are likely to be dead, too. */
  async withClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const pool = this.#pool;
    const client = await this.#connect();
    try {
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      const ends = !(error instanceof VaultError) && endsConnection(error);
      client.release(ends);
      if (ends && pool === this.#pool) this.#dropAll();
      throw error;
    }
  }

  /** Runs work while this connection holds an advisory lock; returns false, without running it, while another one does. */
  async alone(lock: number, work: () => Promise<void>): Promise<boolean> {
    const client = await this.#connect();
    try {
      const text = `SELECT pg_try_advisory_lock(${lockClass}, ${lock}) AS held`;
      const { rows } = await client.query<{ held: string }>(text).catch((error: unknown) => {
        throw databaseUnavailable(error);
      });
      if (rows[0]?.held !== "t") return false;
      await work();
      return true;
    } finally {
      client.release(true); // with its session, the lock ends
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
    const ms = this.#answerMs + extraMs;
    const limits = { query_timeout: 2 * ms }; // in place of the pool's, which would come before `rejectLate`
    const query = { name, text, values: [...values], rowMode: "array", ...limits };
    try {
      return (await rejectLate(client.query<(string | null)[]>(query as QueryArrayConfig), ms)).rows;
    } catch (error) {
      if (isChange && endsConnection(error)) await this.#sessions.end(client);
      throw error;
    }
  }

  #dropAll(): void {
    const dropped = this.#pool;
    this.#pool = this.#makePool();
    dropped.end().catch(() => {}); // its connections are closed one by one, whatever becomes of the end
  }
}

/** Rejects when nothing has come in time. A process that was stopped, or had no processor, reads what has come first. */
async function rejectLate<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error("timeout: the database has not answered"));
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

async function loadClient() {
  try {
    return await import("pg");
  } catch {
    throw new StartError("the package pg, which a store in PostgreSQL needs, is not installed: run npm install pg");
  }
}
