/** Owns questions that are answered with yes or no, on the terminal, whatever standard input is. */
import { openSync, writeSync } from "node:fs";
import { ReadStream } from "node:tty";
import { CommandFailure } from "../session/exit-codes.js";

/**
 * Whether the user says yes; Enter alone is no. Null when there is no terminal to ask on.
 * @throws CommandFailure aborted, when the input ends, and by Ctrl-C
 */
export async function confirm(question: string): Promise<boolean | null> {
  const terminal = openTerminal();
  if (terminal === null) return null;
  const answer = await ask(terminal, `${question} [y/N] `);
  if (answer === null) throw new CommandFailure("aborted", "broken off: nothing was done");
  return /^\s*y(?:es)?\s*$/i.test(answer);
}

/** A stream, since a read that blocks could not be broken off. Null when there is no answer. */
function ask(terminal: number, question: string): Promise<string | null> {
  return new Promise((resolve) => {
    const input = new ReadStream(terminal);
    const finish = (answer: string | null) => {
      process.off("SIGINT", breakOff);
      input.once("close", () => resolve(answer));
      input.destroy();
    };
    const breakOff = () => {
      writeSync(terminal, "\n");
      finish(null);
    };
    process.once("SIGINT", breakOff);
    input.once("data", (line) => finish(line.toString("latin1")));
    input.once("end", breakOff).once("error", () => finish(null));
    writeSync(terminal, question);
  });
}

/** Goes on only after a yes. @throws CommandFailure aborted; usage, when nobody can be asked */
export async function mustConfirm(question: string, nonInteractive: boolean | undefined): Promise<void> {
  const answer = nonInteractive ? null : await confirm(question);
  if (answer === true) return;
  if (answer === false) throw new CommandFailure("aborted", "nothing was done");
  const why = nonInteractive ? "--non-interactive forbids to ask" : "there is no terminal to ask on";
  throw new CommandFailure("usage", `this would have to be confirmed and ${why}: --force does it without asking`);
}

function openTerminal(): number | null {
  try {
    return openSync("/dev/tty", "r+");
  } catch {
    return null;
  }
}
