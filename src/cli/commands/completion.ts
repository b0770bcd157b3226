/** `strongroom completion`: the specification of all commands, taken from the parser. */
import { Argument, type Command, type Option } from "commander";
import { bashScript } from "../completion/bash-script.js";
import type { BehindAction, CommandSpec, Completable, FlagSpec } from "../completion/command-spec.js";
import { fishScript } from "../completion/fish-script.js";
import { zshScript } from "../completion/zsh-script.js";
import { EarlierOption, leadingOptions } from "../kit/args/args.js";
import type { Io } from "../kit/io.js";

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };

const details = `
bash:  echo 'source <(strongroom completion bash)' >> ~/.bashrc
zsh:   echo 'source <(strongroom completion zsh)' >> ~/.zshrc   (below compinit)
fish:  strongroom completion fish > ~/.config/fish/completions/strongroom.fish`;

export function define(command: Command, io: Io): void {
  command
    .description(
      "Prints a script that completes commands, flags and, while the vault is unlocked, the paths of secrets.",
    )
    .addArgument(new Argument("<shell>").choices(Object.keys(scripts)))
    .addHelpText("after", details)
    .action((shell: keyof typeof scripts) => {
      const script = scripts[shell](commandSpecs(command.parent), leadingOptions().map(flagSpec));
      const completesPaths = command.parent?.commands.some((each) => each.name() === completer);
      io.stdout.write(completesPaths ? script : script.replaceAll(`strongroom ${completer}`, "true"));
    });
}

/** An extra: without it, the scripts complete no paths. */
const completer = "complete-paths";

const behindActions: Readonly<Record<string, readonly BehindAction[]>> = {
  token: [{ actions: ["revoke", "rotate"], kind: "tokens", once: true }],
  trash: [{ actions: ["ls", "rm"], kind: "trashed", once: false }],
};

function commandSpecs(program: Command | null): CommandSpec[] {
  const visible = program?.createHelp().visibleCommands(program) ?? [];
  return visible.map((command) => ({
    names: [command.name(), ...command.aliases()],
    summary: command.summary() || command.description(),
    flags: command.options.filter((option) => !(option instanceof EarlierOption)).map(flagSpec),
    argument: command.name() === "help" ? visible.map((each) => each.name()) : commandArgument(command),
    behindActions: behindActions[command.name()] ?? [],
  }));
}

function flagSpec({ long, short, description, argChoices, flags, required, optional }: Option): FlagSpec {
  const value = required || optional ? (argChoices ?? completableFor(flags)) : null;
  return { name: long ?? "", short: short ?? null, summary: description, value };
}

function commandArgument(command: Command): Completable {
  if (command.name() === "undo") return "restorable";
  const { registeredArguments } = command;
  const [first] = registeredArguments;
  if (first === undefined) return "any";
  return first.argChoices ?? completableFor(`<${first.name()}>`);
}

/** Derived from the placeholder that the help shows. */
function completableFor(shown: string): Completable {
  if (shown.includes("<NAME=path>")) return "named";
  if (/<(?:path|folder|from)[>.]/.test(shown)) return "paths";
  if (shown === "<command>") return "program";
  return /<(?:file|directory|source)>/.test(shown) ? "files" : "any";
}
