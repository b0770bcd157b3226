/** Sandbox of `agent run`: bubblewrap, without the vault's home, other processes, and any network but the broker's. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, lstatSync, realpathSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { entryFile } from "../../program-files.js";
import { CommandFailure } from "../lib/errors.js";
import { findProgram } from "./find-program.js";
import { notStarted } from "./launch.js";

export type SandboxOptions = {
  /** Files and directories that the program does not see. */
  readonly hidden: readonly string[];
  /** Holds the session's files and the relay's socket. */
  readonly directory: string;
  /** The broker's. */
  readonly port: number;
  readonly environment: NodeJS.ProcessEnv;
};

/** Where strongroom is installed: its program reads files beside it. */
const programRoot = join(dirname(entryFile), "..", "..");

/**
 * Where programs put their sockets: one of them, as that of docker or of a terminal, could lead out of the sandbox. They
 * are empty inside.
 */
const emptied = ["/tmp", "/run", ...(isDirectory("/var/run") ? ["/var/run"] : [])];

/** Below those directories, and needed: NixOS has its programs there. */
const needed = ["/run/current-system", "/run/opengl-driver", "/run/wrappers"];

/** Returns the command that runs another in the sandbox. @throws CommandFailure usage, without bubblewrap */
export function sandboxed(
  command: readonly string[],
  { hidden, directory, port, environment }: SandboxOptions,
): string[] {
  const bubblewrap = findProgram("bwrap", environment["PATH"]);
  if (!("file" in bubblewrap)) {
    throw new CommandFailure(
      "usage",
      "--sandbox needs bubblewrap: install it (the program bwrap), or leave the flag out",
    );
  }
  const { XDG_RUNTIME_DIR: runtime = "", SSH_AUTH_SOCK: sshAgent = "" } = environment;
  const inside = [
    process.execPath,
    entryFile,
    "agent-relay",
    join(directory, "broker.sock"),
    String(port),
    "--",
    ...command,
  ];
  return [
    bubblewrap.file,
    ...["--bind", "/", "/", "--dev", "/dev", "--proc", "/proc"],
    ...emptied.flatMap((path) => ["--tmpfs", path]),
    ...needed.filter((path) => existsSync(path)).flatMap((path) => ["--ro-bind", path, path]),
    ...workingDirectory(process.cwd()),
    // These may be where those are, and are not to be changed.
    ...[directory, programRoot, process.execPath].flatMap((path) => ["--ro-bind", path, path]),
    ...[...hidden, runtime, sshAgent].flatMap(hide),
    ...["--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session"],
    ...["--chdir", process.cwd(), "--", ...inside],
  ];
}

/** Shows the working directory again where it is in one that is empty; DANGER: one above those would show them again. */
function workingDirectory(path: string): string[] {
  const isHidden = [...emptied, "/dev/shm"].some((parent) => path.startsWith(`${parent}/`));
  return isHidden ? ["--bind", path, path] : [];
}

/** Links are followed: what they lead to has another name as well. */
function hide(path: string): string[] {
  if (path === "" || !existsSync(path)) return [];
  const real = realpathSync(path);
  return isDirectory(real) ? ["--tmpfs", real] : ["--ro-bind", "/dev/null", real];
}

function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Leads connections to a port of 127.0.0.1, or to a Unix socket, to where `open` connects. @throws CommandFailure */
export function startRelay(place: number | string, open: () => Socket): Promise<Server> {
  const server = createServer((near) => {
    const far = open();
    near.pipe(far).pipe(near);
    near.on("error", () => far.destroy()).on("close", () => far.destroy());
    far.on("error", () => near.destroy()).on("close", () => near.destroy());
  });
  const failed = new CommandFailure("unexpected", `the sandbox's connection to the broker failed at ${place}`);
  return new Promise((resolve, reject) => {
    server
      .once("error", () => reject(failed))
      .listen(typeof place === "number" ? { port: place, host: "127.0.0.1" } : { path: place }, () => resolve(server));
  });
}

/** @throws CommandFailure usage */
export function startProgram([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const found = findProgram(program, env["PATH"]);
  if (!("file" in found)) throw new CommandFailure("notFound", found.problem);
  try {
    return spawn(found.file, args, { env, stdio: "inherit" });
  } catch (error) {
    throw notStarted(error);
  }
}
