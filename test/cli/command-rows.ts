/** Table-driven tests of the command line; rows run a few at a time, since some are processes. */
import { expect } from "chai";
import pMap from "p-map";
import type { Ended } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { runHere, runsHere } from "../support/command-here.js";
import { runWithoutTerminal } from "../support/pseudo-terminal.js";

export type Environment = Readonly<Record<string, string>>;

/** Returns the variables with which commands find this server. */
export function serverEnvironment({ home, url }: Pick<TestServer, "home" | "url">): Environment {
  return { STRONGROOM_HOME: home, STRONGROOM_ADDRESS: url };
}

/** Runs a command without a terminal: in this process where that is the same. */
export function strongroom(
  environment: Environment,
  args: readonly string[],
  input: string | Uint8Array = "",
): Promise<Ended> {
  return runsHere(args, environment)
    ? runHere(args, environment, input)
    : runWithoutTerminal(args, [input], environment);
}

/** Runs the command, which must succeed; returns what it printed. */
export async function must(environment: Environment, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await strongroom(environment, args, input);
  expect(code, `strongroom ${args.join(" ")}: ${stderr}`).to.equal(0);
  return stdout;
}

export type Row = {
  readonly args: readonly string[];
  readonly input?: string | Uint8Array;
  readonly more?: Environment;
  readonly exit: number;
  /** Standard output: all of it, or a pattern. */
  readonly out?: string | RegExp;
  /** Standard error; when omitted, empty for exit code 0. */
  readonly err?: RegExp;
};

/** One test per row. Rows run concurrently: none may change what another one reads. */
export function testRows(environment: () => Environment, rows: Readonly<Record<string, Row>>): void {
  const ended = new Map<string, Ended>();
  before(async () => {
    const run = async ([name, { args, input, more }]: [string, Row]) => {
      ended.set(name, await strongroom({ ...environment(), ...more }, args, input));
    };
    await pMap(Object.entries(rows), run, { concurrency: 4 });
  });
  for (const [name, { args, exit, out = "", err }] of Object.entries(rows)) {
    it(`${args[0]} exits ${exit}: ${name}`, () => {
      const { code, stdout, stderr } = ended.get(name) ?? { code: null, stdout: "", stderr: "not run" };
      expect(code, stdout + stderr).to.equal(exit);
      if (typeof out === "string") expect(stdout).to.equal(out);
      else expect(stdout).to.match(out);
      if (err !== undefined) expect(stderr).to.match(err);
      else if (exit === 0) expect(stderr).to.equal("");
      else expect(stderr).to.match(/^strongroom: /);
    });
  }
}
