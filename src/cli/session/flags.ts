/** Rules for the flags of every command: a value is present, valid, and given once. */
import { type Argument, type Command, InvalidArgumentError, Option } from "commander";
import { Problem } from "../../config/readers.js";
import { CommandFailure } from "./exit-codes.js";

/** A flag that may be given several times: its reader collects the values. */
export class RepeatableOption extends Option {}

/** With commander's default the last one wins silently, although both may have been meant. */
export function refuseRepeatedFlags(command: Command): void {
  for (const option of command.options) {
    if (!option.required || option instanceof RepeatableOption) continue;
    let given = false;
    command.on(`option:${option.name()}`, () => {
      if (given) throw usageFailure(command, `${nameOf(option)} is given more than once`);
      given = true;
    });
  }
}

/** DANGER: commander's own message quotes an invalid value, which may be a mistyped secret. */
export function hideInvalidValues(command: Command): void {
  for (const target of [...command.options, ...command.registeredArguments]) {
    const { parseArg } = target;
    if (parseArg === undefined) continue;
    target.argParser((text: string, previous: unknown) => {
      try {
        return parseArg(text, previous);
      } catch (error) {
        throw invalidValue(command, target, error);
      }
    });
  }
}

function invalidValue(command: Command, target: Option | Argument, error: unknown): unknown {
  if (error instanceof Problem) return usageFailure(command, `${nameOf(target)} must be ${error.message}`);
  if (!(error instanceof InvalidArgumentError)) return error;
  const { argChoices } = target;
  const problem = argChoices === undefined ? error.message : `must be one of ${argChoices.join(", ")}`;
  return usageFailure(command, `${nameOf(target)} ${problem}`);
}

/** A flag of some actions is an error with the others: the action is the first argument. `takenBy`: actions by a flag's value. */
export function onlyForActions(command: Command, takenBy: Readonly<Record<string, readonly string[]>>): Command {
  return command.hook("preAction", () => {
    const [action] = command.processedArgs as readonly string[];
    for (const option of command.options) {
      const name = option.attributeName();
      const isMisplaced = takenBy[name]?.includes(action ?? "") === false;
      if (!isMisplaced || command.getOptionValueSource(name) !== "cli") continue;
      throw usageFailure(command, `${option.long} has no effect with ${action}`);
    }
  });
}

/** A flag that only qualifies another one is an error without it. Both by the names of their values. */
export function onlyWith(command: Command, name: string, other: string): Command {
  return command.hook("preAction", () => {
    if (command.getOptionValueSource(name) !== "cli" || command.getOptionValue(other) !== undefined) return;
    const [flag, needed] = [name, other].map((each) => {
      return command.options.find((option) => option.attributeName() === each)?.long;
    });
    throw usageFailure(command, `${flag} has no effect without ${needed}`);
  });
}

/** For a file or an address: an empty one is usually an unset variable of a script. */
export function nonEmpty(text: string): string {
  if (text === "") throw new InvalidArgumentError("needs a value");
  return text;
}

/** DANGER: what follows a flag's `=`, or a short one's letter, may be a mistyped secret. */
export function shownFlag(text: string): string {
  return text.startsWith("--") ? text.replace(/=.*/s, "") : text.slice(0, 2);
}

export function usageFailure(command: Command, problem: string): CommandFailure {
  return new CommandFailure("usage", `${problem}\n${hintFor(command)}`);
}

function hintFor(command: Command): string {
  if (command.parent !== null) return `strongroom ${command.name()} --help shows its flags`;
  return "usage: strongroom <command> [flags]; strongroom help lists the commands";
}

function nameOf(target: Option | Argument): string {
  return target instanceof Option ? (target.long ?? target.flags) : `<${target.name()}>`;
}
