/** Flags made from the table of settings: all of them for `strongroom serve`, and the database's for maintenance. */
import { type Command, Option } from "commander";
import { definitions, formatDefault, type Settings } from "../../../config/definitions.js";
import { type GivenFlags, readOneSetting, unknownVariables } from "../../../config/settings.js";
import { StartError } from "../../../errors.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { say } from "../output.js";
import { nonEmpty, shownFlag, tooManyArguments, unknownFlag } from "./args.js";
import { settingsFileIn } from "./start-settings.js";

/**
 * Adds a flag for every setting that has one. Their values may be missing, invalid or repeated, and other arguments may
 * follow: `givenSettings` reports all of that together, where the parser would stop at the first problem.
 */
export function withSettings(command: Command): Command {
  for (const definition of Object.values(definitions)) {
    const { flag, variable, meaning } = definition;
    if (flag === null) continue;
    const option = new Option(`--${flag} [value]`, `${meaning} (${variable}; ${formatDefault(definition)})`);
    command.addOption(
      option
        .preset(flag === definitions.reviewPage.flag ? "on" : "")
        .argParser((text, earlier: readonly string[] = []) => [...earlier, text]),
    );
  }
  return command
    .option("--no-socket", "no Unix socket")
    .configureHelp({
      ...command.configureHelp(),
      optionTerm: ({ flags }) => flags.replace("[value]", "<value>"),
      optionDescription: ({ description }) => description,
    })
    .argument("[unknown...]")
    .usage("[flags]")
    .allowUnknownOption();
}

/** The texts of the flags of `withSettings`, and what is wrong with them as flags. */
export function givenSettings(command: Command): { readonly flags: GivenFlags; readonly problems: string[] } {
  const given = Object.entries(command.opts<{ readonly [K in keyof Settings]: readonly string[] | false }>())
    .filter(([name]) => name in definitions)
    .map(([name, texts]) => [name, texts === false ? ["off"] : texts] as const);
  const unknown = command.args.filter((text) => text.startsWith("-"));
  const problems = unknown.map((text) => unknownFlag(shownFlag(text), command));
  if (unknown.length === 0 && command.args.length > 0) problems.push(tooManyArguments(command.name(), 0));
  for (const [name, texts] of given) {
    if (texts.length > 1) problems.push(`--${definitions[name as keyof Settings].flag} is given more than once`);
  }
  return { flags: Object.fromEntries(given.map(([name, [text]]) => [name, text])), problems };
}

/** Warns on standard error, for what starts a server whose own warning only its log would have. */
export function warnOfUnknownVariables(io: Io): void {
  for (const name of unknownVariables(io.env)) {
    say(io, `warning: ${name} is not a setting: strongroom serve --help lists them\n`);
  }
}

export type StoreFlags = { readonly store?: string; readonly storePasswordFile?: string };

export function withStore(command: Command): Command {
  return command
    .option("--store <url>", "the vault's database (STRONGROOM_STORE; files in the home)", nonEmpty)
    .option("--store-password-file <file>", "file that holds the database's password", nonEmpty);
}

/** @throws CommandFailure usage, naming the flag, when one of a database was given. `why` follows "has no effect". */
export function refuseStoreFlags({ store, storePasswordFile }: StoreFlags, why: string): void {
  if (store === undefined && storePasswordFile === undefined) return;
  const flag = store === undefined ? "--store-password-file" : "--store";
  throw new CommandFailure("usage", `${flag} has no effect ${why}`);
}

/** `store` is null for files in the home. @throws StartError, exit code 2, for problems of the home's settings file too */
export async function storeSettings(io: Io, home: string, { store, storePasswordFile }: StoreFlags) {
  const file = await settingsFileIn(home);
  if (file.problems.length > 0 && store === undefined) throw new StartError(file.problems.join("; "), 2);
  return {
    store: readOneSetting("store", store, io.env, file),
    storePasswordFile: readOneSetting("storePasswordFile", storePasswordFile, io.env, file),
  };
}
