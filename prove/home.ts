/**
 * The home that is proven, and the rules by which it is believed. They are the server's own, written once more: the home and
 * all in it belongs to one user, others have no access, nothing in it is a link, and only that user and root can replace a
 * directory or a link on the way to it. What root does in another user's home, it does as that user: nothing that is put
 * there while it looks can lead root elsewhere.
 */
import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { CouldNotLook } from "./report.js";

/** Permissions that others must not have. */
const access = 0o077;
const write = 0o022;

/** A home that could be another user's trap. */
export class UntrustedHome extends CouldNotLook {
  /** Place in the home, or on the way to it, that others can use; null when something else is wrong. */
  readonly shared: string | null;

  constructor(problem: string, shared: string | null = null) {
    super(problem);
    this.shared = shared;
  }
}

/** linux/fcntl.h, O_PATH: opens a name and nothing behind it. */
const nameOnly = 0o10000000;

export class Home {
  readonly path: string;
  readonly owner: number;
  readonly #group: number;

  private constructor(path: string, { uid, gid }: Stats) {
    this.path = path;
    this.owner = uid;
    this.#group = gid;
  }

  /** Returns null when there is none. @throws UntrustedHome */
  static open(path: string): Home | null {
    const found = missingAsNull(() => statSync(path)); // the home itself may be a link
    if (found === null) return null;
    const home = new Home(realpathSync(path), found);
    const self = process.getuid?.() ?? 0;
    if (self !== 0 && found.uid !== self) throw new UntrustedHome(`${path} belongs to another user`);
    home.#mustBePrivate("", found, found.isDirectory(), access);
    const weak = weakStep(resolve(path), found.uid);
    if (weak !== null) throw new UntrustedHome(`other users can replace ${path}, because of ${weak}`, weak);
    for (const name of ["tls", "vault"]) {
      const directory = missingAsNull(() => lstatSync(join(home.path, name)));
      if (directory !== null) home.#mustBePrivate(name, directory, directory.isDirectory(), access);
    }
    return home;
  }

  /** Returns null when there is no such file. @throws UntrustedHome */
  read(name: string, forbidden = access): Buffer | null {
    const file = this.openFile(join(this.path, name));
    if (file === null) return null;
    try {
      this.#mustBePrivate(name, fstatSync(file), true, forbidden);
      return readWhole(file, name);
    } finally {
      closeSync(file);
    }
  }

  certificate(): Buffer | null {
    return this.read("tls/cert.pem", write);
  }

  /** Returns null when there is no such file. @throws UntrustedHome */
  openFile(path: string): number | null {
    try {
      return this.asOwner(() => missingAsNull(() => openPlain(path, constants.O_NOFOLLOW)));
    } catch (error) {
      if (systemErrorCode(error) === "ELOOP") throw new UntrustedHome(`${path} is a link`);
      throw error instanceof NotPlain ? new UntrustedHome(`${path} is not what a server puts there`) : error;
    }
  }

  /** Returns the entries of a directory; none when it is missing. */
  entries(name: string): Dirent[] {
    const path = join(this.path, name);
    return this.asOwner(() => missingAsNull(() => readdirSync(path, { withFileTypes: true }))) ?? [];
  }

  /**
   * Returns a name of the owner's socket by which it stays the same one, whatever becomes of its path; null when others could
   * use or replace the socket.
   */
  socket(path: string): string | null {
    const directory = missingAsNull(() => statSync(dirname(path)));
    if (directory === null || !this.#isPrivate(directory, write) || weakStep(path, this.owner) !== null) return null;
    const file = missingAsNull(() => openSync(path, nameOnly | constants.O_NOFOLLOW));
    if (file === null) return null;
    const found = fstatSync(file);
    if (found.isSocket() && this.#isPrivate(found, access)) return `/proc/self/fd/${file}`; // open until the run ends
    closeSync(file);
    return null;
  }

  /** Runs `work`, which must be done when it returns, with the rights of the home's owner. */
  asOwner<T>(work: () => T): T {
    if (process.getuid?.() !== 0 || this.owner === 0) return work();
    const [group, groups] = [process.getegid?.() ?? 0, process.getgroups?.() ?? []];
    try {
      process.setgroups?.([]);
      process.setegid?.(this.#group);
      process.seteuid?.(this.owner);
      return work();
    } finally {
      process.seteuid?.(0);
      process.setegid?.(group);
      process.setgroups?.(groups);
    }
  }

  #isPrivate({ uid, mode }: Stats, forbidden: number): boolean {
    return uid === this.owner && (mode & forbidden) === 0;
  }

  #mustBePrivate(name: string, found: Stats, isRightKind: boolean, forbidden: number): void {
    const path = join(this.path, name);
    if (!isRightKind) throw new UntrustedHome(`${path} is not what a server puts there`);
    if (found.uid !== this.owner) throw new UntrustedHome(`${path} belongs to another user than the home`);
    if ((found.mode & forbidden) !== 0) throw new UntrustedHome(`other users can access ${path}`, path);
  }
}

class NotPlain extends CouldNotLook {}

/** Opens a plain file for reading. A pipe in its place does not delay it. @throws CouldNotLook */
export function openPlain(path: string, flags = 0): number {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new NotPlain(`${path} is not a plain file`);
}

const mostBytes = 512 * 2 ** 20;

/** Reads a plain file that need not be in the home. @throws CouldNotLook */
export function readPlain(path: string, most = mostBytes): Buffer {
  const file = openPlain(path);
  try {
    return readWhole(file, path, most);
  } finally {
    closeSync(file);
  }
}

function readWhole(file: number, name: string, most = mostBytes): Buffer {
  if (fstatSync(file).size > most) throw new CouldNotLook(`${name} is too large for a file of its kind`);
  return readFileSync(file);
}

export function missingAsNull<T>(attempt: () => T): T | null {
  try {
    return attempt();
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemErrorCode(error))) return null;
    throw error;
  }
}

function systemErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Returns the first directory or link on the way to a path by which others than its owner and root can replace it. */
function weakStep(path: string, owner: number): string | null {
  const trusted = [owner, idOfRoot()];
  for (const step of wayTo(path)) {
    const found = missingAsNull(() => lstatSync(step));
    if (found === null) return null;
    if (!trusted.includes(found.uid) || (found.isDirectory() && isOpen(found, owner))) return step;
  }
  return null;
}

/** Yields the directories and links on the way to a path, as the system follows it. */
function* wayTo(path: string, links = 40): Generator<string> {
  const steps = path.split("/").filter((step) => step !== "");
  let at = "/";
  for (const [i, step] of steps.entries()) {
    yield at;
    const next = join(at, step);
    const isLink = missingAsNull(() => lstatSync(next))?.isSymbolicLink() === true;
    if (isLink && links > 0) {
      yield next;
      const target = readlinkSync(next);
      const start = target.startsWith("/") ? "" : at;
      return yield* wayTo([start, target, ...steps.slice(i + 1)].join("/"), links - 1);
    }
    at = next;
  }
}

const sticky = 0o1000;

/** Whether others can rename what is in a directory. */
function isOpen({ mode, gid }: Stats, owner: number): boolean {
  if ((mode & write) === 0 || (mode & sticky) !== 0) return false;
  return (mode & 0o002) !== 0 || !isAlone(gid, owner);
}

/** Whether a group has no members but the owner and root. An unlisted group must be this process's own. */
function isAlone(gid: number, owner: number): boolean {
  const users = rows("/etc/passwd");
  const group = rows("/etc/group").filter(([, , id]) => id === String(gid));
  const names = new Set(group.flatMap(([, , , members = ""]) => members.split(",")).filter((name) => name !== ""));
  const others = users.filter(([name = "", , uid, primary]) => {
    return (names.delete(name) || primary === String(gid)) && uid !== "0" && uid !== String(owner);
  });
  return others.length === 0 && names.size === 0 && (group.length > 0 || process.getgroups?.().includes(gid) === true);
}

function rows(file: string): string[][] {
  const text = missingAsNull(() => readFileSync(file, "utf8")) ?? "";
  return text.split("\n").map((line) => line.split(":"));
}

/** In a user namespace without root, its files have the id of all users that are not in the namespace. */
function idOfRoot(): number {
  const map = missingAsNull(() => readFileSync("/proc/self/uid_map", "latin1"));
  if (map === null || /^ *0 /m.test(map)) return 0;
  return Number(readFileSync("/proc/sys/kernel/overflowuid", "latin1"));
}
