/**
 * Standard streams of a program in the sandbox. DANGER: it never gets the user's terminal itself. A program that has one open
 * puts input into it, changes its settings for the time after, and reads what is typed to others: once the command is in the
 * background, a program in a session of its own would read a passphrase that the next command asks for. It gets a terminal that
 * script(1) makes and copies to the real one; in that, Ctrl-C reaches the program in the foreground alone.
 */
import { type StdioOptions, spawnSync } from "node:child_process";
import { fstatSync } from "node:fs";
import { isatty } from "node:tty";
import { CommandFailure } from "../kit/errors.js";
import { findSystemProgram } from "./system-program.js";

export type Streams = {
  /** The file of script(1); null where no stream is a terminal. */
  readonly terminal: string | null;
  /** Options to start script(1), or the sandbox itself; detached where Ctrl-C is not meant for it. */
  readonly options: { readonly stdio: StdioOptions; readonly detached: boolean };
  /** Which of them is a pipe that gets what is read from the standard input; null for none. */
  readonly fed: number | null;
  /** Redirections of the shell that starts the sandbox. */
  readonly redirections: string;
};

/** Descriptors that lead past script(1). */
const [first, last] = [3, 5];

/** @throws CommandFailure usage, where script(1) is needed and missing */
export function planStreams(path: string | undefined): Streams {
  const terminals = [0, 1, 2].map((descriptor) => isatty(descriptor));
  // DANGER: through its descriptor, the program could open a file of the standard input again, and write it.
  const input = fstatSync(0).isFile() ? "pipe" : "inherit";
  if (!terminals.includes(true)) {
    const options = { stdio: [input, "inherit", "inherit"] as StdioOptions, detached: false };
    return { terminal: null, options, fed: input === "pipe" ? 0 : null, redirections: "" };
  }
  const [stdin = false, stdout = false] = terminals;
  // Where only one of them is a terminal, another program of the pipeline may read what is typed.
  const isInteractive = stdin && stdout;
  const copy = stdout ? 1 : 2;
  const past = terminals.map((isTerminal, descriptor) =>
    isTerminal ? "ignore" : descriptor === 0 ? input : descriptor,
  );
  return {
    terminal: mustFindScript(path),
    options: {
      stdio: [isInteractive ? "inherit" : "ignore", copy, 2, ...past.map((each) => (each === "inherit" ? 0 : each))],
      detached: !isInteractive,
    },
    fed: past[0] === "pipe" ? first : null,
    redirections: shellRedirections(
      past.map((each) => each !== "ignore"),
      isInteractive,
    ),
  };
}

/** `isPast`: which streams lead past script(1). */
function shellRedirections(isPast: readonly boolean[], isInteractive: boolean): string {
  const [stdin, stdout, stderr] = isPast;
  const words = [
    stdin === true ? `<&${first}` : isInteractive ? "" : "</dev/null",
    stdout === true ? `>&${first + 1}` : "",
    stderr === true ? `2>&${last}` : "",
  ];
  return words.join(" ");
}

/** @throws CommandFailure usage */
function mustFindScript(path: string | undefined): string {
  const found = findSystemProgram("script", path);
  if ("file" in found && isOfUtilLinux(found.file)) return found.file;
  const problem =
    "a program with a terminal needs script(1) of util-linux in the sandbox, where only root can change it";
  throw new CommandFailure("usage", `${problem}: install it, or redirect all streams:  < /dev/null 2>&1 | cat`);
}

/** Others, such as BSD's and BusyBox', have other flags. */
function isOfUtilLinux(file: string): boolean {
  return spawnSync(file, ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux") === true;
}
