/** Everything in the object store of a git repository: each version of each file, and the texts of commits and tags. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type GitPlace, git, mustRun, type Repository } from "./git.js";
import { mostBytes, type ScannedFile } from "./scanned-file.js";
import { reasons, type UnsearchedList } from "./unsearched.js";

type GitObject = { readonly name: string; readonly id: string; readonly origin: string | null };
export type Objects = GitObject[];

/**
 * Yields all objects once, also objects that no branch, tag or log names any more.
 * @param prefix the repository's directory within the searched directory
 */
export async function* historyFiles(
  place: Repository,
  prefix: string,
  list: UnsearchedList,
): AsyncGenerator<ScannedFile> {
  const isShallow = await mustRun(place, ["rev-parse", "--is-shallow-repository"]);
  if (isShallow.toString().trim() === "true") list.skip(`${prefix}history`, reasons.shallow);
  const names = await reachableNames(place, prefix, list);
  const listed = await mustRun(place, [
    "cat-file",
    "--batch-all-objects",
    "--unordered",
    `--batch-check=${headFormat}`,
  ]);
  const objects = linesIn(listed).flatMap((line): GitObject[] => {
    const [type = "", id = ""] = line.split(" ");
    if (type === "tree") return [];
    const name = type === "blob" ? (names.get(id) ?? `object ${id}`) : `${prefix}text of a ${type}`;
    return [{ name, id, origin: id }];
  });
  yield* readObjects(place, objects, list);
}

/** Returns the names of the reachable objects, and lists the missing objects. */
async function reachableNames(
  place: GitPlace,
  prefix: string,
  list: UnsearchedList,
): Promise<ReadonlyMap<string, string>> {
  const flags = ["--objects", "--missing=print", "--all", "--reflog", "--indexed-objects"];
  const names = new Map<string, string>();
  for (const line of linesIn(await mustRun(place, ["rev-list", ...flags]))) {
    if (line.startsWith("?")) list.skip(`object ${line.slice(1)}`, reasons.missing);
    const space = line.indexOf(" ");
    if (space > 0 && space < line.length - 1) names.set(line.slice(0, space), `${prefix}${line.slice(space + 1)}`);
  }
  return names;
}

function linesIn(listed: Buffer): string[] {
  return listed.toString("utf8").split("\n").filter(Boolean);
}

const headFormat = "%(objecttype) %(objectname) %(objectsize)";

/** Limit of objects' bytes in memory at a time, unless an object is larger. */
const bytesAtOnce = 32 * 2 ** 20;

/** Yields the contents of objects, and of what they stand for in Git LFS. */
export async function* readObjects(
  place: Repository,
  objects: readonly GitObject[],
  list: UnsearchedList,
): AsyncGenerator<ScannedFile> {
  let some: GitObject[] = [];
  let bytes = 0;
  for (const { size, ...object } of await objectSizes(place, objects, list)) {
    if (bytes + size > bytesAtOnce && some.length > 0) {
      yield* objectContents(place, some, list);
      [some, bytes] = [[], 0];
    }
    some.push(object);
    bytes += size;
  }
  yield* objectContents(place, some, list);
}

async function objectSizes(place: GitPlace, objects: readonly GitObject[], list: UnsearchedList) {
  if (objects.length === 0) return [];
  const heads = linesIn(await mustRun(place, ["cat-file", `--batch-check=${headFormat}`], idLines(objects)));
  return objects.flatMap((object, i) => {
    const [type, , size] = heads[i]?.split(" ") ?? [];
    if (size === undefined) list.skip(object.name, reasons.missing); // "<id> missing"
    if (size === undefined || type === "tree") return [];
    if (Number(size) <= mostBytes) return [{ ...object, size: Number(size) }];
    list.skip(object.name, reasons.large);
    return [];
  });
}

function idLines(objects: readonly GitObject[]): string {
  return objects.map(({ id }) => `${id}\n`).join("");
}

async function* objectContents(
  place: Repository,
  objects: readonly GitObject[],
  list: UnsearchedList,
): AsyncGenerator<ScannedFile> {
  if (objects.length === 0) return;
  const contents = await mustRun(place, ["cat-file", "--batch=%(objectsize)"], idLines(objects));
  let at = 0;
  for (const { name, origin } of objects) {
    const start = contents.indexOf(0x0a, at) + 1;
    const end = start + Number(contents.toString("latin1", at, start - 1));
    yield* withStored({ name, origin, bytes: contents.subarray(start, end), place }, list);
    at = end + 1;
  }
}

/** Pointers are small files in the place of large ones. */
const longestPointer = 1_024;
const lfsPointer =
  /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:[a-z0-9.-]+ .*\n)*oid sha256:([0-9a-f]{64})\n/;
const annexPointer = /^(?:\.\.\/)*(?:\.git|\/)\/?annex\/objects\//;

/** Yields a file, and for a pointer of Git LFS the content that it stands for, or names what is not here. */
export async function* withStored(file: ScannedFile, list: UnsearchedList): AsyncGenerator<ScannedFile> {
  yield file;
  const { name, place, bytes } = file;
  if (bytes.length > longestPointer) return;
  const text = bytes.toString("latin1");
  const [, id] = lfsPointer.exec(text) ?? [];
  if (annexPointer.test(text)) list.skip(name, reasons.annex);
  if (id === undefined) return;
  const stored = place === null ? reasons.lfs : await lfsContent(place, id);
  if (typeof stored === "string") list.skip(name, stored);
  else yield { ...file, bytes: stored };
}

/** Returns the content, or the reason why it cannot be searched. */
async function lfsContent({ common }: Repository, id: string): Promise<Buffer | string> {
  const file = join(common, "lfs", "objects", id.slice(0, 2), id.slice(2, 4), id);
  const found = await stat(file).catch(() => null);
  if (found !== null && found.size > mostBytes) return reasons.large;
  return readFile(file).catch(() => reasons.lfs);
}

/** Returns the oldest commit with this object, shortened; null when there is none. */
export async function commitWith(place: GitPlace, object: string): Promise<string | null> {
  const type = (await mustRun(place, ["cat-file", "-t", object])).toString().trim();
  if (type !== "blob") return null;
  const { stdout } = await git(place, ["log", "--all", "--reflog", "--format=%h", `--find-object=${object}`]);
  return stdout.toString().trim().split("\n").at(-1) || null;
}
