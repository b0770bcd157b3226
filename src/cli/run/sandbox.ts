/** Sandbox of `agent run`: bubblewrap, without the vault's home, other processes, and any network but the broker's. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { entryFile } from "../../program-files.js";
import { CommandFailure } from "../lib/errors.js";
import { findProgram } from "./find-program.js";
import { notStarted } from "./launch.js";

export type SandboxOptions = {
  /** The vault's home, which the program does not see. */
  readonly home: string;
  /** Holds the session's files and the relay's socket. */
  readonly directory: string;
  /** The broker's. */
  readonly port: number;
  readonly environment: NodeJS.ProcessEnv;
};

/** Where strongroom is installed: its program reads files beside it. */
const programRoot = join(dirname(entryFile), "..", "..");

/** Returns the command that runs another in the sandbox. @throws CommandFailure usage, without bubblewrap */
export function sandboxed(
  command: readonly string[],
  { home, directory, port, environment }: SandboxOptions,
): string[] {
  const bubblewrap = findProgram("bwrap", environment["PATH"]);
  if (!("file" in bubblewrap)) {
    throw new CommandFailure(
      "usage",
      "--sandbox needs bubblewrap: install it (the program bwrap), or leave the flag out",
    );
  }
  const hidden = [home, environment["XDG_RUNTIME_DIR"], "/run/dbus"].filter(
    (path) => path !== undefined && existsSync(path),
  );
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
    ...["--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"],
    // These may be where those are.
    ...["--bind", process.cwd(), process.cwd()],
    ...[directory, programRoot, process.execPath].flatMap((path) => ["--ro-bind", path, path]),
    ...hidden.flatMap((path) => ["--tmpfs", path ?? ""]),
    ...["--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session"],
    ...["--chdir", process.cwd(), "--", ...inside],
  ];
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
