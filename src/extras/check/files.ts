/**
 * Files that `scan` searches: a directory's, with the repositories in it, what is staged, and git's history. A place that
 * cannot be searched is named, never left out without a word.
 */
import { isUtf8 } from "node:buffer";
import type { Stats } from "node:fs";
import { lstat, readdir, readFile, realpath, stat } from "node:fs/promises";
import { basename, join, resolve, sep } from "node:path";
import { CommandFailure, failureReason, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { printable } from "../../cli/kit/output.js";
import { findRepository, type GitPlace, git, itemsIn, mustRun, type Repository } from "./git.js";
import { historyFiles, type Objects, readObjects, withStored } from "./history.js";
import { mostBytes, type ScannedFile, shown } from "./scanned-file.js";
import { reasons, type UnsearchedList } from "./unsearched.js";

type What = {
  readonly staged: boolean;
  readonly history: boolean;
  /** Also what git ignores. */
  readonly ignored: boolean;
};

/** One search: what to search, what was left out, and the repositories whose history was searched already. */
export class Places {
  readonly #io: Io;
  readonly #root: string;
  readonly #what: What;
  readonly #list: UnsearchedList;
  readonly #histories = new Set<string>();

  constructor(io: Io, root: string, what: What, list: UnsearchedList) {
    this.#io = io;
    this.#root = root;
    this.#what = what;
    this.#list = list;
  }

  /** Yields all files. @throws CommandFailure usage */
  async *files(): AsyncGenerator<ScannedFile> {
    const root = this.#root;
    const found = await stat(root).catch(() => null);
    if (!found?.isDirectory()) throw new CommandFailure("usage", `${printable(root)} is not a directory: name one`);
    const place: GitPlace = { io: this.#io, directory: root, isNested: false };
    const kind = await this.#objectKind(place, ".");
    if (this.#what.staged) {
      if (kind !== "tree") throw new CommandFailure("usage", `${printable(root)} is not in a git repository`);
      return yield* stagedFiles(await findRepository(place), this.#list);
    }
    if (kind === null) yield* this.#directory(root, "");
    else yield* this.#repository(await findRepository(place), kind, "");
  }

  /** Returns null where there is no repository, or none that can be read, which is then named. */
  async #objectKind(place: GitPlace, name: string): Promise<"tree" | "bare" | null> {
    try {
      const { status, stdout, stderr } = await git(place, ["rev-parse", "--is-inside-work-tree"]);
      if (status === 0) return stdout.toString().trim() === "true" ? "tree" : "bare";
      if (/not a git repository \(or any/.test(stderr) && !(await isRepository(place.directory))) return null;
      const [reason = ""] = stderr.trim().split("\n");
      this.#list.skip(name, `git does not read this repository, so its history is not searched: ${reason}`);
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      if (await isRepository(place.directory)) this.#list.skip(name, reasons.noGit);
    }
    return null;
  }

  async *#repository(place: Repository, kind: "tree" | "bare", prefix: string): AsyncGenerator<ScannedFile> {
    const sparse: Objects = [];
    if (kind === "tree") yield* this.#tree(place, prefix, sparse);
    const { common, own } = place;
    if (!this.#what.history) {
      yield* readObjects(place, sparse, this.#list);
      return;
    }
    yield* this.#gitFiles(own, prefix);
    if (this.#histories.has(common)) return;
    this.#histories.add(common);
    if (own !== common) yield* this.#gitFiles(common, prefix);
    yield* historyFiles(place, prefix, this.#list);
    await this.#nameOtherTrees(place);
  }

  /** Yields the files that git tracks or would add. `sparse`: tracked ones that a sparse checkout lacks. */
  async *#tree(place: Repository, prefix: string, sparse: Objects): AsyncGenerator<ScannedFile> {
    const seen = new Set<string>(); // in a conflict, a file has several entries
    for (const { name, tag, mode, id } of await indexEntries(place)) {
      const path = `${prefix}${shown(name)}`;
      if (seen.has(path)) continue;
      seen.add(path);
      if (mode === "160000") yield* this.#nested(place.directory, name, prefix, reasons.submodule);
      else if (tag === "S") sparse.push({ name: path, id, origin: null });
      else yield* this.#file(place.directory, name, prefix, place);
    }
    yield* this.#untracked(place, prefix);
  }

  async *#untracked(place: GitPlace, prefix: string): AsyncGenerator<ScannedFile> {
    const exclude = this.#what.ignored ? [] : ["--exclude-standard"];
    for (const name of itemsIn(await mustRun(place, ["ls-files", "-z", "--others", ...exclude]))) {
      if (name.at(-1) === slash) yield* this.#nested(place.directory, name.subarray(0, -1), prefix, null);
      else yield* this.#file(place.directory, name, prefix);
    }
    if (!this.#what.ignored) await this.#countIgnored(place, prefix);
  }

  async #countIgnored(place: GitPlace, prefix: string): Promise<void> {
    const flags = ["--others", "--ignored", "--exclude-standard", "--directory"];
    for (const name of itemsIn(await mustRun(place, ["ls-files", "-z", ...flags])))
      this.#list.leaveOut(`${prefix}${shown(name)}`, "ignored");
  }

  /** Yields a repository's files. `why`: what it means that there is none. */
  async *#nested(parent: string, name: Buffer, prefix: string, why: string | null): AsyncGenerator<ScannedFile> {
    const path = `${prefix}${shown(name)}`;
    const directory = join(parent, name.toString());
    if (!isUtf8(name)) return this.#list.skip(path, reasons.name);
    if (!(await isRepository(directory))) {
      if (why !== null) return this.#list.skip(path, why);
      return yield* this.#directory(directory, `${path}/`);
    }
    const place: GitPlace = { io: this.#io, directory, isNested: true };
    const kind = await this.#objectKind(place, path);
    if (kind === null) yield* this.#directory(directory, `${path}/`);
    else yield* this.#repository(await findRepository(place), kind, `${path}/`);
  }

  /** Yields the files of a directory outside of git, and of the repositories in it. */
  async *#directory(directory: string, prefix: string, passed = noNames): AsyncGenerator<ScannedFile> {
    const entries = await readdir(directory, { withFileTypes: true, encoding: "buffer" }).catch((error: unknown) => {
      if (directory === this.#root)
        throw new CommandFailure("usage", `${printable(directory)} cannot be read: name a directory`);
      this.#list.skip(prefix, `it cannot be read${failureReason(systemCode(error))}`);
      return [];
    });
    for (const entry of entries) {
      const name = Buffer.from(entry.name);
      if (passed.has(name.toString())) continue;
      const below = join(directory, name.toString());
      if (!entry.isDirectory()) yield* this.#file(directory, name, prefix);
      else if (!isUtf8(name)) this.#list.skip(`${prefix}${shown(name)}/`, reasons.name);
      else if (await isRepository(below)) yield* this.#nested(directory, name, prefix, null);
      else yield* this.#directory(below, `${prefix}${shown(name)}/`);
    }
  }

  /** Yields what git itself keeps beside the objects: settings, which may hold a URL with a password, logs, hooks. */
  async *#gitFiles(directory: string, prefix: string): AsyncGenerator<ScannedFile> {
    yield* this.#directory(directory, `${prefix}${basename(directory)}/`, ownObjects);
  }

  async *#file(
    directory: string,
    name: Buffer,
    prefix: string,
    place: Repository | null = null,
  ): AsyncGenerator<ScannedFile> {
    const path = `${prefix}${shown(name)}`;
    const file = Buffer.concat([Buffer.from(`${directory}${sep}`), name]);
    try {
      const found = await lstat(file);
      if (found.isSymbolicLink()) await this.#link(file, path);
      if (found.isFile()) yield* this.#content(file, path, found, place);
    } catch (error) {
      const code = systemCode(error);
      if (code === undefined) throw error;
      const isGone = code === "ENOENT" || code === "ENOTDIR"; // but still in git's index
      if (!isGone) this.#list.skip(path, `it cannot be read (${code})`);
    }
  }

  async *#content(file: Buffer, path: string, { size }: Stats, place: Repository | null): AsyncGenerator<ScannedFile> {
    if (size > mostBytes) return this.#list.skip(path, reasons.large);
    yield* withStored({ name: path, origin: null, bytes: await readFile(file), place }, this.#list);
  }

  /** A link is not followed: what it names in the directory is searched as itself. */
  async #link(file: Buffer, path: string): Promise<void> {
    const target = await realpath(file).catch(() => null);
    if (target === null) return;
    const root = await realpath(this.#root);
    if (target !== root && !target.startsWith(`${root}${sep}`)) this.#list.leaveOut(path, "link");
  }

  async #nameOtherTrees(place: GitPlace): Promise<void> {
    const { stdout, status } = await git(place, ["worktree", "list", "--porcelain"]);
    if (status !== 0) return;
    const top = resolve(place.directory);
    for (const [, path = ""] of stdout.toString().matchAll(/^worktree (.*)\n(?!bare)/gm)) {
      const isHere = `${top}${sep}`.startsWith(`${path}${sep}`) || path.startsWith(`${this.#root}${sep}`);
      if (!isHere) this.#list.leaveOut(path, "worktree");
    }
  }
}

const slash = 0x2f;
const noNames: ReadonlySet<string> = new Set();

/** Directories in git's own that `historyFiles` and `#nested` search. */
const ownObjects: ReadonlySet<string> = new Set(["objects", "lfs", "modules", "worktrees"]);

/** Returns the entries of git's index. `tag`: S for an entry that is not to be in the work tree. */
async function indexEntries(place: GitPlace) {
  return itemsIn(await mustRun(place, ["ls-files", "-z", "-t", "--stage"])).map((item) => {
    const tab = item.indexOf(0x09);
    const [tag, mode, id = ""] = item.toString("latin1", 0, tab).split(" ");
    return { name: item.subarray(tab + 1), tag, mode, id };
  });
}

/** Whether the directory itself is a work tree's or a bare repository. */
async function isRepository(directory: string): Promise<boolean> {
  const has = async (name: string) => (await lstat(join(directory, name)).catch(() => null)) !== null;
  if (await has(".git")) return true;
  return (await has("HEAD")) && (await has("objects")) && (await has("refs"));
}

/** Yields what the next commit would change, as it is staged. */
async function* stagedFiles(place: Repository, list: UnsearchedList): AsyncGenerator<ScannedFile> {
  const flags = ["--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--diff-filter=ACMT", "--relative"];
  const fields = itemsIn(await mustRun(place, ["diff", ...flags]));
  const objects = fields.flatMap((name, i) => {
    const [, mode, , id] = fields[i - 1]?.toString("latin1").split(" ") ?? []; // :mode mode id id status, then the name
    const isFile = i % 2 === 1 && id !== undefined && mode !== "160000"; // else a submodule's commit
    return isFile ? [{ name: shown(name), id, origin: null }] : [];
  });
  yield* readObjects(place, objects, list);
}
