/** A command without a terminal, bytes in, bytes out: in this process where that is the same, else in a session of its own. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { environment, mainArguments, node } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { type Finished, runHere, runsHere } from "../support/command-here.js";

type Options = {
  readonly input?: string | Uint8Array;
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
};

export type Started = {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly finished: Promise<Finished>;
};

/** In a process group of its own, so that a signal to the tests does not reach it. */
export function start(server: Pick<TestServer, "home">, args: readonly string[], options: Options = {}): Started {
  const { input = "", environment: more = {}, cwd = temporaryDirectory() } = options;
  const env = environment({ STRONGROOM_HOME: server.home, ...more });
  const child = spawn(node, [...mainArguments, ...args], { env, cwd, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  later(() => endGroup(child));
  child.stdin.on("error", () => {}); // it may end without reading
  child.stdin.end(input);
  const collected = Promise.all([once(child, "close"), buffer(child.stdout), buffer(child.stderr)]);
  const finished = collected.then(([[code], bytes, errors]) => {
    return { code: code as number | null, bytes, stdout: bytes.toString(), stderr: errors.toString() };
  });
  return { child, finished };
}

/** The child of `strongroom run` may outlive it. */
function endGroup({ pid, exitCode, signalCode }: Started["child"]): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, "SIGKILL");
}

/** Commands that find files in the working directory by their Io. */
const commandsInDirectory = new Set(["allow", "export", "inject", "scan"]);

export function strongroom(
  server: Pick<TestServer, "home">,
  args: readonly string[],
  options: Options = {},
): Promise<Finished> {
  const more = { STRONGROOM_HOME: server.home, ...options.environment };
  const followsCwd = options.cwd === undefined || commandsInDirectory.has(args[0] ?? "");
  if (followsCwd && runsHere(args, more)) return runHere(args, more, options.input, options);
  return start(server, args, options).finished;
}

/** Asserts success without a message on standard error. */
export function mustDo(finished: Finished): Finished {
  expect(finished.stderr).to.equal("");
  expect(finished.code, finished.stdout).to.equal(0);
  return finished;
}

/** Asserts this exit code and a single message that contains all the words. */
export function mustRefuseWith(finished: Finished, code: number, ...words: readonly string[]): void {
  expect(finished.code, finished.stderr).to.equal(code);
  expect(finished.stdout).to.equal("");
  expect(finished.stderr).to.match(/^(?:strongroom: |\{"error":)/);
  for (const word of words) expect(finished.stderr).to.contain(word);
}
