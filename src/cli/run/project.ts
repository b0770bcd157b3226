/**
 * Project file `.strongroom.toml`, the nearest one from the working directory upwards: which secrets `run`, `export` and
 * `inject` use here. A file that others can write is refused, and one that the user has not allowed is not used.
 *
 *   prefix = "app/"
 *   env-file = ".env.secrets"
 *   [set]
 *   PGPASSWORD = "app/db/password"
 */

import { createHash } from "node:crypto";
import { access, mkdir, open, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { systemCode } from "../../errors.js";
import { reasonOf } from "../../files/file-problem.js";
import { quoted } from "../../files/home.js";
import { CommandFailure } from "../lib/errors.js";
import { isObject, textOfInput } from "../lib/input.js";
import { printable } from "../lib/output.js";
import { canonicalPath } from "../lib/paths.js";
import type { Sources } from "./environment.js";
import { isVariableName, type Named, steersPrograms } from "./variables.js";

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

type OwnFile = { readonly file: string; readonly bytes: Buffer };

/** Checks and reads the same open file. @throws CommandFailure usage, when it is another user's, or others can write it */
async function readOwnFile(file: string): Promise<OwnFile> {
  const name = printable(file);
  const handle = await open(file).catch((error) => {
    throw new CommandFailure("usage", `${name} cannot be read${reasonOf(systemCode(error))}`);
  });
  try {
    const { uid, mode } = await handle.stat();
    if (process.getuid !== undefined && uid !== process.getuid()) {
      throw new CommandFailure("usage", `${name} belongs to another user: it is not used`);
    }
    if ((mode & 0o022) !== 0) {
      throw new CommandFailure("usage", `${name} can be written by others: run  chmod go-w ${printable(quoted(file))}`);
    }
    return { file, bytes: await handle.readFile() };
  } finally {
    await handle.close();
  }
}

export async function isAllowed(files: readonly OwnFile[]): Promise<boolean> {
  const found = await stat(markOf(files)).catch(() => null);
  return found !== null;
}

export async function allow(files: readonly OwnFile[]): Promise<void> {
  await mkdir(directory(), { recursive: true, mode: 0o700 });
  await writeFile(markOf(files), files.map(({ file }) => `${file}\n`).join(""), { mode: 0o600 });
}

export async function revoke(files: readonly OwnFile[]): Promise<void> {
  await rm(markOf(files), { force: true });
}

/** The XDG base directory specification: kept over restarts, but not to be copied to other machines. */
function directory(): string {
  const { XDG_STATE_HOME } = process.env;
  const state = XDG_STATE_HOME?.startsWith("/") ? XDG_STATE_HOME : join(homedir(), ".local", "state");
  return join(state, "strongroom", "allowed");
}

function markOf(files: readonly OwnFile[]): string {
  const hash = createHash("sha256");
  for (const part of files.flatMap(({ file, bytes }) => [Buffer.from(file), bytes])) {
    hash.update(`${part.length}:`).update(part); // with its length, so that no two lists of parts agree
  }
  return join(directory(), hash.digest("hex"));
}
