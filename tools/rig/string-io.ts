/** An `Io` of strings, with which a command runs in the tests' own process. */
import { tmpdir } from "node:os";
import { Readable, Writable } from "node:stream";
import type { Io, OutputStream } from "../../src/cli/kit/io.js";

/** Thrown by `exit`, in place of the end of the process. */
export class Exited extends Error {}

export type StringIo = Io & {
  /** Returns the output on standard output and standard error so far. */
  printed(): { readonly bytes: Buffer; readonly stdout: string; readonly stderr: string };
};

/** Returns an Io without a terminal. `stdinDescriptor`: the same input in an open file. */
export function stringIo(env: NodeJS.ProcessEnv, input: Uint8Array, stdinDescriptor: number): StringIo {
  const [out, err] = [collector(), collector()];
  return {
    stdin: Readable.from(input.length === 0 ? [] : [Buffer.from(input)]),
    stdinDescriptor,
    openTerminal: () => null,
    stdout: out.stream,
    stderr: err.stream,
    env,
    cwd: () => env["HOME"] ?? tmpdir(),
    exitCode: 0,
    exit(code) {
      this.exitCode = code ?? this.exitCode;
      throw new Exited(`exit ${this.exitCode}`);
    },
    printed: () => ({ bytes: out.bytes(), stdout: out.bytes().toString(), stderr: err.bytes().toString() }),
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
