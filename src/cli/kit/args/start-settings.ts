/** Settings of a start, and of the clients of its server: flags, variables, and the home's settings file where there is one. */
import { lstatSync } from "node:fs";
import { definitions, type Settings } from "../../../config/definitions.js";
import {
  emptySettingsFile,
  type GivenFlags,
  readOneSetting,
  readSettings,
  type SettingsFile,
  settingsFilePath,
} from "../../../config/settings.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Most homes have no file: what reads TOML is loaded only for one. */
export async function settingsFileIn(home: string): Promise<SettingsFile> {
  if (!isThere(settingsFilePath(home))) return emptySettingsFile(home);
  const { readSettingsFile } = await import("./settings-file.js");
  return readSettingsFile(home);
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false; // the home itself cannot be used, and what uses it says why
  }
}

/**
 * Reads all settings of a server: its flags, variables, and the file of the home that these name.
 * @throws StartError, exit code 2, that lists every problem, those of the file included
 */
export async function settingsOfStart(
  flags: GivenFlags,
  environment: Environment,
  problems: readonly string[] = [],
): Promise<Settings> {
  const file = await settingsFileIn(readOneSetting("home", flags.home || undefined, environment));
  return readSettings(flags, environment, [...problems, ...file.problems], file);
}

/** Returns the variables for a client: those of the home's file are below the environment's own. A start reports the file's problems. */
export async function clientEnvironment(environment: Environment, given: string | undefined): Promise<Environment> {
  const { texts } = await settingsFileIn(readOneSetting("home", given, environment));
  const added = Object.entries(texts).map(([name, text]) => [definitions[name as keyof Settings].variable, text]);
  if (added.length === 0) return environment;
  const set = Object.entries(environment).filter(([, value]) => value !== ""); // an empty variable is an unset one
  return Object.fromEntries([...added, ...set]);
}
