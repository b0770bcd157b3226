/** Yes-or-no questions, asked on the terminal whatever standard input is. */
import { openSync, writeSync } from "node:fs";
import { ReadStream } from "node:tty";
import { CommandFailure } from "../session/exit-codes.js";

/**
 * Returns whether the user says yes (Enter alone is no), or null without a terminal.
 * @throws CommandFailure aborted, on Ctrl-C and when the input ends
 */
export async function confirm(question: string): Promise<boolean | null> {
  const terminal = openTerminal();
  if (terminal === null) return null;
  const answer = await ask(terminal, `${question} [y/N] `);
  if (answer === null) throw new CommandFailure("aborted", "cancelled: nothing was done");
  return /^\s*y(?:es)?\s*$/i.test(answer);
}

/** A stream, since a blocking read could not be interrupted. Null when there is no answer. */
function ask(terminal: number, question: string): Promise<string | null> {
  return new Promise((resolve) => {
    const input = new ReadStream(terminal);
    const finish = (answer: string | null) => {
      process.off("SIGINT", cancel);
      input.once("close", () => resolve(answer));
      input.destroy();
    };
    const cancel = () => {
      writeSync(terminal, "\n");
      finish(null);
    };
    process.once("SIGINT", cancel);
    input.once("data", (line) => finish(line.toString("latin1")));
    input.once("end", cancel).once("error", () => finish(null));
    writeSync(terminal, question);
  });
}

/** Returns only after a yes. `flag`: skips the question. @throws CommandFailure aborted; usage, without a terminal */
export async function mustConfirm(
  question: string,
  nonInteractive: boolean | undefined,
  flag = "--force",
): Promise<void> {
  const answer = nonInteractive ? null : await confirm(question);
  if (answer === true) return;
  if (answer === false) throw new CommandFailure("aborted", "nothing was done");
  const why = nonInteractive ? "--non-interactive forbids a prompt" : "there is no terminal to ask on";
  throw new CommandFailure("usage", `this needs a confirmation, but ${why}: use ${flag} to skip it`);
}

function openTerminal(): number | null {
  try {
    return openSync("/dev/tty", "r+");
  } catch {
    return null;
  }
}
