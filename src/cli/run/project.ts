/**
 * Project file `.strongroom.toml`, the nearest one from the working directory upwards: which secrets `run`, `export`,
 * `inject` and `agent run` use here. A file that others can write or replace is refused, and a file that the user has
 * not allowed is not used.
 *
 *   prefix = "app/"
 *   name = "path"
 *   env-file = ".env.secrets"
 *   [set]
 *   PGPASSWORD = "app/db/password"
 *   PGUSER = "strongroom://app/db/account#user"
 *   [agent]
 *   use = ["ai/"]
 *   allow-hosts = ["registry.npmjs.org"]
 *   placeholders = ["GH_TOKEN"]
 */

import { createHash } from "node:crypto";
import { access, lstat, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { findWeakPlace, isPrivate, type WeakPlace, weakPlaceText, writing } from "../../client/ownership.js";
import { xdgDirectory } from "../../config/xdg.js";
import { mustBeScope } from "../kit/args/paths.js";
import { pathOrReference } from "../kit/args/references.js";
import { CommandFailure } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import { printable } from "../kit/output.js";
import { isObject, textOfInput } from "../kit/prompts/input.js";
import type { Sources } from "./environment.js";
import { type OwnFile, readOwnFile, sha256Hex } from "./own-file.js";
import { steersPrograms } from "./steering.js";
import { type Named, type Naming, namings, problemOfName } from "./variables.js";

export const projectFileName = ".strongroom.toml";

/** Secrets and hosts for `agent run`; no path in `use`: every secret that is bound to a host. */
export type ProjectAgent = {
  readonly use: readonly string[];
  readonly allowHosts: readonly string[];
  readonly placeholders: readonly string[];
};

export type Project = {
  readonly file: string;
  readonly sources: Sources;
  /** Null without the table. */
  readonly agent: ProjectAgent | null;
  /** Files that the user allows: the project file, and its env file. */
  readonly files: readonly OwnFile[];
};

/** Returns the allowed project of the working directory, or null without one. @throws CommandFailure usage */
export async function findProject(io: Io): Promise<Project | null> {
  const file = await projectFileAbove(io.cwd());
  await mustNotBeMissing(io, file);
  if (file === null) return null;
  const project = await readProject(file);
  if (await isAllowed(io, project.files)) return project;
  const problem = `${printable(file)} is new or has changed, and decides which secrets programs get`;
  throw new CommandFailure("usage", `${problem}: read it, then  strongroom allow`);
}

/**
 * DANGER: a program that removed the file would otherwise get what a file further up says, or every bound secret.
 * @param found the nearest project file that is there
 * @throws CommandFailure usage, where a nearer one was allowed
 */
async function mustNotBeMissing(io: Io, found: string | null): Promise<void> {
  const allowed = (await readMarks(io)).map(({ file }) => file);
  const top = found === null ? "/" : dirname(found);
  for (let at = io.cwd(); at !== top; at = dirname(at)) {
    const file = join(at, projectFileName);
    if (!allowed.includes(file)) continue;
    const remedy = `put it back, or  strongroom allow --revoke ${shellWord(file)}`;
    throw new CommandFailure("usage", `${printable(file)} was allowed and is missing: ${remedy}`);
  }
}

/** @throws CommandFailure usage, when the file is invalid or not the user's own */
export async function readProject(file: string): Promise<Project> {
  const own = await readOwnFile(file);
  const name = printable(file);
  const {
    prefix,
    name: naming,
    "env-file": envFile,
    set = {},
    agent,
    ...unknown
  } = parsed(textOfInput(own.bytes, name), name);
  const [stray] = Object.keys(unknown);
  if (stray !== undefined)
    throw invalid(name, `${printable(stray)} is not one of prefix, name, env-file, set and agent`);
  const envFiles = envFile === undefined ? [] : [resolve(dirname(file), parseText(envFile, `${name}: env-file`))];
  const files = await Promise.all(envFiles.map(readOwnFile));
  const sources = {
    prefix: prefix === undefined ? undefined : parseText(prefix, `${name}: prefix`),
    naming: naming === undefined ? undefined : parseNaming(naming, `${name}: name`),
    set: namedIn(set, name),
    envFiles: files.map(({ file, bytes }) => ({ file, sha256: sha256Hex(bytes) })),
  };
  return { file, sources, agent: agent === undefined ? null : agentIn(agent, name), files: [own, ...files] };
}

function agentIn(table: unknown, file: string): ProjectAgent {
  if (!isObject(table)) throw invalid(file, "agent is not a table");
  const { use = [], "allow-hosts": allowHosts = [], placeholders = [], sandbox = true, ...unknown } = table;
  const [stray] = Object.keys(unknown);
  const known = "use, allow-hosts, placeholders and sandbox";
  if (stray !== undefined) throw invalid(`${file}: agent`, `${printable(stray)} is not one of ${known}`);
  if (sandbox !== true) throw invalid(`${file}: sandbox`, "it can only be true: --no-sandbox alone switches it off");
  return {
    use: textsIn(use, `${file}: use`).map((path) => mustBeScope(path, `${file}: use`)),
    allowHosts: textsIn(allowHosts, `${file}: allow-hosts`),
    placeholders: textsIn(placeholders, `${file}: placeholders`).map((name) => {
      const problem = steersPrograms(name) ? `${name} changes how programs run` : problemOfName(name);
      if (problem !== null) throw invalid(`${file}: placeholders`, problem);
      return name;
    }),
  };
}

function textsIn(list: unknown, where: string): string[] {
  if (Array.isArray(list)) return list.map((text) => parseText(text, where));
  throw invalid(where, "it must be a list of strings");
}

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
    const problem = problemOfName(name);
    if (problem !== null) throw invalid(file, problem);
    if (steersPrograms(name)) throw invalid(where, "it changes how programs run, and only --set may set it");
    const { field, ...reference } = pathOrReference(parseText(path, where), where);
    return { name, ...reference, ...(field !== null && { field }) };
  });
}

function parseNaming(value: unknown, where: string): Naming {
  const found = namings.find((naming) => naming === value);
  if (found === undefined) throw invalid(where, `it must be one of ${namings.join(", ")}`);
  return found;
}

function parseText(value: unknown, where: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw invalid(where, "it must be a string");
}

function invalid(where: string, problem: string): CommandFailure {
  return new CommandFailure("usage", `${where}: ${problem}`);
}

/**
 * Allowed projects are marks in the user's state directory, one file each, named by the SHA-256 of all paths and contents: a
 * change of a file, or the same content elsewhere, is not allowed by it.
 */
export async function isAllowed(io: Io, files: readonly OwnFile[]): Promise<boolean> {
  const mark = allowanceFile(io, files);
  const found = await lstat(mark).catch(() => null);
  return found?.isFile() === true && isPrivate(found, writing) && (await findWeakPlace(mark)) === null;
}

/** @throws CommandFailure usage, when another user could make such marks */
export async function allow(io: Io, files: readonly OwnFile[]): Promise<void> {
  const weak = await findWeakPlaceOfMarks(io);
  if (weak !== null) throw new CommandFailure("usage", printable(weakPlaceText(directory(io), weak)));
  await makeAllowedDirectory(io);
  for (const { file } of files.slice(0, 1)) await revokeFile(io, file); // an earlier content must not become allowed again
  await writeFile(allowanceFile(io, files), files.map(({ file }) => `${file}\n`).join(""), { mode: 0o600 });
}

export async function revoke(io: Io, files: readonly OwnFile[]): Promise<void> {
  await rm(allowanceFile(io, files), { force: true });
}

/** Revokes whatever the project file has said. */
export async function revokeFile(io: Io, file: string): Promise<void> {
  for (const each of await readMarks(io)) if (each.file === file) await rm(each.mark, { force: true });
}

type Mark = { readonly mark: string; readonly file: string };

/** A mark begins with the project file's path, and a line break. */
async function readMarks(io: Io): Promise<readonly Mark[]> {
  const names = await readdir(directory(io)).catch(() => []);
  const marks = names.map(async (name) => {
    const mark = join(directory(io), name);
    const text = await readFile(mark, "utf8").catch(() => "");
    return { mark, file: text.slice(0, text.indexOf(`/${projectFileName}\n`) + projectFileName.length + 1) };
  });
  return Promise.all(marks);
}

/** Returns the directory that says what is allowed. Makes it, unless another user could choose where that is. */
export async function makeAllowedDirectory(io: Io): Promise<string> {
  if ((await findWeakPlaceOfMarks(io)) === null) await mkdir(directory(io), { recursive: true, mode: 0o700 });
  return directory(io);
}

function findWeakPlaceOfMarks(io: Io): Promise<WeakPlace | null> {
  return findWeakPlace(join(directory(io), "mark"));
}

/** The XDG base directory specification: kept over restarts, but not to be copied to other machines. */
function directory(io: Io): string {
  const state = xdgDirectory(io.env, "XDG_STATE_HOME") ?? join(io.homeDirectory(), ".local", "state");
  return join(state, "strongroom", "allowed");
}

function allowanceFile(io: Io, files: readonly OwnFile[]): string {
  const hash = createHash("sha256");
  for (const part of files.flatMap(({ file, bytes }) => [Buffer.from(file), bytes])) {
    hash.update(`${part.length}:`).update(part); // with its length, so that no two lists of parts agree
  }
  return join(directory(io), hash.digest("hex"));
}
