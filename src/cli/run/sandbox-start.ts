/** Start of bubblewrap, the signals that reach the program, and its end. */
import type { ChildProcess } from "node:child_process";
import { closeSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { quoted } from "../../client/ownership.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printable, say } from "../kit/output.js";
import { childPids, type Forwarded, runChild, startProgram } from "../kit/programs/child-process.js";
import { listen, type Sandboxed, sessionFiles } from "./sandbox.js";
import { checkOutside, watchExposed } from "./sandbox-check.js";
import type { Expected } from "./sandbox-plan.js";

/** First line that the gate writes where the program may start; any other is the reason why it may not. */
export const startAllowed = "start";

/** Endpoint that the sandbox is connected to from before the program's start to its end. */
type Gate = {
  /** Returns false where the program has not been started. */
  send(signal: NodeJS.Signals): boolean;
  /** Ends all processes in the sandbox; returns false where there are none yet. */
  end(): boolean;
  close(): void;
};

/** Answers the sandbox, which asks once its mounts are made, whether what they cover is still in its place. */
export async function startGate(directory: string, expected: Expected): Promise<Gate> {
  let inside: Socket | null = null;
  let end = () => false;
  const server = createServer((connection) => {
    server.close(); // the program itself gets none
    const problem = problemOutside(expected);
    connection.on("error", () => {});
    if (problem !== null) return void connection.end(problem);
    end = findEnd(directory);
    inside = connection;
    connection.resume().write(`${startAllowed}\n`);
    connection.once("close", () => setTimeout(end, closeMs).unref());
  });
  await listen(server, join(directory, sessionFiles.start));
  return {
    send: (signal) => {
      inside?.write(`${signal}\n`);
      return inside !== null;
    },
    end: () => end(),
    close: () => {
      server.close();
      inside?.destroy();
    },
  };
}

/** Time in which the status of a program that has ended must have come out, in milliseconds. */
const closeMs = 2000;

/**
 * Returns what kills the first process of the sandbox, and with it all others. DANGER: a program can trace that process, and
 * undo that it ends with bubblewrap. It must be the one of now: its number may later be another's.
 */
function findEnd(directory: string): () => boolean {
  const { "child-pid": pid } = JSON.parse(readFileSync(join(directory, sessionFiles.info), "utf8")) as Info;
  const namespace = readNamespace(pid);
  return () => namespace !== null && readNamespace(pid) === namespace && wasKilled(pid);
}

function wasKilled(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false; // it has just ended
  }
}

/** Members of bubblewrap's report on itself. */
type Info = { readonly "child-pid": number };

/** Returns the identity of a process's namespace of processes; null where it has ended. */
function readNamespace(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

function problemOutside(expected: Expected): string | null {
  try {
    checkOutside(expected);
    return null;
  } catch (error) {
    return error instanceof CommandFailure ? error.message : "the check of the sandbox failed";
  }
}

/** Time that a program has to end after SIGTERM or SIGHUP, in milliseconds. */
const graceMs = 5000;

/** Runs bubblewrap, which passes on what it inherits: nothing but the standard streams. Returns the program's exit status. */
export async function runSandbox(io: Io, sandbox: Sandboxed, env: NodeJS.ProcessEnv, gate: Gate): Promise<number> {
  const end = (child: ChildProcess) => gate.end() || child.kill("SIGKILL");
  const deliver = (signal: Forwarded, child: ChildProcess) => {
    if (signal === "SIGWINCH") return; // script(1) passes it on
    if (!gate.send(signal)) end(child);
    else if (signal === "SIGTERM" || signal === "SIGHUP") setTimeout(() => end(child), graceMs).unref();
  };
  try {
    return await runChild(io, () => start(io, sandbox, env, end), deliver);
  } finally {
    gate.end();
  }
}

function start(io: Io, sandbox: Sandboxed, env: NodeJS.ProcessEnv, end: (child: ChildProcess) => void): ChildProcess {
  closeForeignDescriptors();
  const { terminal, options, fed, redirections } = sandbox.streams;
  const file = join(sandbox.directory, sessionFiles.script);
  writeFileSync(file, startScript(sandbox, redirections, env["SHELL"]), { mode: 0o600 });
  const inTerminal = ["--quiet", "--return", "--command", `exec /bin/sh ${quoted(file)}`, "/dev/null"];
  const command = terminal === null ? ["/bin/sh", file] : [terminal, ...inTerminal];
  const child = startProgram(command, { ...env, SHELL: "/bin/sh" }, options);
  const input = fed === null ? null : (child.stdio[fed] as NodeJS.WritableStream);
  if (input !== null) io.stdin.pipe(input.on("error", () => {}));
  const watchers = watchExposed(sandbox.expected, (path) => {
    say(io, `strongroom: ${printable(path)} was replaced, and is no longer hidden: the program was ended\n`);
    end(child);
  });
  const depth = terminal === null ? 3 : 4; // script(1), bubblewrap, its first process inside, the relay, the program
  const timer = setInterval(() => continueStopped(child.pid, depth), continueMs).unref();
  child.once("exit", () => {
    clearInterval(timer);
    for (const watcher of watchers) watcher.close();
  });
  return child;
}

/** Time between two searches for stopped processes, in milliseconds. */
const continueMs = 500;

/**
 * Continues the program, and what stands between it and the terminal. No shell could: a program that stops itself or its process
 * group, as editors do on Ctrl-Z, would leave a terminal that takes no keys.
 */
function continueStopped(pid: number | undefined, depth: number): void {
  if (pid === undefined) return;
  try {
    const state = /^.*\) (.)/s.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1];
    if (state === "T") process.kill(pid, "SIGCONT");
  } catch {
    // it has ended
  }
  if (depth > 0) for (const each of childPids(pid)) continueStopped(each, depth - 1);
}

/** A shell turns into bubblewrap, for which a signal of the terminal would be the end: the program gets it by itself. */
function startScript(
  { command, filter, directory }: Sandboxed,
  redirections: string,
  shell: string | undefined,
): string {
  return [
    "trap '' INT QUIT",
    `exec ${redirections}`,
    `exec 3<${quoted(filter)} 4>${quoted(join(directory, sessionFiles.info))} 5<&-`,
    shell === undefined ? "unset SHELL" : `SHELL=${quoted(shell)}`,
    `exec ${command.map(quoted).join(" ")}`,
  ].join("\n");
}

/** O_CLOEXEC in the `flags` of proc_pid_fdinfo(5). */
const closeOnExec = 0o2000000;

/**
 * Closes what the caller left open (Linux). Node opens its own with O_CLOEXEC, and sets that at its start for the lowest 16
 * descriptors and those next to them alone: any other would pass to programs.
 */
function closeForeignDescriptors(): void {
  for (const descriptor of readdirSync("/proc/self/fd").map(Number)) {
    if (descriptor > 2 && isInherited(descriptor)) closeSync(descriptor);
  }
}

function isInherited(descriptor: number): boolean {
  try {
    const [, flags = "0"] = /^flags:\s+([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1")) ?? [];
    return (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    return false; // that of the directory itself, which is closed by now
  }
}
