/** Measured programs, each a process that ends with the benchmark: Strongroom, and what it is compared with. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { later, temporaryDirectory } from "../test/support/clean-up.js";
import { environment, mainFile, node, type ServerProcess, startProcess } from "../test/support/process.js";
import type { TestServer } from "../test/support/server.js";
import type { Threads } from "./usage.js";

/** A process that can be measured from outside. */
export type Subject = {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  readonly threads: Threads;
  readonly child: ChildProcess;
  readonly headers: Readonly<Record<string, string>>;
};

export type StrongroomSubject = Subject & { readonly server: ServerProcess };

const programs = new URL("./programs/", import.meta.url);
const probe = fileURLToPath(new URL("probe.cjs", programs));

/** For `nodeFlags`: measures event-loop delay; see programs/delay-probe.cts. */
export const delayProbe = ["--require", fileURLToPath(new URL("delay-probe.cjs", programs))];

export type StartOptions = {
  readonly name?: string;
  /** The command's built file, when it is another commit's. */
  readonly main?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly nodeFlags?: readonly string[];
};

export async function startStrongroom(home: string, options: StartOptions = {}): Promise<StrongroomSubject> {
  const { name = "strongroom", main = mainFile, nodeFlags = [] } = options;
  const settings = { STRONGROOM_HOME: home, STRONGROOM_IDLE_TIMEOUT_MS: "0", ...options.environment };
  const program = { main, nodeFlags: ["--require", probe, ...nodeFlags] };
  const server = await startProcess([], settings, program);
  const headers = { Authorization: `Bearer ${server.token}` };
  const url = `https://127.0.0.1:${server.port}`;
  return { ...(await describe(name, server.child, url)), headers, server };
}

type Beside = { readonly server: TestServer; readonly headers: Subject["headers"] };

const fixed = {
  bare: "bare node:https",
  "key-thread": "node:https with a key thread",
  "plain-express": "plain Express 5",
  stringify: "JSON.stringify",
} as const;

/** A server that sends the same bytes for every request, with the certificate of the Strongroom beside it. */
export function startFixed(program: keyof typeof fixed, body: Uint8Array, beside: Beside): Promise<Subject> {
  const file = join(temporaryDirectory(), "body");
  writeFileSync(file, body);
  return startServer(fixed[program], `${program}.js`, { BENCH_BODY: file }, beside);
}

/** The naive Express app, with the certificate and token of the Strongroom beside it. */
export function startNaive(beside: Beside): Promise<Subject> {
  const secrets = join(temporaryDirectory(), "secrets");
  mkdirSync(secrets);
  return startServer("naive Express 5 app", "naive.js", { BENCH_SECRETS: secrets }, beside);
}

/** A server that stores every body durably as it is, with the certificate of the Strongroom beside it. */
export function startDurableServer(beside: Beside): Promise<Subject> {
  const settings = { BENCH_DIRECTORY: temporaryDirectory() };
  return startServer("node:https that stores durably", "durable-server.js", settings, beside);
}

/** The bare loop of durable replaces. */
export async function startDurableLoop(bytes: number): Promise<Subject> {
  const settings = { BENCH_DIRECTORY: temporaryDirectory(), BENCH_BYTES: String(bytes) };
  const { child } = await startProgram("durable-loop.js", settings);
  return { ...(await describe("bare durable loop", child, "")), headers: {} };
}

/** The database's client alone, which loads itself. */
export async function startBareDatabase(settings: Readonly<Record<string, string>>): Promise<Subject> {
  const { child } = await startProgram("bare-database.js", settings);
  return { ...(await describe("the client alone", child, "")), headers: {} };
}

async function startServer(
  name: string,
  file: string,
  settings: Readonly<Record<string, string>>,
  { server, headers }: Beside,
): Promise<Subject> {
  const tls = { BENCH_CERT: server.certificateFile, BENCH_KEY: join(server.home, "tls", "key.pem") };
  const { child, greeting } = await startProgram(file, { ...tls, BENCH_TOKEN: server.token, ...settings });
  return { ...(await describe(name, child, `https://127.0.0.1:${(greeting as { port: number }).port}`)), headers };
}

/** Starts one of the benchmark's programs and waits until it is ready; killed at the end. */
export async function startProgram(
  file: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<{ child: ChildProcess; greeting: object }> {
  const child = spawn(node, ["--require", probe, fileURLToPath(new URL(file, programs))], {
    env: environment(settings),
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  later(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const greeting = await Promise.race([
    once(child, "message"),
    ended.then(([code]) => Promise.reject(new Error(`${file} ended with code ${code}`))),
  ]);
  return { child, greeting: greeting[0] as object };
}

async function describe(name: string, child: ChildProcess, url: string): Promise<Omit<Subject, "headers">> {
  const threads = (await ask(child, "threads")) as Threads;
  return { name, url, pid: child.pid ?? 0, threads, child };
}

/** Asks the probe inside a process; see programs/probe.cts. */
export async function ask(child: ChildProcess, question: "threads" | "watch-delay" | "delay"): Promise<unknown> {
  child.send({ ask: question });
  for (;;) {
    const [answer] = await once(child, "message");
    if ((answer as { answered?: string }).answered === question) return answer;
  }
}
