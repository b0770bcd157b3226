/** The real `strongroom` command as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { later, temporaryDirectory } from "./clean-up.js";
import type { Holdings, Obeyed, Order } from "./control.cjs";
import { keepCertificate, preparedHome } from "./prepared-home.js";
import type { TestServer } from "./server.js";

/** The directory of an installed program that the tests run in place of the build here. */
const installed = process.env["STRONGROOM_PROGRAM"];

export const isInstalled = installed !== undefined;

export const mainFile =
  installed === undefined
    ? fileURLToPath(new URL("../../program/entry.cjs", import.meta.url))
    : resolve(installed, "dist/program/entry.cjs");

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

type Environment = Readonly<Record<string, string>>;

/** An environment without the developer's own settings, home and data directory. */
export function environment(more: Environment): NodeJS.ProcessEnv {
  const home = temporaryDirectory();
  const path = process.env["PATH"] ?? "";
  return { PATH: path, TZ: "UTC", HOME: home, XDG_DATA_HOME: join(home, "data"), TMPDIR: home, ...more };
}

/** Options that keep V8's compiled code of the program; see code-cache.cts. */
const codeCache = ["--require", fileURLToPath(new URL("./code-cache.cjs", import.meta.url))];

/** Arguments of `node` that run the command. */
export const mainArguments: readonly string[] = [...codeCache, mainFile];

/** Runs the command to its end, in a process of its own. */
export async function run(args: readonly string[], more: Environment = {}): Promise<Ended> {
  const child = spawn(node, [...mainArguments, ...args], { env: environment(more), cwd: temporaryDirectory() });
  return collect(child).ended;
}

export function collect(child: ChildProcess) {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = once(child, "close").then(([code]): Ended => ({ code: code as number | null, stdout, stderr }));
  return { ended, stdout: () => stdout, stderr: () => stderr };
}

/** The server process ended before it listened. */
export class NotStarted extends Error {
  readonly ended: Ended;

  constructor(ended: Ended) {
    super(`the server ended: ${JSON.stringify(ended)}`);
    this.ended = ended;
  }
}

export type ServerProcess = TestServer & {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  readonly startLine: string;
  /** Runs an order inside the process; see control.ts. */
  order(order: Order): Promise<Holdings | null>;
};

const controlFile = fileURLToPath(new URL("./control.cjs", import.meta.url));

/** The built command, and the flags of the Node that runs it. `under`: a command that runs it. */
type Program = {
  readonly main: string;
  readonly nodeFlags: readonly string[];
  readonly under?: readonly string[];
};

/** Returns whether a process is running. One that has ended may still wait for its parent. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z ");
  } catch {
    return false;
  }
}

/** The command loads it too, but only after the control. */
const poolFile = fileURLToPath(new URL("../../src/cli/thread-pool.cjs", import.meta.url));

export const builtHere: Program = {
  main: mainFile,
  nodeFlags: ["--require", poolFile, "--require", controlFile, ...codeCache],
};

/** The Node that runs servers: STRONGROOM_TEST_NODE, else the installed program's own, else the Node of the tests. */
export const node = process.env["STRONGROOM_TEST_NODE"] ?? bundledNode(installed) ?? process.execPath;

function bundledNode(program: string | undefined): string | null {
  const own = resolve(program ?? "", "bin/node");
  return program !== undefined && existsSync(own) ? own : null;
}

/**
 * `strongroom serve` on a free port in a temporary home, killed when the test ends. `stderr`: a descriptor that becomes
 * its standard error in place of `logged`. @throws NotStarted
 */
export async function startProcess(
  args: readonly string[] = [],
  more: Environment = {},
  { main, nodeFlags, under = [] }: Program = builtHere,
  stderr: "pipe" | number = "pipe",
): Promise<ServerProcess> {
  const home = more["STRONGROOM_HOME"] ?? preparedHome();
  const settings = { STRONGROOM_HOME: home, STRONGROOM_PORT: "0", STRONGROOM_SCRYPT_LOG_N: "14", ...more };
  const [command = node, ...rest] = [...under, node, ...nodeFlags, main, "serve", ...args];
  const child = spawn(command, rest, {
    env: environment(settings),
    cwd: temporaryDirectory(),
    stdio: ["ignore", "pipe", stderr, "ipc"],
  });
  const output = collect(child);
  later(async () => {
    child.kill("SIGKILL");
    await output.ended;
  });
  const startLine = await firstLine(output);
  const [, url = "", certificateFile = ""] = /listens on (https:\S+), .* certificate (\S+),/.exec(startLine) ?? [];
  keepCertificate(home, certificateFile);
  return {
    child,
    ended: output.ended,
    startLine,
    url,
    port: Number(new URL(url).port),
    vaultPort: null,
    brokerPort: null,
    home,
    certificateFile,
    vaultPath: join(home, "vault"),
    socket: more["STRONGROOM_SOCKET"] ?? join(home, "strongroom.sock"),
    tokenSource: join(home, "token"),
    token:
      more["STRONGROOM_TOKEN"] ?? readFileSync(more["STRONGROOM_TOKEN_FILE"] ?? join(home, "token"), "utf8").trim(),
    certificate: readFileSync(certificateFile, "utf8"),
    logged: output.stderr,
    stopping: output.ended,
    stopped: output.ended.then(() => {}),
    async order(order) {
      child.send(order);
      const [{ failed, holdings }] = (await once(child, "message")) as [Obeyed];
      if (failed !== null) throw new Error(failed);
      return holdings;
    },
    async reloadCertificate() {
      child.kill("SIGHUP");
    },
    async lock() {
      child.kill("SIGUSR2");
    },
    async stop() {
      child.kill("SIGTERM");
      await output.ended;
    },
  };
}

async function firstLine(output: ReturnType<typeof collect>): Promise<string> {
  let ended: Ended | null = null;
  void output.ended.then((result) => {
    ended = result;
  });
  while (!output.stdout().includes("\n")) {
    if (ended !== null) throw new NotStarted(ended);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return output.stdout();
}
