/** Yes-or-no questions, asked on the terminal whatever standard input is. */
import type { Command } from "commander";
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

/** The values of the flags that decide whether a question is asked. */
export type ConfirmFlags = { readonly yes?: true; readonly nonInteractive?: true };

/** Adds the flag that is a yes to `mustConfirm`. */
export function withYes(command: Command): Command {
  return command.option("-y, --yes", "do not ask");
}

/** Returns only after a yes. @throws CommandFailure aborted; usage, without a terminal */
export async function mustConfirm(question: string, { yes, nonInteractive }: ConfirmFlags): Promise<void> {
  if (yes) return;
  const answer = nonInteractive ? null : await confirm(question);
  if (answer === true) return;
  if (answer === false) throw new CommandFailure("aborted", "nothing was done");
  const why = nonInteractive ? "--non-interactive forbids a prompt" : "there is no terminal to ask on";
  throw new CommandFailure("usage", `this needs a confirmation, but ${why}: use --yes to skip it`);
}
