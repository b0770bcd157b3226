/** Yes-or-no questions, asked on the terminal whatever standard input is. */
import { CommandFailure } from "../session/exit-codes.js";
import { askShown } from "./terminal.js";

const maxBytes = 64;
const spilled = "several lines were typed as one answer: nothing was done";

/**
 * Returns whether the user says yes (Enter alone is no), or null without a terminal.
 * @throws CommandFailure aborted, on Ctrl-C and when the input ends; usage, for a paste of several lines, of which nothing is left
 */
export async function confirm(question: string): Promise<boolean | null> {
  const typed = await askShown({ text: `${question} [y/N] `, limit: maxBytes, spilled });
  return typed === null ? null : /^\s*y(?:es)?\s*$/i.test(Buffer.from(typed).toString("latin1"));
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
