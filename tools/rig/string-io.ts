/** An `Io` of strings, with which a command runs in the tests' own process. */
import { EventEmitter } from "node:events";
import { writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { Readable, Writable } from "node:stream";
import { runCommandLine } from "../../src/cli/command-line.js";
import { type Io, type OutputStream, processIo } from "../../src/cli/kit/io.js";
import { homeDirectory } from "../../src/client/default-home.js";
import { systemClock } from "../../src/clock.js";
import { mainArguments, node } from "./process.js";

/** Commands that need a process: they are one for others, or give their own streams to a program. */
export const needProcess: readonly string[] =
  "serve run run-environment agent agent-relay browse edit pick ssh-agent keyring mcp up prove".split(" ");

/** Thrown by `exit`, in place of the end of the process. */
class Exited extends Error {}

export type StringIo = Io & {
  /** Returns the output on standard output and standard error so far. */
  printed(): { readonly bytes: Buffer; readonly stdout: string; readonly stderr: string };
};

export type StringIoOptions = Partial<Io> & {
  /** Standard input; `stdinDescriptor` is to be the same in an open file. */
  readonly input?: Uint8Array;
};

/** The mask of the tests' process, to which `runHere` returns it after a command has set its own. */
const ownUmask = process.umask();

/** Returns an Io without a terminal, which sends no signals. */
export function stringIo({ input = new Uint8Array(), ...given }: StringIoOptions = {}): StringIo {
  const [out, err] = [collector(), collector()];
  const { env = {} } = given;
  const { sleep, pid, uid, platform, umask, userName, hostName } = processIo; // its streams stay unmade
  return {
    ...{ sleep, pid, uid, platform, umask, userName, hostName },
    clock: systemClock,
    stdin: Readable.from(input.length === 0 ? [] : [Buffer.from(input)]),
    stdinDescriptor: -1,
    openTerminal: () => null,
    childStreams: ["ignore", "ignore", "ignore"],
    stdout: out.stream,
    stderr: err.stream,
    env,
    cwd: () => env["HOME"] ?? tmpdir(),
    homeDirectory: () => homeDirectory(env),
    temporaryDirectory: () => env["TMPDIR"] ?? tmpdir(),
    events: new EventEmitter(),
    kill(pid, signal) {
      throw new Error(`a command that runs in the tests' process sends ${signal} to ${pid}`);
    },
    program: [node, ...mainArguments],
    exitCode: 0,
    exit(code) {
      this.exitCode = code ?? this.exitCode;
      throw new Exited(`exit ${this.exitCode}`);
    },
    printed: () => ({ bytes: out.bytes(), stdout: out.bytes().toString(), stderr: err.bytes().toString() }),
    ...given,
  };
}

function collector(): { readonly stream: OutputStream; readonly bytes: () => Buffer } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(Buffer.from(chunk)); // a copy: the command may wipe its own
      done();
    },
  });
  return { stream, bytes: () => Buffer.concat(chunks) };
}

/** Runs a command with this Io until it returns or exits. */
export async function runToItsEnd(args: readonly string[], io: Io): Promise<void> {
  try {
    await runCommandLine(args, io);
  } catch (error) {
    if (!(error instanceof Exited)) throw error;
  } finally {
    process.umask(ownUmask);
  }
}

/** Returns the `write` of a stream that writes to a descriptor before it goes on. */
export function writeTo(descriptor: number) {
  return (chunk: Buffer, _encoding: string, done: () => void) => {
    for (let written = 0; written < chunk.length; ) written += writeSync(descriptor, chunk, written);
    done();
  };
}
