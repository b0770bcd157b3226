/** Measured programs, each a process that ends with the benchmark: Strongroom, and what it is compared with. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { later, temporaryDirectory } from "../tools/rig/clean-up.js";
import { environment, mainFile, node, type ServerProcess, startProcess } from "../tools/rig/process.js";
import type { TestServer } from "../tools/rig/server.js";
import type { Threads } from "./process-usage.js";

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
  const server = await startProcess([], settings, { main, nodeFlags: ["--require", probe, ...nodeFlags] });
  const headers = { Authorization: `Bearer ${server.token}` };
  later(() => server.stop()); // a killed process writes no profile
  return { ...(await describe(name, server.child, server.url.replace("localhost", "127.0.0.1"))), headers, server };
}

type Beside = { readonly server: TestServer; readonly headers: Subject["headers"] };

/** A bare node:https server that sends the same bytes for every request, with the certificate of the Strongroom beside it. */
export function startBare(body: Uint8Array, beside: Beside): Promise<Subject> {
  return startServer("bare node:https", "bare.js", { BENCH_BODY: bodyFile(body) }, beside);
}

/** The same with a second thread that has the key and opens the body for each request. */
export function startKeyThread(body: Uint8Array, beside: Beside): Promise<Subject> {
  return startServer("node:https with a key thread", "key-thread.js", { BENCH_BODY: bodyFile(body) }, beside);
}

/** An Express app that does the same work in the usual way. */
export function startNaive(beside: Beside): Promise<Subject> {
  const secrets = join(temporaryDirectory(), "secrets");
  mkdirSync(secrets);
  return startServer("naive Express 5 app", "naive.js", { BENCH_SECRETS: secrets }, beside);
}

/** A server that stores every body durably as it is. */
export function startDurableServer(beside: Beside): Promise<Subject> {
  const settings = { BENCH_DIRECTORY: temporaryDirectory() };
  return startServer("node:https that stores durably", "durable-server.js", settings, beside);
}

/** The bare loop of durable replaces, which loads itself. */
export async function startDurableLoop(bytes: number): Promise<Subject> {
  const settings = { BENCH_DIRECTORY: temporaryDirectory(), BENCH_BYTES: String(bytes) };
  const { child } = await startProgram("durable-loop.js", settings);
  return { ...(await describe("bare durable loop", child, "")), headers: {} };
}

function bodyFile(body: Uint8Array): string {
  const file = join(temporaryDirectory(), "body");
  writeFileSync(file, body);
  return file;
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

/** Asks the probe inside the process (programs/probe.cts) for its threads. */
async function describe(name: string, child: ChildProcess, url: string): Promise<Omit<Subject, "headers">> {
  child.send({ ask: "threads" });
  for (;;) {
    const [answer] = await once(child, "message");
    if ("engine" in answer) return { name, url, pid: child.pid ?? 0, threads: answer as Threads, child };
  }
}

/** Keeps one CPU busy between `go` and `halt`. */
export type Hog = { go(): void; halt(): void };

export async function startHog(): Promise<Hog> {
  const { child } = await startProgram("hog.js");
  child.kill("SIGSTOP");
  later(() => void child.kill("SIGCONT"));
  return { go: () => void child.kill("SIGCONT"), halt: () => void child.kill("SIGSTOP") };
}
