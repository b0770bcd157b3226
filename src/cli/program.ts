/**
 * The parser: command names, and the file of the command that was asked for, which is loaded when its name is among the
 * first two arguments (the second, for `help NAME`).
 */
import { type Command, type CommanderError, Help } from "commander";
import { readCommit, readManifest } from "../manifest.js";
import {
  commandFirst,
  commandNames,
  hideInvalidValues,
  Parser,
  refuseRepeatedFlags,
  usageFailure,
  usageProblem,
} from "./kit/args/args.js";
import { exitCodesText } from "./kit/errors.js";
import type { Io } from "./kit/io.js";
import { printRows } from "./kit/output.js";

type CommandFile = {
  /** Adds the command's arguments, flags and action, which has nothing of the world but `io`. */
  readonly define: (command: Command, io: Io) => void;
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

export type Program = {
  /** Runs the command that the arguments name. @throws CommandFailure; CommanderError, when help has been printed */
  readonly run: () => Promise<void>;
  /** Whether errors are to be JSON: `--json` was given, and the command has it or there is no such command. */
  readonly printsJson: () => boolean;
};

export async function loadProgram(rows: readonly CommandRow[], given: readonly string[], io: Io): Promise<Program> {
  const args = given.length === 0 ? ["overview"] : commandFirst(given);
  const program = await buildProgram(neededRows(rows, args[0]), args, io);
  const named = program.commands.find((command) => commandNames([command]).includes(args[0] ?? ""));
  const flags = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  return {
    run: async () => void (await program.parseAsync(withoutLostHelp(program, args), { from: "user" })),
    printsJson: () =>
      flags.includes("--json") && (named === undefined || named.options.some(({ long }) => long === "--json")),
  };
}

/** Returns the named command's row alone: to make a parser of each takes as long as the rest. Else all, for help and suggestions. */
function neededRows(rows: readonly CommandRow[], name: string | undefined): readonly CommandRow[] {
  const named = rows.filter((row) => row.name === name || row.aliases?.includes(name ?? ""));
  return named.length === 0 || named.some(({ needsAll }) => needsAll) ? rows : named;
}

/** For `help NAME` with an unknown name, the parser would print the whole help instead of an error; for `help help` as one. */
function withoutLostHelp({ commands }: Command, args: readonly string[]): readonly string[] {
  const [first, name = "help"] = args;
  if (first === "help" && name === "help") return ["help"];
  return first !== "help" || name.startsWith("-") || ["help", ...commandNames(commands)].includes(name) ? args : [name];
}

async function buildProgram(rows: readonly CommandRow[], args: readonly string[], io: Io): Promise<Command> {
  const columns = io.stdout.columns || helpColumns;
  const program = new Parser("strongroom")
    .enablePositionalOptions()
    .configureHelp(helpFormat)
    .configureOutput({
      writeOut: (text) => printRows(io, text),
      getOutHelpWidth: () => columns,
      outputError: () => {}, // the failure that follows has the message
    })
    .version(versionText(), "--version", "print the version and the commit")
    .helpOption("-h, --help", "print help")
    .commandsGroup("Other:")
    .helpCommand("help [command]", "print help for a command")
    .addHelpText("before", () => `${new Help().boxWrap(about, Math.min(columns, helpColumns))}\n${firstCommands}`)
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
    if (wanted.has(name)) (await load()).define(command, io);
    if (isConnected(command)) command.addHelpText("after", connectionHelp);
    if (example !== undefined) command.addHelpText("after", `\nexample:\n  strongroom ${example}`);
    parsers.push(command);
  }
  for (const command of parsers) {
    refuseRepeatedFlags(command);
    hideInvalidValues(command);
    command.exitOverride((error) => {
      throw isHelp(error) ? error : usageFailure(command, usageProblem(error, command));
    });
  }
  return program;
}

function versionText(): string {
  const commit = readCommit();
  return `${readManifest().version}${commit === null ? "" : ` (commit ${commit})`}`;
}

const about =
  "Strongroom is a vault for the secrets of this machine: a local server keeps them " +
  "encrypted, and gives them to your programs while the vault is unlocked.";

const firstCommands = `
to begin with:
  strongroom up                           start the server in the background
  strongroom init                         create a vault
  strongroom put app/db/password          store a secret
  strongroom get app/db/password          print it
  strongroom run --prefix app -- COMMAND  run a program with secrets
`;

/** Columns of a help that no terminal shows, and of its paragraphs. */
const helpColumns = 80;

function wantedAmong(rows: readonly CommandRow[], args: readonly string[]): ReadonlySet<string> {
  const given = args.slice(0, 2);
  const named = rows.filter(({ name, aliases = [] }) => [name, ...aliases].some((spelled) => given.includes(spelled)));
  return new Set((named.some(({ needsAll }) => needsAll) ? rows : named).map(({ name }) => name));
}

/** Help that says flags where other programs say options, as errors do. */
const helpFormat: Partial<Help> = {
  minWidthToWrap: 16, // columns for a summary: at the default of 40, a terminal of 40 columns would break words
  styleTitle: (title) => (title === "Options:" ? "flags:" : title.toLowerCase()),
  commandUsage(command) {
    const names = command.parent === null ? [] : [command.name()];
    return ["strongroom", ...names, command.usage().replace("[options]", "[flags]")].join(" ");
  },
};

const connectionHelp = "\nconnection flags (--home, --address, …): strongroom help flags";

/** Whether a command has the flags of `withConnection`, which its own help leaves out. */
function isConnected({ options }: Command): boolean {
  return options.some(({ long, hidden }) => hidden && long === "--address");
}

/** Help and version also end the parser with an error. */
function isHelp({ code, exitCode }: CommanderError): boolean {
  return exitCode === 0 || code === "commander.help";
}
