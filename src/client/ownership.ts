/**
 * Rules for what another user could own, change or replace. The server, the commands and the client judge by them the homes
 * and the files on which a secret or a decision depends:
 *
 * - A home, and all in it, belongs to the user; others have no access to it, except to read the certificate.
 * - A home may be a link; nothing in it may.
 * - Each directory and each link on the way to it belongs to the user or to root, and no other user can write to the
 *   directory, unless it is sticky, as /tmp is. Otherwise another user could put a directory of theirs in its place.
 */
import { lstat, readFile, readlink } from "node:fs/promises";
import { join, resolve } from "node:path";

/** Permissions that other users must not have. */
export const anyAccess = 0o077;
export const writing = 0o022;

/** The id of this process's user; null on Windows, which has neither modes nor numeric owners. */
export const ownUid: number | null = process.getuid?.() ?? null;

type Owned = { readonly uid: number | bigint; readonly mode: number | bigint };

/** Whether a file belongs to the user and gives others none of the forbidden permissions. */
export function isPrivate({ uid, mode }: Owned, forbidden: number): boolean {
  return ownUid === null || (Number(uid) === ownUid && (Number(mode) & forbidden) === 0);
}

const sticky = 0o1000;

/** Whether what this user makes in a directory keeps its name: no other user can rename or remove it. */
export function keepsNames({ uid, mode }: { readonly uid: number; readonly mode: number }): boolean {
  const isTheirs = uid !== ownUid && uid !== 0;
  return ownUid === null || (!isTheirs && ((mode & writing) === 0 || (mode & sticky) !== 0));
}

/** A directory or link on the way to a path, by which another user can replace what is there. */
export type WeakPlace = {
  readonly path: string;
  readonly why: "foreign" | "writable";
  /** Names that follow on the way; undefined for a link. */
  readonly rest?: readonly string[];
};

/**
 * Returns the first weak place on the way to a path; null when there is none, or the way ends before the path does. The
 * file at the path is not judged, but a link there is.
 */
export async function findWeakPlace(path: string): Promise<WeakPlace | null> {
  if (ownUid === null) return null;
  const trust = { user: ownUid, trusted: [ownUid, await uidOfRoot()] };
  return walk("/", pathSegments(resolve(path)), trust, mostLinks);
}

const mostLinks = 40;

type Trust = { readonly user: number; readonly trusted: readonly number[] };

/** `links`: how many may still be followed. */
async function walk(at: string, parts: readonly string[], trust: Trust, links: number): Promise<WeakPlace | null> {
  const [part, ...rest] = parts;
  if (part === undefined) return null;
  const weak = await judgeDirectory(at, trust);
  if (weak !== null) return { ...weak, rest: parts };
  const next = join(at, part);
  const found = await lstat(next).catch(() => null);
  if (found === null) return null; // the use of the path then says what is wrong with it
  if (!found.isSymbolicLink()) return walk(next, rest, trust, links);
  if (!trust.trusted.includes(found.uid) || links === 0) return { path: next, why: "foreign" };
  const target = await readlink(next);
  return walk(target.startsWith("/") ? "/" : at, [...pathSegments(target), ...rest], trust, links - 1);
}

function pathSegments(path: string): string[] {
  return path.split("/").filter((part) => part !== "");
}

/** Says why others can replace what is at a path, and what to do. */
export function weakPlaceText(path: string, { path: weak, why }: WeakPlace): string {
  const owner = `${weak} belongs to another user: choose another place`;
  const mode = `other users can write to ${weak}: choose another place, or run  chmod go-w ${quoted(weak)}`;
  return `other users can replace ${path}, because ${why === "foreign" ? owner : mode}`;
}

const groupWriting = 0o020;
const worldWriting = 0o002;

async function judgeDirectory(path: string, { user, trusted }: Trust): Promise<WeakPlace | null> {
  const { uid, gid, mode } = await lstat(path);
  if (!trusted.includes(uid)) return { path, why: "foreign" };
  if ((mode & writing) === 0 || (mode & sticky) !== 0) return null;
  const isOpen = (mode & worldWriting) !== 0 || ((mode & groupWriting) !== 0 && !(await isPrivateGroup(gid, user)));
  return isOpen ? { path, why: "writable" } : null;
}

/**
 * Whether a group has no members but the user and root: many systems give each user such a group, and make directories writable
 * for it. A group that is in none of this machine's files must be this process's own, as the groups of volumes in containers.
 */
async function isPrivateGroup(gid: number, user: number): Promise<boolean> {
  const [users, groups] = await Promise.all([readRows("/etc/passwd"), readRows("/etc/group")]);
  const names = users.filter(([, , uid]) => [0, user].includes(Number(uid))).map(([name]) => name);
  const members = [
    ...users.filter(([, , , primary]) => Number(primary) === gid).map(([name]) => name),
    ...groups.filter(([, , id]) => Number(id) === gid).flatMap(([, , , list = ""]) => list.split(",").filter(Boolean)),
  ];
  const isKnown = groups.some(([, , id]) => Number(id) === gid) || process.getgroups?.().includes(gid) === true;
  return isKnown && members.every((name) => names.includes(name));
}

/** Rows of a file in the form of passwd(5) and group(5). */
async function readRows(file: string): Promise<string[][]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").map((line) => line.split(":"));
}

/** The owner of root's files: in a user namespace that has no root, the id that stands for all users without one. */
async function uidOfRoot(): Promise<number> {
  const map = await readFile("/proc/self/uid_map", "latin1").catch(() => "0");
  if (/^\s*0\s/m.test(`${map} `)) return 0;
  return Number(await readFile("/proc/sys/kernel/overflowuid", "latin1").catch(() => "65534"));
}

export function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
