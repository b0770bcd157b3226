/** Owns questions that are answered with yes or no, on the terminal, whatever standard input is. */
import { closeSync, openSync, read, writeSync } from "node:fs";
import { promisify } from "node:util";
import { CommandFailure } from "./exit-codes.js";

/**
 * Whether the user says yes; Enter alone is no. Null when there is no terminal to ask on.
 * @throws CommandFailure aborted, when the input ends
 */
export async function confirm(question: string): Promise<boolean | null> {
  const terminal = openTerminal();
  if (terminal === null) return null;
  try {
    writeSync(terminal, `${question} [y/N] `);
    const answer = new Uint8Array(256);
    const { bytesRead } = await promisify(read)(terminal, answer, 0, answer.length, null);
    if (bytesRead === 0) throw new CommandFailure("aborted", "broken off: nothing was done");
    return /^\s*y(?:es)?\s*$/i.test(Buffer.from(answer.subarray(0, bytesRead)).toString("latin1"));
  } finally {
    closeSync(terminal);
  }
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
