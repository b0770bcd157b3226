/**
 * The parser: command names, the file of the command that was asked for, and what is wrong with the arguments. A command's
 * file is loaded when its name is among the first two arguments (the second, for `help NAME`).
 */
import { Command, type CommanderError, type Option } from "commander";
import { readManifest } from "../manifest.js";
import { exitCodesText } from "./session/exit-codes.js";
import { hideInvalidValues, refuseRepeatedFlags, shownFlag, usageFailure } from "./session/flags.js";
import { commandFirst } from "./session/global-flags.js";
import { counted } from "./session/output.js";
import { suggestion } from "./session/suggestion.js";

/** What a command's file exports. */
export type CommandFile = {
  /** Adds the command's arguments, flags and action. */
  readonly define: (command: Command) => void;
};

export type CommandRow = {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  /** The heading in the list of commands. */
  readonly group?: string;
  /** Arguments that the command's help shows. */
  readonly example?: string;
  readonly load: () => Promise<CommandFile>;
  /** Not shown in the help. */
  readonly hidden?: true;
  /** Needs the files of all commands. */
  readonly needsAll?: true;
};

/** Remembers what it did not know, since the parser's error has it only inside a sentence. */
class Parser extends Command {
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

/** Where the help goes instead of standard output, and its columns. */
export type HelpOutput = { readonly writeOut?: (text: string) => void; readonly getOutHelpWidth?: () => number };

export type Program = {
  /** Runs the command that the arguments name. @throws CommandFailure; CommanderError, when help has been printed */
  readonly run: () => Promise<void>;
  /** Whether errors are to be JSON: `--json` was given, and the command has it or there is no such command. */
  readonly printsJson: () => boolean;
};

export async function loadProgram(
  rows: readonly CommandRow[],
  given: readonly string[],
  output: HelpOutput = {},
): Promise<Program> {
  const args = commandFirst(given);
  const program = await buildProgram(rows, args, output);
  const named = program.commands.find((command) => namesOf([command]).includes(args[0] ?? ""));
  const flags = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  return {
    run: async () => void (await program.parseAsync(withoutLostHelp(program, args), { from: "user" })),
    printsJson: () =>
      flags.includes("--json") && (named === undefined || named.options.some(({ long }) => long === "--json")),
  };
}

/** For `help NAME` with an unknown name, the parser would print the whole help instead of an error. */
function withoutLostHelp({ commands }: Command, args: readonly string[]): readonly string[] {
  const [first, name = "help"] = args;
  return first !== "help" || name.startsWith("-") || ["help", ...namesOf(commands)].includes(name) ? args : [name];
}

function namesOf(commands: readonly Command[]): string[] {
  return commands.flatMap((command) => [command.name(), ...command.aliases()]);
}

async function buildProgram(
  rows: readonly CommandRow[],
  args: readonly string[],
  output: HelpOutput,
): Promise<Command> {
  const program = new Parser("strongroom")
    .enablePositionalOptions()
    .configureHelp({ styleTitle: (title) => title.toLowerCase() })
    .configureOutput({ ...output, outputError: () => {} }) // the failure that follows has the message
    .version(readManifest().version, "--version", "print the version")
    .helpOption("-h, --help", "print help")
    .commandsGroup("Other:")
    .helpCommand("help [command]", "print help for a command")
    .addHelpText("after", `\n${exitCodesText()}`);
  const parsers = [program];
  const wanted = wantedAmong(rows, args);
  for (const { name, aliases = [], summary, group, example, load, hidden = false } of rows) {
    const command = program
      .command(name, { hidden })
      .aliases([...aliases])
      .summary(summary)
      .description(summary);
    if (group !== undefined) command.helpGroup(`${group}:`);
    if (wanted.has(name)) (await load()).define(command);
    if (example !== undefined) command.addHelpText("after", `\nexample:\n  strongroom ${example}`);
    parsers.push(command);
  }
  for (const command of parsers) {
    refuseRepeatedFlags(command);
    hideInvalidValues(command);
    command.exitOverride((error) => {
      throw isHelp(error) ? error : usageFailure(command, problemOf(error, command));
    });
  }
  return program;
}

function wantedAmong(rows: readonly CommandRow[], args: readonly string[]): ReadonlySet<string> {
  const given = args.slice(0, 2);
  const named = rows.filter(({ name, aliases = [] }) => [name, ...aliases].some((spelled) => given.includes(spelled)));
  return new Set((named.some(({ needsAll }) => needsAll) ? rows : named).map(({ name }) => name));
}

/** Help and version end the parser with an error, too. */
function isHelp({ code, exitCode }: CommanderError): boolean {
  return exitCode === 0 || code === "commander.help";
}

function problemOf({ code, message }: CommanderError, command: Parser): string {
  if (code === "commander.unknownCommand") return unknownCommand(command);
  if (code === "commander.unknownOption") return unknownOption(command);
  if (code === "commander.missingArgument") return missingArgument(command);
  if (code === "commander.missingMandatoryOptionValue") return missingFlag(command);
  if (code === "commander.excessArguments") return excessArguments(command);
  return message.replace(/^error: /, "");
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
  return choices === undefined ? "" : `: choose one of ${choices.join(", ")}`;
}

function excessArguments(command: Command): string {
  const { length } = command.registeredArguments;
  return `${command.name()} takes ${length === 0 ? "no arguments" : `only ${counted(length, "argument")}`} besides its flags`;
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

function unknownOption({ unknownFlag: flag, options }: Parser): string {
  const flags = options.flatMap(({ long }) => long ?? []);
  if (flags.includes(flag)) return `${flag} takes no value`;
  return `unknown option '${flag}'${suggestion(flag, flags)}`;
}
