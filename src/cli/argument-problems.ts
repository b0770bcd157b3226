/** What is wrong with the arguments: unknown commands and flags, missing and surplus arguments. */
import { Command, type CommanderError, type Option } from "commander";
import { shownFlag } from "./session/flags.js";
import { leadingOptions } from "./session/global-flags.js";
import { counted } from "./session/output.js";
import { suggestion } from "./session/suggestion.js";

/** Remembers what it did not know, since the parser's error has it only inside a sentence. */
export class Parser extends Command {
  #unknown: readonly string[] = [];

  override createCommand(name?: string): Parser {
    return new Parser(name);
  }

  override parseOptions(args: string[]) {
    const parsed = super.parseOptions(args);
    this.#unknown = parsed.unknown;
    return parsed;
  }

  get unknownFlag(): string {
    return shownFlag(this.#unknown[0] ?? "");
  }
}

/** Returns what is wrong, with the flags and choices that the parser's message leaves out. */
export function problemOf({ code, message }: CommanderError, command: Parser): string {
  if (code === "commander.unknownCommand") return unknownCommand(command);
  if (code === "commander.unknownOption") return withoutName(command) ?? unknownFlag(command.unknownFlag, command);
  if (code === "commander.missingArgument") return missingArgument(command);
  if (code === "commander.missingMandatoryOptionValue") return missingFlag(command);
  if (code === "commander.excessArguments") return tooManyArguments(command.name(), command.registeredArguments.length);
  return message.replace(/^error: /, "").replaceAll("option '", "flag '");
}

/** Returns null unless the program got only a flag of commands, such as `--home`. */
function withoutName({ parent, unknownFlag }: Parser): string | null {
  const isLeading = parent === null && leadingOptions().some(({ long, short }) => [long, short].includes(unknownFlag));
  return isLeading ? `<command> is missing: ${unknownFlag} is a flag of commands` : null;
}

function missingArgument({ registeredArguments, args }: Command): string {
  const missing = registeredArguments[args.length];
  return `<${missing?.name()}> is missing${oneOf(missing?.argChoices)}`;
}

function missingFlag(command: Command): string {
  const isMissing = (option: Option) =>
    option.mandatory && command.getOptionValue(option.attributeName()) === undefined;
  const missing = command.options.find(isMissing);
  return `${missing?.long} is missing${oneOf(missing?.argChoices)}`;
}

function oneOf(choices: readonly string[] | undefined): string {
  if (choices === undefined) return "";
  return choices.length === 1 ? `: the only one is ${choices[0]}` : `: choose one of ${choices.join(", ")}`;
}

export function tooManyArguments(name: string, max: number): string {
  return `${name} takes ${max === 0 ? "no arguments" : `only ${counted(max, "argument")}`} besides its flags`;
}

function unknownCommand(program: Command): string {
  const [name = ""] = program.args;
  const synonym = synonyms[name];
  if (synonym !== undefined) return `unknown command '${name}'. Did you mean ${synonym}?`;
  return `unknown command '${name}'${suggestion(name, namesOf(program.createHelp().visibleCommands(program)))}`;
}

/** What similar programs call our commands. */
const synonyms: Readonly<Record<string, string>> = {
  add: "put",
  cat: "get",
  copy: "cp",
  create: "put",
  delete: "rm",
  insert: "put",
  list: "ls",
  log: "history",
  login: "unlock",
  logout: "lock",
  move: "mv",
  open: "unlock",
  read: "get",
  remove: "rm",
  rename: "mv",
  revert: "undo",
  rollback: "undo",
  search: "find",
  show: "get",
  start: "serve",
  stop: "shutdown",
  store: "put",
  versions: "history",
};

/** `flag`: as the parser did not know it, without what follows its `=`. */
export function unknownFlag(flag: string, { options }: Command): string {
  const flags = options.flatMap(({ long }) => long ?? []);
  if (flags.includes(flag)) return `${flag} takes no value`;
  return `unknown flag ${flag}${suggestion(flag, flags)}`;
}

/** All spellings of the commands. */
export function namesOf(commands: readonly Command[]): string[] {
  return commands.flatMap((command) => [command.name(), ...command.aliases()]);
}
