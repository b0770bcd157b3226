/** Sandbox of `agent run`: bubblewrap, without the vault, other processes, and any network but the broker's. */
import { spawnSync } from "node:child_process";
import { existsSync, fstatSync, lstatSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { entryFile } from "../../program-files.js";
import { sandboxMark } from "../kit/connection/in-sandbox.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printable } from "../kit/output.js";
import { findProgram } from "../kit/programs/find-program.js";
import { hiddenPaths, type Place } from "./hidden-paths.js";
import { isWithin } from "./path-walk.js";
import { type Expected, type Mount, planSandbox } from "./sandbox-plan.js";
import { planStreams, type Streams } from "./sandbox-streams.js";
import { seccompFilter } from "./seccomp-filter.js";
import { findSystemProgram } from "./system-program.js";

type SandboxOptions = {
  readonly command: readonly string[];
  /** Where the vault is. */
  readonly place: Place;
  /** Directories that the program can change, beside the working directory. */
  readonly writable: readonly string[];
  /** Holds the session's files and sockets. */
  readonly directory: string;
  /** The broker's. */
  readonly port: number;
  readonly environment: NodeJS.ProcessEnv;
};

export type Sandboxed = {
  readonly command: readonly string[];
  readonly expected: Expected;
  /** The session's. */
  readonly directory: string;
  /** File that bubblewrap gets as its descriptor 3. */
  readonly filter: string;
  readonly streams: Streams;
};

const [filterDescriptor, infoDescriptor] = ["3", "4"];

/** Files of the session's directory. */
export const sessionFiles = {
  relay: "broker.sock",
  /** The socket at which the sandbox asks whether the program may start, and gets signals for it. */
  start: "start.sock",
  /** Conditions that must hold inside before it starts. */
  expected: "sandbox.json",
  /** Which system calls are denied. */
  filter: "filter.bpf",
  /** The shell's that turns into bubblewrap. */
  script: "start.sh",
  /** bubblewrap's report on its processes. */
  info: "info.json",
};

const system = ["/dev", "/proc"];

/**
 * Empty inside: there programs put their sockets, and one of them, as that of docker or of a terminal, could lead out of the
 * sandbox.
 */
const emptied = ["/tmp", "/var/tmp", "/run", "/var/run"];

/** Below those directories, and needed: NixOS has its programs there. */
const needed = ["/run/current-system", "/run/opengl-driver", "/run/wrappers"];

/**
 * Returns bubblewrap's file, and the streams of a program in it.
 * @param given directories of --write
 * @throws CommandFailure usage, where there can be no sandbox
 */
export function mustHaveSandbox(
  io: Io,
  { PATH: path }: NodeJS.ProcessEnv,
  given: readonly string[],
): { readonly bubblewrap: string; readonly streams: Streams } {
  if (io.platform !== "linux") throw new CommandFailure("usage", `the sandbox needs Linux: ${without}`);
  if (io.uid === 0) {
    throw new CommandFailure("usage", `root cannot be kept in a sandbox: run this as an ordinary user, or ${without}`);
  }
  writableDirectories(io, given); // refuses a wrong one before a passphrase is asked for
  const found = findSystemProgram("bwrap", path);
  if ("file" in found) return { bubblewrap: found.file, streams: planStreams(path) };
  if (found.found === null) {
    throw new CommandFailure("usage", `the sandbox needs bubblewrap: ${howToInstall(path)}, or ${without}`);
  }
  const [file, replaceable] = [printable(found.found), printable(found.replaceable)];
  const problem = `${file} is not used, because programs of your user can change ${replaceable}`;
  throw new CommandFailure("usage", `${problem}: ${howToInstall(path)}, or ${without}`);
}

/**
 * Returns the words before bubblewrap's own that keep out mounts that are made outside later: bubblewrap lets them in, where
 * they would be writable. None where no mount is shared, or unshare(1) may not do this: later mounts are then seen inside.
 */
function withoutLaterMounts({ PATH: path }: NodeJS.ProcessEnv): readonly string[] {
  if (!/ (?:shared|master):/.test(readFileSync("/proc/self/mountinfo", "utf8"))) return [];
  const found = findSystemProgram("unshare", path);
  if (!("file" in found)) return [];
  const command = [found.file, "--user", "--map-current-user", "--mount", "--propagation", "private", "--"] as const;
  const [program, ...flags] = command;
  return spawnSync(program, [...flags, program, "--version"], { stdio: "ignore" }).status === 0 ? command : [];
}

const without = "add --no-sandbox (programs of your user can then read the root token)";

/** Commands to install bubblewrap, by the program that installs packages here. */
const installers = [
  ["apt-get", "sudo apt install bubblewrap"],
  ["dnf", "sudo dnf install bubblewrap"],
  ["pacman", "sudo pacman -S bubblewrap"],
  ["zypper", "sudo zypper install bubblewrap"],
  ["apk", "sudo apk add bubblewrap"],
] as const;

function howToInstall(path: string | undefined): string {
  const [, command] = installers.find(([program]) => "file" in findProgram(program, path)) ?? [];
  return command === undefined ? "install the package bubblewrap" : `install it with  ${command}`;
}

/** Returns the command that runs another in the sandbox. @throws CommandFailure usage, conflict */
export async function sandboxed(io: Io, options: SandboxOptions): Promise<Sandboxed> {
  const { command, place, directory, port, environment } = options;
  const { bubblewrap, streams } = mustHaveSandbox(io, environment, options.writable);
  // DANGER: an open directory leads to all that is below it, whatever covers it inside.
  const found = [0, 1, 2].find((descriptor) => isOpenDirectory(descriptor));
  if (found !== undefined) throw new CommandFailure("usage", `descriptor ${found} is a directory: close it`);
  const writable = writableDirectories(io, options.writable);
  const own = [...system, ...emptied.filter(isDirectory)];
  const hidden = await hiddenPaths(io, place, writable);
  const { mounts, expected } = planSandbox({ writable, own, hidden, program: programPaths(io) });
  writeFileSync(join(directory, sessionFiles.expected), JSON.stringify(expected), { mode: 0o600 });
  const filter = join(directory, sessionFiles.filter);
  writeFileSync(filter, seccompFilter(), { mode: 0o600 });
  const [node] = io.program;
  const inside = [node, entryFile, "agent-relay", directory, String(port), "--", ...command];
  const words = [
    ...withoutLaterMounts(environment),
    bubblewrap,
    ...["--unshare-user", "--disable-userns", "--cap-drop", "ALL"],
    ...["--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent"],
    ...(streams.terminal === null ? ["--new-session"] : []),
    ...["--seccomp", filterDescriptor, "--info-fd", infoDescriptor],
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"],
    ...mounts.filter(({ path }) => !system.includes(path)).flatMap(mountArguments),
    ...needed.filter((path) => existsSync(path)).flatMap((path) => ["--ro-bind", path, path]),
    ...["--ro-bind", directory, directory],
    ...["--ro-bind", join(directory, sessionFiles.expected), sandboxMark],
    ...mounts.filter(isSealed).flatMap(({ path }) => ["--remount-ro", path]),
    ...["--chdir", io.cwd(), "--", ...inside],
  ];
  return { command: words, expected, directory, filter, streams };
}

function mountArguments({ path, kind, entries = [], isWritable = false }: Mount): string[] {
  if (kind === "writable") return ["--bind", path, path];
  if (kind === "readOnly") return ["--ro-bind", path, path];
  if (kind === "blank") return ["--ro-bind", "/dev/null", path];
  const bind = isWritable ? "--bind-try" : "--ro-bind-try";
  const shown = entries.flatMap((entry) => {
    const each = join(path, entry.name);
    return entry.kind === "link" ? ["--symlink", entry.target, each] : [bind, each, each];
  });
  return ["--tmpfs", path, ...shown];
}

function isSealed({ kind }: Mount): boolean {
  return kind === "frame" || kind === "empty";
}

/** Files that the next start of the program needs, and the directory of the name that it was started by. */
function programPaths({ program }: Io): string[] {
  const started = program.at(-1) ?? "";
  const isName = lstatSync(started, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return [join(dirname(entryFile), "..", ".."), program[0], ...(isName ? [dirname(started)] : [])];
}

function isOpenDirectory(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isDirectory();
  } catch {
    return false;
  }
}

/** Returns the working directory and the directories of --write. @throws CommandFailure usage */
function writableDirectories(io: Io, given: readonly string[]): string[] {
  const working = io.cwd();
  const all = [...(isOfSystem(working) ? [] : [working]), ...given.map(mustBeWritable)];
  const outermost = all.filter((path) => !all.some((other) => other !== path && isWithin(path, other)));
  return [...new Set(outermost)];
}

/** Whether the program can change what the user's shell and programs read when they start. */
export function canWriteHome(io: Io, given: readonly string[]): boolean {
  const home = realpathSync(io.homeDirectory());
  return writableDirectories(io, given).some((directory) => isWithin(home, directory));
}

/** Whether the sandbox has a directory of its own there, or a path is too close to the kernel, or above all others. */
function isOfSystem(path: string): boolean {
  if (path.startsWith("/dev/shm/")) return false;
  return path === "/" || emptied.includes(path) || [...system, "/sys"].some((each) => isWithin(path, each));
}

function mustBeWritable(path: string): string {
  const shown = printable(path);
  if (!existsSync(path) || !statSync(path).isDirectory()) {
    throw new CommandFailure("usage", `--write ${shown} is not a directory: create it first`);
  }
  const real = realpathSync(path);
  if (isOfSystem(real))
    throw new CommandFailure("usage", `--write ${shown} would open the sandbox: name a directory of yours`);
  return real;
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
  return listen(server, place);
}

export function listen(server: Server, place: number | string): Promise<Server> {
  const failed = new CommandFailure("unexpected", `the sandbox's connection to the broker failed at ${place}`);
  return new Promise((resolve, reject) => {
    server
      .once("error", () => reject(failed))
      .listen(typeof place === "number" ? { port: place, host: "127.0.0.1" } : { path: place }, () => resolve(server));
  });
}
