/** Owns what holds for the flags of every command: one that takes a value has one, and is given once. */
import { type Command, InvalidArgumentError, Option } from "commander";

/** A flag that may be given several times: its reader collects the values. */
export class RepeatableOption extends Option {}

/** The last one would win without a word, where somebody may have meant both. */
export function refuseRepeatedFlags(command: Command): void {
  for (const option of command.options) {
    if (!option.required || option instanceof RepeatableOption) continue;
    let given = false;
    command.on(`option:${option.name()}`, () => {
      if (given) command.error(`error: option '${option.flags}' is given more than once`);
      given = true;
    });
  }
}

/** A flag that only says more about another one would do nothing without it. Both by the names of their values. */
export function onlyWith(command: Command, name: string, other: string): Command {
  return command.hook("preAction", () => {
    if (command.getOptionValueSource(name) !== "cli" || command.getOptionValue(other) !== undefined) return;
    const [flag, needed] = [name, other].map((each) => {
      return command.options.find((option) => option.attributeName() === each)?.flags;
    });
    command.error(`error: option '${flag}' is nothing without option '${needed}'`);
  });
}

/** For a place or an address: an empty one is mostly a variable of a script that is not set. */
export function nonEmpty(text: string): string {
  if (text === "") throw new InvalidArgumentError("It needs a value.");
  return text;
}
