/**
 * Surroundings of a command: streams, environment, and how it ends. A command touches no global, so that
 * tests run it in their own process, with streams of strings.
 */

import { constants, openSync } from "node:fs";

export type { Bytes } from "../../../workers/protocol.js";

/** A stream that a command writes to. */
export type OutputStream = NodeJS.WritableStream & {
  /** Whether it is a terminal, whose size the next members say. */
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export interface Io {
  readonly stdin: NodeJS.ReadableStream & AsyncIterable<Buffer> & { readonly isTTY?: boolean };
  /** Standard input for what must not pass through Node's buffers, such as a passphrase. */
  readonly stdinDescriptor: number;
  /** Opens the terminal for questions, whatever the streams are; null where there is none. */
  openTerminal(): number | null;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: NodeJS.ProcessEnv;
  /** The working directory, where a project file is looked for. */
  cwd(): string;
  /** Exit code of a command that returns. */
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
  openTerminal() {
    try {
      return openSync("/dev/tty", constants.O_RDWR | constants.O_NOCTTY);
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
  env: process.env,
  cwd: () => process.cwd(),
  get exitCode() {
    return Number(process.exitCode ?? 0);
  },
  set exitCode(code) {
    process.exitCode = code;
  },
  exit: (code) => process.exit(code),
};
