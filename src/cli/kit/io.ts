/**
 * Surroundings of a command: streams, terminal, environment, time, signals, and how it ends. A command touches no global, so
 * that tests run it in their own process.
 */

import type { EventEmitter } from "node:events";
import { constants, openSync } from "node:fs";
import { hostname, tmpdir, userInfo } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { homeDirectory } from "../../client/default-home.js";
import { type Clock, systemClock } from "../../clock.js";

export type { Bytes } from "../../../workers/protocol.js";

/** A stream that a command writes to. */
export type OutputStream = NodeJS.WritableStream & {
  /** Whether it is a terminal, whose size the next members say. */
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

/** A descriptor, this process's own stream, or none. */
type ChildStream = number | "inherit" | "ignore";

/** Members of the process and the machine that a command may use. */
export interface Io {
  readonly stdin: NodeJS.ReadableStream & AsyncIterable<Buffer> & { readonly isTTY?: boolean };
  /** Standard input for what must not pass through Node's buffers, such as a passphrase. */
  readonly stdinDescriptor: number;
  /**
   * Opens the terminal for questions, whatever the streams are; null where there is none.
   * @param flags of open(2); to read and write, unless given
   */
  openTerminal(flags?: number): number | null;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Streams of a child that has the command's own, as `spawn` takes them. */
  readonly childStreams: readonly [input: ChildStream, output: ChildStream, errors: ChildStream];
  readonly env: NodeJS.ProcessEnv;
  /** The working directory, where a project file is looked for. */
  cwd(): string;
  homeDirectory(): string;
  temporaryDirectory(): string;
  /** Its timers do not keep the process running. */
  readonly clock: Clock;
  /** Keeps the process running for so many milliseconds. @throws AbortError */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Signals that the process gets, and Node's own events of a process, such as `exit`. */
  readonly events: EventEmitter;
  /** Sends a signal to a process; 0 is this one's group. */
  kill(pid: number, signal: NodeJS.Signals): void;
  readonly pid: number;
  /** Null on Windows. */
  readonly uid: number | null;
  readonly platform: NodeJS.Platform;
  /** The words that start this program again: Node, its flags, and the program's file. */
  readonly program: readonly [node: string, ...string[]];
  /** Sets the mask of modes for new files; returns the one before. */
  umask(mask: number): number;
  userName(): string;
  hostName(): string;
  exitCode: number;
  /** Ends the command now, by default with `exitCode`. */
  exit(code?: number): never;
}

/** This process. Its streams are made when they are first used. */
export const processIo: Io = {
  get stdin() {
    return process.stdin;
  },
  stdinDescriptor: 0,
  openTerminal(flags = constants.O_RDWR) {
    try {
      return openSync("/dev/tty", flags | constants.O_NOCTTY);
    } catch {
      return null;
    }
  },
  get stdout() {
    return process.stdout;
  },
  get stderr() {
    return process.stderr;
  },
  childStreams: ["inherit", "inherit", "inherit"],
  env: process.env,
  cwd: () => process.cwd(),
  homeDirectory: () => homeDirectory(process.env),
  temporaryDirectory: tmpdir,
  clock: systemClock,
  sleep: (ms, signal) => wait(ms, undefined, { signal }),
  events: process,
  kill: (pid, signal) => void process.kill(pid, signal),
  pid: process.pid,
  uid: process.getuid?.() ?? null,
  platform: process.platform,
  program: [process.execPath, ...process.execArgv, process.argv[1] ?? ""],
  umask: (mask) => process.umask(mask),
  userName: () => userInfo().username,
  hostName: hostname,
  get exitCode() {
    return Number(process.exitCode ?? 0);
  },
  set exitCode(code) {
    process.exitCode = code;
  },
  exit: (code) => process.exit(code),
};
