/** A real PostgreSQL for tests: a cluster in a temporary directory, by an unprivileged user when the tests run as root. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type QueryResult } from "pg";
import { later, runDirectory, temporaryDirectory } from "./clean-up.js";
import { needs } from "./needs.js";

/** Directory of the programs; null where PostgreSQL is not installed. */
export const postgresPrograms = findPrograms();

export type TestPostgres = {
  readonly port: number;
  /** Makes an empty database; returns its name. */
  database(): Promise<string>;
  /** Runs statements; returns the rows of the last one. */
  sql(database: string, text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Gives a file to the cluster's user. */
  give(file: string): void;
  /** `kill -9` of the whole cluster. */
  kill(): Promise<void>;
  /** Starts the cluster again, with further settings, and waits until it accepts connections. */
  start(settings?: readonly string[]): Promise<void>;
};

/** Skips the suite where PostgreSQL is not installed. Call it in a `before` hook. */
export function needsPostgres(context: Mocha.Context): void {
  needs(context, postgresPrograms !== null, "PostgreSQL");
}

/** A cluster that was never started, which this process copies: making one is slow. */
let template: string | null = null;

function makeTemplate(account: Account | null): string {
  const directory = runDirectory();
  if (account !== null) chownSync(directory, account.uid, account.gid);
  const data = join(directory, "data");
  const options = ["-D", data, "-A", "trust", "-U", "strongroom", "-E", "UTF8", "--locale=C", "-N", "--wal-segsize=1"];
  execFileSync(program("initdb"), options, { ...account, cwd: directory, stdio: "ignore" });
  return data;
}

/** Starts a cluster; it ends with the test or, in a `before` hook, with its suite. */
export async function startPostgres(): Promise<TestPostgres> {
  const directory = temporaryDirectory();
  const account = unprivileged();
  if (account !== null) chownSync(directory, account.uid, account.gid);
  const data = join(directory, "data");
  template ??= makeTemplate(account);
  execFileSync("cp", ["-Rp", template, data], { ...account, cwd: directory });
  const port = await freePort();
  let child: ChildProcess | null = null;
  const start = async (settings: readonly string[] = []) => {
    const named = [`port=${port}`, "listen_addresses=127.0.0.1", `unix_socket_directories=${directory}`];
    const all = [...named, "max_connections=60", ...settings].flatMap((setting) => ["-c", setting]);
    const launch = () =>
      spawn(program("postgres"), ["-D", data, ...all], { ...account, cwd: directory, stdio: "ignore" });
    do child = launch();
    while (!(await isReady(port, child))); // as long as a process of a killed cluster holds its memory
  };
  const end = async (how: (postmaster: ChildProcess) => unknown) => {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    how(child);
    await ended;
  };
  const kill = () =>
    end(({ pid = 0 }) => {
      for (const each of [...backendPids(data), pid]) killIfThere(each);
    });
  later(() => end((postmaster) => postmaster.kill("SIGINT"))); // a fast shutdown, which leaves no shared memory behind
  await start();
  let databases = 0;
  const sql = (database: string, text: string) => runSql(databaseUrl(port, database), text);
  const database = async () => {
    const name = `test${++databases}`;
    await sql("postgres", `CREATE DATABASE ${name}`);
    return name;
  };
  const give = (file: string) => {
    if (account !== null) chownSync(file, account.uid, account.gid);
  };
  return { port, database, sql, give, kill, start };
}

export function databaseUrl(port: number, database: string): string {
  return `postgres://strongroom@127.0.0.1:${port}/${database}`;
}

async function runSql(url: string, text: string) {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const results: unknown = await client.query(text); // several for several statements
    const last = (Array.isArray(results) ? results.at(-1) : results) as QueryResult<Record<string, unknown>>;
    return last.rows;
  } finally {
    await client.end();
  }
}

function program(name: string): string {
  return join(postgresPrograms ?? "", name);
}

function findPrograms(): string | null {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const places = [
    ...versions.map((version) => join(debian, version, "bin")),
    ...(process.env["PATH"] ?? "").split(delimiter),
  ];
  return places.find((place) => ["postgres", "initdb"].every((name) => existsSync(join(place, name)))) ?? null;
}

type Account = { readonly uid: number; readonly gid: number };

/** PostgreSQL refuses to run as root. */
function unprivileged(): Account | null {
  if (process.getuid?.() !== 0) return null;
  const accounts = readFileSync("/etc/passwd", "utf8").split("\n");
  const named = (name: string) => accounts.find((line) => line.startsWith(`${name}:`))?.split(":");
  const [, , uid, gid] = named("postgres") ?? named("nobody") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

/** The postmaster's children, by /proc: after a kill of the postmaster alone they would serve on for a moment. */
function backendPids(data: string): number[] {
  const postmaster = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0] ?? "";
  const children = `/proc/${postmaster}/task/${postmaster}/children`;
  if (!existsSync(children)) return [];
  return readFileSync(children, "utf8").split(" ").filter(Boolean).map(Number);
}

function killIfThere(pid: number): void {
  try {
    if (pid > 0) process.kill(pid, "SIGKILL");
  } catch {
    // it has ended by now
  }
}

/** Returns a port of this machine on which nothing listened just now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Returns false once the cluster has ended. Asynchronous throughout: servers in this process must keep running. */
async function isReady(port: number, cluster: ChildProcess): Promise<boolean> {
  while (cluster.exitCode === null && cluster.signalCode === null) {
    try {
      await runSql(databaseUrl(port, "postgres"), "SELECT 1");
      return true;
    } catch {
      await sleep(50);
    }
  }
  return false;
}
