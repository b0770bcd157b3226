/**
 * Commands that serve a Unix socket, as ssh-agent does: for as long as a command runs, in the foreground, or in the background,
 * where they print what `eval` needs.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmdirSync, rmSync, statSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { keepsNames } from "../../../client/ownership.js";
import { wipingSocket } from "../../../wiping-socket.js";
import type { ConnectionFlags } from "../connection/server.js";
import { CommandFailure, systemCode } from "../errors.js";
import type { Bytes, Io } from "../io.js";
import { printable, printLine, say } from "../output.js";
import { runChild } from "../programs/child-process.js";
import type { Release } from "../programs/held-signals.js";
import { readableEnvironment, spawnInheriting } from "../programs/inherited.js";
import { withoutTokens } from "../programs/without-tokens.js";
import { confirm } from "../prompts/prompt.js";
import { removeStaleSocket } from "./stale-socket.js";

export type AgentFlags = ConnectionFlags & {
  readonly socket?: string;
  readonly confirm?: true;
  readonly ttl?: number;
  readonly foreground?: true;
  readonly detached?: true;
};

export type SocketAgent = {
  /** The command. */
  readonly name: string;
  /** Beginning of the name of the socket's directory. */
  readonly directory: string;
  /** Variables that clients need in their environment. */
  readonly variables: (path: string, pid: number) => Readonly<Record<string, string>>;
};

/** Asks the user a question. */
export type Approval = (question: string) => Promise<boolean>;

export const dayMs = 24 * 3600 * 1000;
export const defaultTtlMs = 12 * 3600 * 1000;
const ready = "ready";

/** Returns a server whose sockets read into memory that is wiped. */
export function wipingServer(serve: (socket: Socket) => void): Server {
  return createServer((accepted) => serve(wipingSocket(accepted)));
}

/** Serves on the socket until the command ends, or until a signal. */
export async function serveSocket(
  io: Io,
  agent: SocketAgent,
  server: Server,
  command: readonly string[],
  flags: AgentFlags,
  release: Release,
): Promise<void> {
  const socket = socketPath(io, agent, flags);
  let isListening = false;
  try {
    await listen(io, server, socket.path);
    isListening = true;
    const variables = agent.variables(socket.path, io.pid);
    await release(() =>
      command.length > 0 ? runWith(io, command, variables) : serveUntilSignal(io, flags, variables),
    );
  } finally {
    server.close();
    if (isListening) socket.remove(); // else the file may be another agent's, or no socket
  }
}

/**
 * Runs the command again without a terminal, and prints what clients need once it listens.
 * @param more flags of the command, beside those of the connection
 */
export async function startInBackground(
  io: Io,
  agent: SocketAgent,
  flags: AgentFlags,
  env: NodeJS.ProcessEnv,
  more: readonly string[],
  release: Release,
): Promise<void> {
  const path = flags.socket === undefined ? join(newDirectory(io, agent), "agent") : resolve(flags.socket);
  const child = await spawnAgent(io, env, [agent.name, "--detached", "--socket", path, ...more, ...connection(flags)]);
  await release(async () => printForShell(io, agent.variables(path, child.pid ?? 0))).catch((error: unknown) => {
    child.kill();
    throw error;
  });
}

/** Waits until it listens. */
async function spawnAgent(io: Io, env: NodeJS.ProcessEnv, args: readonly string[]): Promise<ChildProcess> {
  const [node, ...words] = io.program;
  const child = spawn(node, [...words, ...args], { detached: true, stdio: ["ignore", "pipe", "pipe"], env });
  const problem = await new Promise<string | null>((started) => {
    let text = "";
    child.stdout.once("data", () => started(null));
    child.stderr.on("data", (part: Buffer) => {
      text += part.toString("utf8");
    });
    child.once("exit", () => started(text.trim() || "strongroom: it ended immediately"));
  });
  if (problem !== null) throw new CommandFailure("unexpected", problem.replace(/^strongroom: /, ""));
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  child.unref();
  return child;
}

function connection({ home, address, tokenFile, cacert, timeout }: ConnectionFlags): string[] {
  return [
    ...(home === undefined ? [] : ["--home", home]),
    ...(address === undefined ? [] : ["--address", address]),
    ...(tokenFile === undefined ? [] : ["--token-file", tokenFile]),
    ...(cacert === undefined ? [] : ["--cacert", cacert]),
    ...(timeout === undefined ? [] : ["--timeout", `${timeout}ms`]),
  ];
}

/** Prints assignments for a POSIX shell. */
function printForShell(io: Io, variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(variables)) {
    const word = /^\w+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
    printLine(io, `${name}=${word}; export ${name};`);
  }
}

async function serveUntilSignal(
  io: Io,
  { detached }: AgentFlags,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const ended = untilSignal(io);
  if (detached) io.stdout.write(`${ready}\n`);
  else printForShell(io, variables);
  await ended;
}

/** Resolves at a signal that ends programs. */
export async function untilSignal(io: Io): Promise<void> {
  await Promise.race(["SIGTERM", "SIGINT", "SIGHUP"].map((signal) => once(io.events, signal)));
}

async function runWith(io: Io, command: readonly string[], variables: Readonly<Record<string, string>>): Promise<void> {
  const [program = "", ...args] = command;
  const env = { ...withoutTokens(readableEnvironment(io)), ...variables };
  const start = () => spawnInheriting({ file: program, argv0: program, args }, env, (text) => say(io, text));
  io.exitCode = await runChild(io, start).catch((error: unknown) => {
    throw new CommandFailure(
      "usage",
      `${printable(program)} cannot be started (${systemCode(error) ?? "unknown reason"})`,
    );
  });
}

/** Only its owner can connect to the socket. */
async function listen(io: Io, server: Server, path: string): Promise<void> {
  const found = await removeStaleSocket(path);
  if (found === "file") throw new CommandFailure("conflict", `${printable(path)} is not a socket: name another one`);
  if (found === "listening")
    throw new CommandFailure(
      "conflict",
      `another agent listens on ${printable(path)}: end it, or name another --socket`,
    );
  const before = io.umask(0o177);
  try {
    server.listen(path);
    await once(server, "listening");
  } catch (error) {
    throw new CommandFailure(
      "unexpected",
      `${printable(path)} cannot be used (${systemCode(error) ?? "unknown reason"})`,
    );
  } finally {
    io.umask(before);
  }
}

function socketPath(
  io: Io,
  agent: SocketAgent,
  { socket, detached }: AgentFlags,
): { readonly path: string; readonly remove: () => void } {
  const path = socket === undefined ? join(newDirectory(io, agent), "agent") : resolve(socket);
  const isOwn = socket === undefined || (detached === true && basename(dirname(path)).startsWith(agent.directory));
  const remove = () => {
    rmSync(path, { force: true });
    if (isOwn) removeEmpty(dirname(path));
  };
  return { path, remove };
}

/** DANGER: the directory of --socket may only look like a directory that this command made, and hold other files. */
function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // it is not empty
  }
}

/** @throws CommandFailure when another user could put a socket of theirs in the place of ours */
function newDirectory(io: Io, { directory }: SocketAgent): string {
  const { XDG_RUNTIME_DIR: runtime = "" } = io.env;
  const places = [isAbsolute(runtime) ? runtime : io.temporaryDirectory(), io.temporaryDirectory()];
  const place = places.find((each) => keepsNames(statSync(each)));
  if (place !== undefined) return mkdtempSync(join(place, directory));
  throw new CommandFailure(
    "unexpected",
    `other users can replace files in ${io.temporaryDirectory()}: name a socket with --socket`,
  );
}

/** A program that asks the user, as SSH_ASKPASS names it, and its environment. */
type Askpass = { readonly program: string; readonly env: NodeJS.ProcessEnv };

/** Returns null where it could not show anything. */
export function findAskpass(io: Io): Askpass | null {
  const { SSH_ASKPASS: program, SSH_ASKPASS_REQUIRE: require, DISPLAY, WAYLAND_DISPLAY } = io.env;
  if (!program || !(DISPLAY || WAYLAND_DISPLAY || require === "force")) return null;
  return { program, env: withoutTokens(readableEnvironment(io)) };
}

/** Returns what asks the user. @throws CommandFailure usage, where nothing could ask */
export function mustFindApproval(io: Io, command: readonly string[], flags: AgentFlags): Approval {
  const askpass = findAskpass(io);
  if (askpass !== null) return askWith(askpass);
  if (command.length > 0 || flags.foreground) return async (question) => (await confirm(io, question)) === true;
  throw new CommandFailure(
    "usage",
    "--confirm has nothing to ask with: set SSH_ASKPASS, or use --foreground or a command after --",
  );
}

function askWith({ program, env }: Askpass): Approval {
  return async (question) => {
    const child = spawn(program, [question], { stdio: "ignore", env: { ...env, SSH_ASKPASS_PROMPT: "confirm" } });
    const [code] = (await once(child, "exit").catch(() => [1])) as [number | null];
    return code === 0;
  };
}

const mostTypedBytes = 4096;

/** Returns what the user typed, without the end of the line, for the caller to wipe; null where the user declined. */
export async function askedFor(
  { program, env }: Askpass,
  question: string,
  signal: AbortSignal,
): Promise<Bytes | null> {
  const typed = new Uint8Array(new ArrayBuffer(mostTypedBytes));
  let length = 0;
  const child = spawn(program, [question], { stdio: ["ignore", "pipe", "ignore"], env, signal });
  child.stdout.on("data", (piece: Buffer) => {
    typed.set(piece.subarray(0, typed.length - length), length);
    length = Math.min(typed.length, length + piece.length);
    piece.fill(0);
  });
  const [code] = (await once(child, "close").catch(() => [1])) as [number | null];
  const end = typed[length - 1] === lineFeed ? length - 1 : length;
  if (code === 0 && end > 0) return typed.subarray(0, end);
  typed.fill(0);
  return null;
}

const lineFeed = 0x0a;
