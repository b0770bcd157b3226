/** Calls of git that run no program which a repository's settings name, and fetch nothing. */
import { type ChildProcess, spawn } from "node:child_process";
import { resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { CommandFailure, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { withoutTokens } from "../../cli/kit/programs/without-tokens.js";

/** A directory in which git is called. `isNested`: what git's variables in the environment say holds for another one. */
export type GitPlace = { readonly io: Io; readonly directory: string; readonly isNested: boolean };

/** A place in a repository, with git's own directories: that of the work tree, and that of all work trees. */
export type Repository = GitPlace & { readonly own: string; readonly common: string };

/** @throws CommandFailure unexpected, where there is no repository */
export async function findRepository(place: GitPlace): Promise<Repository> {
  const found = await mustRun(place, ["rev-parse", "--git-dir", "--git-common-dir"]);
  const [own = "", common = ""] = found.toString().trimEnd().split("\n");
  return { ...place, own: resolve(place.directory, own), common: resolve(place.directory, common) };
}

type GitResult = { readonly status: number | null; readonly stdout: Buffer; readonly stderr: string };

/** @throws CommandFailure unexpected, when git fails */
export async function mustRun(place: GitPlace, args: readonly string[], input = ""): Promise<Buffer> {
  const { status, stdout, stderr } = await git(place, args, input);
  if (status === 0) return stdout;
  throw new CommandFailure("unexpected", `git ${args[0]} failed: ${printable(stderr.trim())}`);
}

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
const always = {
  GIT_ALLOW_PROTOCOL: "none",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_NO_REPLACE_OBJECTS: "1",
  LC_ALL: "C", // its messages are read
};

/** @throws CommandFailure notFound, without git */
export async function git(
  { io, directory, isNested }: GitPlace,
  args: readonly string[],
  input = "",
): Promise<GitResult> {
  const inherited = Object.entries(withoutTokens(io.env)).filter(([name]) => !isNested || !name.startsWith("GIT_"));
  const env = { ...Object.fromEntries(inherited), ...always };
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

/** Returns the items of a list that ends each with a zero byte, as bytes: names need not be UTF-8. */
export function itemsIn(listed: Buffer): Buffer[] {
  const items: Buffer[] = [];
  for (let from = 0; from < listed.length; ) {
    const found = listed.indexOf(0, from);
    const end = found < 0 ? listed.length : found;
    if (end > from) items.push(listed.subarray(from, end));
    from = end + 1;
  }
  return items;
}
