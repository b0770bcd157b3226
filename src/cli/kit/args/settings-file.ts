/**
 * Settings file `config.toml` of a home: its members have the names of the flags, and rank below flags and variables.
 *
 *   audit = "all"
 *   vault-port = 8200
 *   server-names = ["vault.example.org"]
 */
import { lstatSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { isPrivate, writing } from "../../../client/ownership.js";
import { definitions, type Settings } from "../../../config/definitions.js";
import { readPath, readSocketPath } from "../../../config/readers.js";
import { emptySettingsFile, type SettingsFile, settingsFilePath } from "../../../config/settings.js";
import { quoted } from "../../../files/home.js";
import { failureReason, systemCode } from "../errors.js";
import { printable } from "../output.js";
import { suggestion } from "./args.js";

const maxFileBytes = 256 * 1024;

/** Settings that are no members: the file is in the home, and a token needs a file of its own. */
const excluded: Readonly<Record<string, string>> = {
  home: "the file is in the home and cannot name it: use --home or STRONGROOM_HOME",
  token: "the token has no place here: name its file with token-file",
};

/** The flags that name settings of the file, with the settings. */
export const memberNames: ReadonlyMap<string, keyof Settings> = new Map(
  (Object.keys(definitions) as (keyof Settings)[]).flatMap((name) => {
    const { flag } = definitions[name];
    return flag === null || flag in excluded ? [] : [[flag, name] as const];
  }),
);

/** Reads the file of a home. It never throws: the caller decides whether the problems matter. */
export function readSettingsFile(home: string): SettingsFile {
  const path = settingsFilePath(home);
  const none = emptySettingsFile(home);
  try {
    const problem = problemOfPlace(path);
    if (problem !== null) return { ...none, problems: [problem] };
    const text = readFileSync(path, "utf8");
    return { path, text, ...membersIn(parse(text), path) };
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return none;
    if (!(error instanceof TomlError)) return { ...none, problems: [`${path} cannot be read${failureReason(code)}`] };
    const where = `line ${error.line}, column ${error.column}`;
    return { ...none, problems: [`${path}: ${where} is not valid TOML: correct it there`] };
  }
}

/** Returns why a file is not read: other users must not be able to write or replace it. @throws SystemError */
function problemOfPlace(path: string): string | null {
  const found = lstatSync(path);
  if (!found.isFile()) return `${path} is not a plain file: move it away`;
  if (found.size > maxFileBytes) return `${path} is larger than ${maxFileBytes} bytes: it is no file of settings`;
  const open = [path, dirname(path)].find((each) => !isPrivate(lstatSync(each), writing));
  return open === undefined ? null : `other users can write to ${open}: run  chmod go-w ${quoted(open)}`;
}

function membersIn(table: Readonly<Record<string, unknown>>, path: string): Omit<SettingsFile, "path" | "text"> {
  const texts: Partial<Record<keyof Settings, string>> = {};
  const problems: string[] = [];
  for (const [member, value] of Object.entries(table)) {
    const name = memberNames.get(member);
    const text = memberText(value);
    if (name === undefined) problems.push(`${path}: ${unknownMember(member)}`);
    else if (text === null)
      problems.push(`${member} in ${path} must be a text, a number, true, false or a list of texts`);
    else texts[name] = absoluteIfPath(name, text, dirname(path));
  }
  return { texts, members: Object.keys(table), problems };
}

/** Returns what is wrong with a member's name. */
export function unknownMember(member: string): string {
  const flag = member.replace(/^--/, "");
  if (excluded[flag] !== undefined) return excluded[flag];
  return `unknown setting ${printable(member)}${suggestion(flag, [...memberNames.keys()])}`;
}

/** Returns a member's value as the text of its flag; null for a table, a time and the like. */
function memberText(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (typeof value === "boolean") return value ? "on" : "off";
  return Array.isArray(value) && value.every((item) => typeof item === "string") ? value.join(",") : null;
}

/** A relative path in the file begins at the file's directory: the directory where a server is started may be any. */
function absoluteIfPath(name: keyof Settings, text: string, directory: string): string {
  const { read } = definitions[name];
  const isPath = read === readPath || (read === readSocketPath && text !== "off");
  return isPath && text !== "" ? resolve(directory, text) : text;
}
