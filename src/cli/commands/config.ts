/** `strongroom config`: the settings file of the home, which each start of its server reads. */
import { Argument, type Command } from "commander";
import { definitions, formatDefault, type Settings } from "../../config/definitions.js";
import { Problem } from "../../config/readers.js";
import { readOneSetting, type SettingsFile, sourceOfSetting } from "../../config/settings.js";
import { StartError } from "../../errors.js";
import { replaceFile, systemFiles } from "../../files/durable.js";
import { homeAt, openHome } from "../../files/home.js";
import { findHolder } from "../../storage/files/claim.js";
import { tooManyArguments, usageFailure } from "../kit/args/args.js";
import { withMember, withoutMember } from "../kit/args/settings-edit.js";
import { memberNames, readSettingsFile, unknownMember } from "../kit/args/settings-file.js";
import { settingsOfStart } from "../kit/args/start-settings.js";
import { compareWithRunning } from "../kit/connection/running-settings.js";
import { withHome } from "../kit/connection/server.js";
import { CommandFailure, exitCodes } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import {
  type OutputFlags,
  padded,
  printable,
  printJson,
  printLine,
  printRows,
  report,
  say,
  withOutput,
} from "../kit/output.js";

type Flags = OutputFlags & { readonly home?: string };

const details = `
Names are those of the flags of strongroom serve, without the dashes. The file
is config.toml in the home; comments in it are kept. A server reads it when it
starts: strongroom up --restart. A flag or variable wins over it.`;

export function define(command: Command, io: Io): void {
  withHome(command)
    .description(
      "Shows and changes the settings that every start of the server has: ls shows what the file and the environment set, " +
        "get prints a setting of the file, set checks and writes one, unset removes one.",
    )
    .addArgument(new Argument("[action]", "what to do").choices(["ls", "get", "set", "unset"]).default("ls"))
    .argument("[name]", "get, set, unset: the setting, such as audit or idle-timeout")
    .argument("[value]", "set: its value");
  withOutput(command)
    .addHelpText("after", details)
    .action((action: string, name: string | undefined, value: string | undefined, flags: Flags) => {
      requireArguments(command, action, name, value);
      return run(io, action, name ?? "", value ?? "", flags);
    });
}

const argumentCounts: Readonly<Record<string, number>> = { ls: 0, get: 1, set: 2, unset: 1 };

/** @throws CommandFailure usage */
function requireArguments(command: Command, action: string, name: string | undefined, value: string | undefined): void {
  const wanted = argumentCounts[action] ?? 0;
  const count = [name, value].filter((text) => text !== undefined).length;
  if (count > wanted) throw usageFailure(command, tooManyArguments(`config ${action}`, wanted));
  if (count < wanted) throw usageFailure(command, `<${name === undefined ? "name" : "value"}> is missing`);
}

async function run(io: Io, action: string, name: string, value: string, flags: Flags): Promise<void> {
  const home = readOneSetting("home", flags.home, io.env);
  const file = readSettingsFile(home);
  if (action === "ls") return list(io, home, file, flags);
  if (action === "get") return print(io, file, known(name), flags);
  if (action === "set") return set(io, home, known(name), value, flags);
  return unset(io, home, name, flags);
}

/** @throws CommandFailure usage */
function known(member: string): keyof Settings {
  const name = memberNames.get(member.replace(/^--/, ""));
  if (name !== undefined) return name;
  throw new CommandFailure("usage", `${unknownMember(member)}\nstrongroom serve --help lists all settings`);
}

async function list(io: Io, home: string, file: SettingsFile, flags: Flags): Promise<void> {
  const rows = [...memberNames].flatMap(([member, name]) => {
    const source = sourceOfSetting(name, {}, io.env, file);
    const { variable } = definitions[name];
    if (source === "default") return [];
    return [{ member, value: io.env[variable] || (file.texts[name] ?? ""), source, variable }];
  });
  if (file.problems.length > 0) io.exitCode = exitCodes.usage;
  if (flags.json) {
    const settings = rows.map(({ member, value, source }) => [member, { value, source }] as const);
    return printJson(io, { file: file.path, settings: Object.fromEntries(settings), problems: file.problems });
  }
  const width = Math.max(0, ...rows.map(({ member }) => member.length));
  for (const { member, value, source, variable } of rows) {
    const shown = io.stdout.isTTY ? printable(value) : value;
    printRows(io, `${padded(member, width)}  ${shown}${source === "variable" ? `  (${variable})` : ""}\n`);
  }
  for (const problem of file.problems) say(io, `wrong: ${problem}\n`);
  if (flags.quiet) return;
  const what = rows.length === 0 ? "no setting differs from its default" : "all others have their defaults";
  say(io, `${what}: strongroom serve --help  lists them (file: ${file.path})\n`);
  if (file.problems.length === 0) await noteOnServer(io, home, flags);
}

function print(io: Io, file: SettingsFile, name: keyof Settings, flags: Flags): void {
  const { flag } = definitions[name];
  const value = file.texts[name];
  if (value === undefined) {
    const problem = `${flag} is not set in ${printable(file.path)}`;
    throw new CommandFailure("notFound", `${problem}: the default is ${formatDefault(definitions[name])}`);
  }
  if (flags.json) printJson(io, { name: flag, value });
  else printLine(io, value);
}

async function set(io: Io, home: string, name: keyof Settings, value: string, flags: Flags): Promise<void> {
  const member = definitions[name].flag ?? "";
  const text = storedText(name, value);
  const file = await writableFile(home);
  await replaceFile(systemFiles, file.path, Buffer.from(withMember(file, member, text)));
  report(io, flags, { file: file.path, name: member, value: text }, `${member} is ${text} in ${file.path}`);
  await noteOnServer(io, home, flags);
}

async function unset(io: Io, home: string, given: string, flags: Flags): Promise<void> {
  const member = given.replace(/^--/, "");
  const file = await writableFile(home);
  if (!file.members.includes(member)) {
    known(member);
    throw new CommandFailure("notFound", `${member} is not set in ${printable(file.path)}`);
  }
  await replaceFile(systemFiles, file.path, Buffer.from(withoutMember(file, member)));
  report(io, flags, { file: file.path, name: member }, `${member} is no longer set in ${file.path}`);
  await noteOnServer(io, home, flags);
}

/** Returns the file of a home that exists; what cannot be read as TOML is not changed. @throws StartError, CommandFailure usage */
async function writableFile(home: string): Promise<SettingsFile> {
  await openHome(home);
  const file = readSettingsFile(home);
  if (file.text === "" && file.problems.length > 0) throw new CommandFailure("usage", file.problems.join("; "));
  return file;
}

/** Returns the text for the file: a path as the reader has made it absolute. @throws CommandFailure usage */
function storedText(name: keyof Settings, value: string): string {
  try {
    const read = definitions[name].read(value);
    return typeof read === "string" ? read : value;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new CommandFailure("usage", `${definitions[name].flag} must be ${error.message}`);
  }
}

/** Says what a running server does not have yet, and what a start would refuse. */
async function noteOnServer(io: Io, home: string, flags: Flags): Promise<void> {
  if (flags.quiet || flags.json) return;
  try {
    const settings = await settingsOfStart({ home }, io.env);
    if ((await findHolder(homeAt(home).vault)) === null) return;
    const differences = await compareWithRunning(settings, {}, io.env);
    const waiting = differences === null ? [] : [...differences.given, ...differences.inFile];
    if (waiting.length === 0) return;
    const names = waiting.map(({ name, running }) => `${name} (it has ${running})`).join(", ");
    const command = differences?.restartedBy ?? "strongroom up --restart";
    say(io, `the running server does not have ${names}: ${command}  applies it and locks the vault\n`);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    say(io, `warning: no server can start so: ${error.message}\n`);
  }
}
