/** Arguments and flags of every command: their rules, what is wrong with them, and the flags of the connection. */
import { type Argument, Command, type CommanderError, InvalidArgumentError, Option } from "commander";
import { closestMatch } from "leven";
import { definitions, formatDefault } from "../../../config/definitions.js";
import { duration, Problem, positiveDuration, shownDuration } from "../../../config/readers.js";
import { CommandFailure } from "../errors.js";
import { counted, printable } from "../output.js";

/** Readers of a flag's duration, in milliseconds, up to a limit, and its text. */
export { duration, positiveDuration, shownDuration };

/** A flag that may be given several times: its reader collects the values. */
export class RepeatableOption extends Option {}

/** An earlier spelling of a flag: it sets the value of that flag, and no help shows it. */
export class EarlierOption extends Option {
  readonly #attribute: string;

  constructor(flags: string, attribute: string) {
    super(flags);
    this.#attribute = attribute;
    this.hideHelp();
  }

  override attributeName(): string {
    return this.#attribute;
  }
}

/** Refuses a repeated flag: by default the last one wins silently, although both may have been meant. */
export function refuseRepeatedFlags(command: Command): void {
  for (const option of command.options) {
    if (!option.required || option instanceof RepeatableOption) continue;
    let given = false;
    command.on(`option:${option.name()}`, () => {
      if (given) throw usageFailure(command, `${argumentName(option)} is given more than once`);
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
        throw invalidValue(command, target, text, error);
      }
    });
  }
}

function invalidValue(command: Command, target: Option | Argument, text: string, error: unknown): unknown {
  if (error instanceof Problem) return usageFailure(command, `${argumentName(target)} must be ${error.message}`);
  if (!(error instanceof InvalidArgumentError)) return error;
  const { argChoices } = target;
  const problem =
    argChoices === undefined ? error.message : `must be one of ${argChoices.join(", ")}${choiceLike(text, argChoices)}`;
  return usageFailure(command, `${argumentName(target)} ${problem}`);
}

function choiceLike(text: string, choices: readonly string[]): string {
  const known = (actionSynonyms[text] ?? []).find((name) => choices.includes(name));
  return known === undefined ? suggestion(text, choices) : `. Did you mean ${known}?`;
}

/** Actions of commands, by the names that others have for them. */
const actionSynonyms: Readonly<Record<string, readonly string[]>> = {
  add: ["create"],
  delete: ["rm", "revoke"],
  list: ["ls"],
  make: ["create"],
  new: ["create"],
  remove: ["rm", "revoke"],
  revoke: ["rm"],
  rm: ["revoke"],
};

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

/** Refuses an empty file or address: it is usually an unset variable of a script. */
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

function argumentName(target: Option | Argument): string {
  return target instanceof Option ? (target.long ?? target.flags) : `<${target.name()}>`;
}

export function homeOption(): Option {
  const description = `${definitions.home.meaning} (STRONGROOM_HOME; ${formatDefault(definitions.home)})`;
  return new Option("--home <directory>", description).argParser(nonEmpty);
}

export function connectionOptions(): Option[] {
  const address = "the server's address (STRONGROOM_ADDRESS; the home's Unix socket, or the address recorded there)";
  const tokenFile = "file that holds the bearer token (STRONGROOM_TOKEN_FILE; token in the home)";
  const cacert =
    "certificate to trust; the Unix socket is not used then (STRONGROOM_TLS_CERT; tls/cert.pem in the home)";
  const timeout =
    "how long to wait for a response, such as 10s or 2m; 0 waits forever (30s; 10m for a backup or a new transit key)";
  return [
    homeOption(),
    new Option("--address <url>", address).argParser(nonEmpty),
    new Option("--token-file <file>", tokenFile).argParser(nonEmpty),
    new Option("--cacert <file>", cacert).argParser(nonEmpty),
    new Option("--timeout <duration>", timeout).argParser(duration(7 * 86_400_000)),
    new Option("--non-interactive", "never prompt: fail when the vault is locked"),
    new Option("--autostart", "start the server as strongroom up does if none runs (STRONGROOM_AUTOSTART=1)"),
  ];
}

/** The flags that may come before the command's name. */
export function leadingOptions(): Option[] {
  return [
    ...connectionOptions(),
    new Option("--json", "print one JSON object"),
    new Option("-q, --quiet", "print only errors"),
  ];
}

/** Moves the flags before the command's name behind it. For `help`, they have no meaning. */
export function commandFirst(args: readonly string[]): readonly string[] {
  const count = countLeading(args, leadingOptions());
  const [name, ...rest] = args.slice(count);
  if (name === undefined || name.startsWith("-")) return args;
  return name === "help" ? [name, ...rest] : [name, ...args.slice(0, count), ...rest];
}

function countLeading([first = "", ...rest]: readonly string[], options: readonly Option[]): number {
  const option = options.find(({ short, long }) => [short, long].includes(first.replace(/=.*/s, "")));
  if (option === undefined) return 0;
  const used = option.required && !first.includes("=") ? 2 : 1;
  return used + countLeading(rest.slice(used - 1), options);
}

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
export function usageProblem({ code, message }: CommanderError, command: Parser): string {
  if (code === "commander.unknownCommand") return unknownCommand(command);
  if (code === "commander.unknownOption") return withoutName(command) ?? unknownFlag(command.unknownFlag, command);
  if (code === "commander.missingArgument") return missingArgument(command);
  if (code === "commander.missingMandatoryOptionValue") return missingFlag(command);
  if (code === "commander.excessArguments") return tooManyArguments(command.name(), command.registeredArguments.length);
  if (code === "commander.conflictingOption") return conflictingFlags(message);
  if (code === "commander.optionMissingArgument") return missingValue(message, command);
  return message.replace(/^error: /, "").replaceAll("option '", "flag '");
}

function conflictingFlags(message: string): string {
  const [, one, other] = /^error: option '(.*?)' cannot be used with option '(.*?)'$/.exec(message) ?? [];
  const long = (flags = "") => /--[\w-]+/.exec(flags)?.[0] ?? flags;
  return `${long(one)} and ${long(other)} cannot be used together`;
}

function missingValue(message: string, { options }: Command): string {
  const [, flags] = /^error: option '(.*?)' argument missing$/.exec(message) ?? [];
  const { long = flags, argChoices } = options.find((option) => option.flags === flags) ?? {};
  return `${long} needs a value${argChoices === undefined ? "" : `: one of ${argChoices.join(", ")}`}`;
}

/** Returns null unless the program got only a flag of commands, such as `--home`. */
function withoutName({ parent, unknownFlag }: Parser): string | null {
  const isLeading = parent === null && leadingOptions().some(({ long, short }) => [long, short].includes(unknownFlag));
  return isLeading ? `<command> is missing: ${unknownFlag} is a flag of commands` : null;
}

function missingArgument({ registeredArguments, args }: Command): string {
  const missing = registeredArguments[args.length];
  return `<${missing?.name()}> is missing${choicesHint(missing?.argChoices)}`;
}

function missingFlag(command: Command): string {
  const isMissing = (option: Option) =>
    option.mandatory && command.getOptionValue(option.attributeName()) === undefined;
  const missing = command.options.find(isMissing);
  return `${missing?.long} is missing${choicesHint(missing?.argChoices)}`;
}

function choicesHint(choices: readonly string[] | undefined): string {
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
  return `unknown command '${name}'${suggestion(name, commandNames(program.createHelp().visibleCommands(program)))}`;
}

/** Names of our commands in similar programs. */
const synonyms: Readonly<Record<string, string>> = {
  add: "put",
  cat: "get",
  copy: "cp",
  create: "put",
  exec: "run",
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
  start: "up",
  stop: "shutdown",
  store: "put",
  versions: "history",
};

/** `flag`: as the parser did not know it, without what follows its `=`. */
export function unknownFlag(flag: string, { options, parent }: Command): string {
  const flags = [...options, ...(parent === null ? leadingOptions() : [])].flatMap(({ long }) => long ?? []);
  if (flags.includes(flag)) return `${flag} takes no value`;
  return `unknown flag ${flag}${suggestion(flag, flags)}`;
}

/** All spellings of the commands. */
export function commandNames(commands: readonly Command[]): string[] {
  return commands.flatMap((command) => [command.name(), ...command.aliases()]);
}

/** `common`: how many characters at the beginning are in all names, and so speak for none of them. */
export function suggestion(wrong: string, names: readonly string[], common = 0): string {
  const near =
    closestMatch(wrong, names, { maxDistance: Math.floor((wrong.length - common + 1) / 3) }) ??
    names.find((name) => sortedLetters(name) === sortedLetters(wrong)) ??
    onlyNameWith(wrong, names, common);
  return near === undefined ? "" : `. Did you mean ${printable(near)}?`;
}

/** Returns the one name that begins so, from three characters on. */
function onlyNameWith(beginning: string, names: readonly string[], common: number): string | undefined {
  const [name, another] = names.filter((each) => each.startsWith(beginning));
  return beginning.length < common + 3 || another !== undefined ? undefined : name;
}

/** Returns the letters sorted: swapped letters count as two mistakes, too many for a short name. */
function sortedLetters(name: string): string {
  return [...name].sort().join("");
}
