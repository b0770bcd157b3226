/**
 * Owns the parser: the commands' names, the loading of the one that was asked for, and how the parser's own messages
 * look. A command's file is loaded when its name is among the first two arguments (the second, for `help NAME`).
 */
import { Command } from "commander";
import { readManifest } from "../manifest.js";
import { exitCodesText } from "./session/exit-codes.js";
import { refuseRepeatedFlags } from "./session/flags.js";

/** What a command's file exports. */
export type CommandFile = {
  /** Gives the command its arguments, flags and action. */
  readonly define: (command: Command) => void;
};

export type CommandRow = {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly load: () => Promise<CommandFile>;
  /** Left out of the help. */
  readonly hidden?: true;
  /** It is about all commands: their files are loaded, too. */
  readonly needsAll?: true;
};

/** Does what the arguments say. @throws CommanderError, when the parser has told what is wrong with them */
export async function runProgram(rows: readonly CommandRow[], args: readonly string[]): Promise<void> {
  const program = await buildProgram(rows, args);
  await program.parseAsync(withoutLostHelp(program, args), { from: "user" });
}

/** For `help NAME` the parser would print the whole help without a word about a name that is no command's. */
function withoutLostHelp({ commands }: Command, args: readonly string[]): readonly string[] {
  const [first, name = "help"] = args;
  const known = ["help", ...commands.flatMap((command) => [command.name(), ...command.aliases()])];
  return first !== "help" || name.startsWith("-") || known.includes(name) ? args : [name];
}

async function buildProgram(rows: readonly CommandRow[], args: readonly string[]): Promise<Command> {
  const program = new Command("strongroom")
    .exitOverride()
    .enablePositionalOptions()
    .configureHelp({ styleTitle: (title) => title.toLowerCase() })
    .version(readManifest().version, "--version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print help for a command")
    .showHelpAfterError("usage: strongroom <command> [flags]; strongroom help lists the commands")
    .addHelpText("after", `\n${exitCodesText()}`);
  const wanted = wantedAmong(rows, args);
  for (const { name, aliases = [], summary, load, hidden = false } of rows) {
    const command = program
      .command(name, { hidden })
      .aliases([...aliases])
      .summary(summary)
      .description(summary);
    command.showHelpAfterError(`strongroom ${name} --help says how it is used`);
    if (wanted.has(name)) (await load()).define(command);
  }
  for (const command of [program, ...program.commands]) {
    refuseRepeatedFlags(command);
    command.configureOutput({ outputError: (text, write) => write(withoutValues(text, command)) });
  }
  return program;
}

function wantedAmong(rows: readonly CommandRow[], args: readonly string[]): ReadonlySet<string> {
  const given = args.slice(0, 2);
  const named = rows.filter(({ name, aliases = [] }) => [name, ...aliases].some((spelled) => given.includes(spelled)));
  return new Set((named.some(({ needsAll }) => needsAll) ? rows : named).map(({ name }) => name));
}

/** What stands behind an option's `=`, or a short one's letter, may be a secret that somebody typed by mistake. */
function withoutValues(text: string, { options }: Command): string {
  const spelled = /^error: unknown option '(--[^='\s]+)=/.exec(text)?.[1];
  if (options.some(({ long }) => long === spelled)) return `strongroom: option '${spelled}' takes no value\n`;
  return text
    .replace(/^error: /, "strongroom: ")
    .replace(
      /(?:command-argument value| argument) '.*'(?= is invalid)/s,
      (found) => `${found.startsWith(" ") ? ": " : ""}what was given`,
    )
    .replace(/'(--[^='\s]+)=.*'/s, "'$1'")
    .replace(/(?<=unknown option )'(-[^-]).*'/s, "'$1'");
}
