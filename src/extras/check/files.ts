/** Files that `scan` searches: a directory's, git's index, and everything in git's history. */

import { type ChildProcess, spawn } from "node:child_process";
import { readdir, readFile, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { buffer } from "node:stream/consumers";
import { CommandFailure, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { withoutTokens } from "../../cli/kit/programs/without-tokens.js";

/** `origin`: the object in git's history; null for a file as it is now. */
export type ScannedFile = { readonly name: string; readonly origin: string | null; readonly bytes: Buffer };

/** A larger file is not searched; it is named. */
const mostBytes = 256 * 2 ** 20;

/** Called with the name of a file that cannot be searched, and why. */
export type Skip = (name: string, why: string) => void;

/** Whether the directory is in the work tree of a git repository; false without git. @throws CommandFailure usage */
export async function isInRepository(io: Io, directory: string): Promise<boolean> {
  const found = await stat(directory).catch(() => null);
  if (!found?.isDirectory()) throw new CommandFailure("usage", `${printable(directory)} is not a directory: name one`);
  try {
    const { stdout, status } = await git(io, directory, ["rev-parse", "--is-inside-work-tree"]);
    return status === 0 && stdout.toString().trim() === "true";
  } catch (error) {
    if (error instanceof CommandFailure) return false;
    throw error;
  }
}

/** Yields the files that git tracks or would add; `ignored`: also those that it ignores. */
export async function* filesOfTree(
  io: Io,
  directory: string,
  ignored: boolean,
  skip: Skip,
): AsyncGenerator<ScannedFile> {
  const flags = ignored ? ["--cached", "--others"] : ["--cached", "--others", "--exclude-standard"];
  const listed = await mustRun(io, directory, ["ls-files", "-z", "--deduplicate", ...flags]);
  for (const name of namesIn(listed)) yield* readNow(directory, name, skip);
}

/** Yields the files of a directory outside of git. Links are not followed. */
export async function* filesOfDirectory(root: string, skip: Skip, directory = root): AsyncGenerator<ScannedFile> {
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => {
    throw new CommandFailure("usage", `${printable(directory)} cannot be read: name a directory`);
  })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* filesOfDirectory(root, skip, path);
    else if (entry.isFile()) yield* readNow(root, relative(root, path), skip);
  }
}

async function* readNow(directory: string, name: string, skip: Skip): AsyncGenerator<ScannedFile> {
  try {
    const file = join(directory, name);
    const found = await stat(file);
    if (!found.isFile()) return;
    if (found.size > mostBytes) return skip(name, "it is larger than 256 MiB");
    yield { name, origin: null, bytes: await readFile(file) };
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    if (code !== "ENOENT") skip(name, `it cannot be read (${code})`); // deleted, but still in git's index
  }
}

/** Yields what the next commit would change, as it is staged. */
export async function* stagedFiles(io: Io, directory: string, skip: Skip): AsyncGenerator<ScannedFile> {
  const flags = ["--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--diff-filter=ACMT", "--relative"];
  const fields = namesIn(await mustRun(io, directory, ["diff", ...flags]));
  const objects = fields.flatMap((name, i) => {
    const [, , , id] = fields[i - 1]?.split(" ") ?? []; // :mode mode id id status, and then the name
    return i % 2 === 1 && id !== undefined ? [{ name, id, origin: null }] : [];
  });
  yield* objectsOf(io, directory, objects, skip);
}

/** Yields each version of each file in the history of all branches and tags, once. */
export async function* filesOfHistory(io: Io, directory: string, skip: Skip): AsyncGenerator<ScannedFile> {
  const listed = await mustRun(io, directory, ["rev-list", "--objects", "--missing=print", "--all"]);
  const lines = listed.toString("utf8").split("\n");
  for (const line of lines) if (line.startsWith("?")) skip(`object ${line.slice(1)}`, notHere);
  const objects = lines.flatMap((line) => {
    const at = line.indexOf(" ");
    const [id, name] = [line.slice(0, at), line.slice(at + 1)];
    return at > 0 && name !== "" ? [{ name, id, origin: id }] : []; // commits have no name
  });
  yield* objectsOf(io, directory, objects, skip);
}

type GitObject = { readonly name: string; readonly id: string; readonly origin: string | null };

/** In memory at a time, unless one is larger. */
const bytesAtOnce = 32 * 2 ** 20;

async function* objectsOf(
  io: Io,
  directory: string,
  objects: readonly GitObject[],
  skip: Skip,
): AsyncGenerator<ScannedFile> {
  let some: GitObject[] = [];
  let bytes = 0;
  for (const { size, ...object } of await blobsAmong(io, directory, objects, skip)) {
    if (bytes + size > bytesAtOnce && some.length > 0) {
      yield* contentsOf(io, directory, some);
      [some, bytes] = [[], 0];
    }
    some.push(object);
    bytes += size;
  }
  yield* contentsOf(io, directory, some);
}

async function blobsAmong(io: Io, directory: string, objects: readonly GitObject[], skip: Skip) {
  if (objects.length === 0) return [];
  const heads = await mustRun(io, directory, ["cat-file", "--batch-check=%(objecttype) %(objectsize)"], objects);
  const lines = heads.toString().split("\n");
  return objects.flatMap((object, i) => {
    const [type, size] = lines[i]?.split(" ") ?? [];
    if (size === "missing") skip(object.name, notHere);
    if (type !== "blob") return [];
    if (Number(size) <= mostBytes) return [{ ...object, size: Number(size) }];
    skip(object.name, "it is larger than 256 MiB");
    return [];
  });
}

const notHere = "git does not have it here: fetch it first";

async function* contentsOf(io: Io, directory: string, objects: readonly GitObject[]): AsyncGenerator<ScannedFile> {
  if (objects.length === 0) return;
  const contents = await mustRun(io, directory, ["cat-file", "--batch=%(objectsize)"], objects);
  let at = 0;
  for (const { name, origin } of objects) {
    const start = contents.indexOf(0x0a, at) + 1;
    const end = start + Number(contents.toString("latin1", at, start - 1));
    yield { name, origin, bytes: contents.subarray(start, end) };
    at = end + 1;
  }
}

/** Returns the oldest commit with this object, shortened; null when there is none. */
export async function commitWith(io: Io, directory: string, object: string): Promise<string | null> {
  const found = await mustRun(io, directory, ["log", "--all", "--format=%h", `--find-object=${object}`]);
  return found.toString().trim().split("\n").at(-1) || null;
}

function namesIn(listed: Buffer): string[] {
  return listed.toString("utf8").split("\0").filter(Boolean);
}

async function mustRun(
  io: Io,
  directory: string,
  args: readonly string[],
  input: readonly GitObject[] = [],
): Promise<Buffer> {
  const { status, stdout, stderr } = await git(io, directory, args, input.map(({ id }) => `${id}\n`).join(""));
  if (status === 0) return stdout;
  throw new CommandFailure("unexpected", `git ${args[0]} failed: ${printable(stderr.trim())}`);
}

/** The repository's own settings may not name programs to run: nothing but what git itself does is wanted. */
const safely = [
  "--no-pager",
  ...["core.fsmonitor=false", "core.quotePath=false", "core.hooksPath=/dev/null", "log.showSignature=false"].flatMap(
    (setting) => ["-c", setting],
  ),
];

/**
 * DANGER: git fetches what a partial clone lacks, by a program that the repository's settings may name. An empty list of
 * protocols would allow all.
 */
const withoutFetches = { GIT_ALLOW_PROTOCOL: "none", GIT_NO_LAZY_FETCH: "1", GIT_OPTIONAL_LOCKS: "0" };

async function git(io: Io, directory: string, args: readonly string[], input = "") {
  const env = { ...withoutTokens(io.env), ...withoutFetches };
  const child = spawn("git", [...safely, ...args], { cwd: directory, env, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => {}); // it may end without reading
  child.stdin.end(input);
  const [stdout, stderr, status] = await Promise.all([buffer(child.stdout), buffer(child.stderr), ended(child)]);
  return { stdout, stderr: stderr.toString(), status };
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => {
      const isMissing = systemCode(error) === "ENOENT";
      reject(isMissing ? new CommandFailure("notFound", "git is not installed") : error);
    });
    child.once("close", resolve);
  });
}
