/**
 * Project file `.strongroom.toml`, the nearest one from the working directory upwards: which secrets `run`, `export` and
 * `inject` use here. A file that others can write is refused, and one that the user has not allowed is not used.
 *
 *   prefix = "app/"
 *   env-file = ".env.secrets"
 *   [set]
 *   PGPASSWORD = "app/db/password"
 */
import { access } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import type { Sources } from "../run/environment.js";
import { steersPrograms } from "../run/steering-names.js";
import { isVariableName, type Named } from "../run/variable-names.js";
import { CommandFailure } from "../session/exit-codes.js";
import { textOfInput } from "../session/input-file.js";
import { isObject } from "../session/json-values.js";
import { printable } from "../session/output.js";
import { canonicalPath } from "../session/references.js";
import { isAllowed } from "./allowed-projects.js";
import { type OwnFile, readOwnFile } from "./own-file.js";

export const projectFileName = ".strongroom.toml";

export type Project = {
  readonly file: string;
  readonly sources: Sources;
  /** What the user allows: the project file, and its env file. */
  readonly files: readonly OwnFile[];
};

/** Returns the allowed project of the working directory, or null without one. @throws CommandFailure usage */
export async function findProject(): Promise<Project | null> {
  const file = await projectFileAbove(process.cwd());
  if (file === null) return null;
  const project = await readProject(file);
  if (await isAllowed(project.files)) return project;
  const problem = `${printable(file)} is new or has changed, and decides which secrets programs get`;
  throw new CommandFailure("usage", `${problem}: read it, then  strongroom allow`);
}

/** @throws CommandFailure usage, when the file is invalid or not the user's own */
export async function readProject(file: string): Promise<Project> {
  const own = await readOwnFile(file);
  const name = printable(file);
  const { prefix, "env-file": envFile, set = {}, ...unknown } = parsed(textOfInput(own.bytes, name), name);
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) throw invalid(name, `${printable(stray)} is not one of prefix, env-file and set`);
  const envFiles = envFile === undefined ? [] : [resolve(dirname(file), textOf(envFile, `${name}: env-file`))];
  const sources = {
    prefix: prefix === undefined ? undefined : textOf(prefix, `${name}: prefix`),
    set: namedIn(set, name),
    envFiles,
  };
  return { file, sources, files: [own, ...(await Promise.all(envFiles.map(readOwnFile)))] };
}

/** Returns the nearest project file, or null. */
export async function projectFileAbove(directory: string): Promise<string | null> {
  const file = join(directory, projectFileName);
  try {
    await access(file);
    return file;
  } catch {
    const parent = dirname(directory);
    return parent === directory ? null : projectFileAbove(parent);
  }
}

function parsed(text: string, name: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw invalid(name, `line ${error.line}, column ${error.column} is not valid TOML`);
  }
}

function namedIn(set: unknown, file: string): Named[] {
  if (!isObject(set)) throw invalid(file, "set is not a table of NAME = path");
  return Object.entries(set).map(([name, path]) => {
    const where = `${file}: ${printable(name)}`;
    if (!isVariableName(name)) throw invalid(where, "not a valid variable name");
    if (steersPrograms(name)) throw invalid(where, "it changes how programs run, and only --set may set it");
    return { name, path: canonicalPath(textOf(path, where), where) };
  });
}

function textOf(value: unknown, where: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw invalid(where, "it must be a string");
}

function invalid(where: string, problem: string): CommandFailure {
  return new CommandFailure("usage", `${where}: ${problem}`);
}
