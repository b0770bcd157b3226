/** Names on the way to a file: each directory and link that is passed, and which of the host's files they are. */
import { lstatSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";

/** Device and inode. */
export type Identity = string;

export type Step = {
  /** Its directory has no link in its path. */
  readonly path: string;
  readonly kind: "directory" | "link" | "file" | "missing";
  /** Null where it is missing. */
  readonly identity: Identity | null;
  readonly links: number;
};

/** `steps`: from below `/` to the end, which is the last; a missing directory ends the walk, and `end` is below it. */
export type Walk = { readonly steps: readonly Step[]; readonly end: string };

export function fileIdentity({ dev, ino }: Pick<Stats, "dev" | "ino">): Identity {
  return `${dev}:${ino}`;
}

/** Linux's limit of links in a path (path_resolution(7)). */
const mostLinks = 40;

/** Follows an absolute path, links included. @throws CommandFailure usage, for links in a circle */
export function walk(path: string): Walk {
  const steps: Step[] = [];
  const pending = namesIn(path);
  let at = "/";
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    if (name === "..") {
      at = dirname(at);
      continue;
    }
    const step = stepTo(join(at, name));
    steps.push(step);
    if (step.kind === "missing") return { steps, end: join(step.path, ...pending) };
    const target = step.kind === "link" ? mustRead(step.path, steps) : "";
    pending.unshift(...namesIn(target));
    if (target.startsWith("/")) at = "/";
    if (step.kind !== "link") at = step.path;
  }
  return { steps, end: at };
}

/** @throws CommandFailure usage */
function mustRead(link: string, steps: readonly Step[]): string {
  if (steps.filter(({ kind }) => kind === "link").length <= mostLinks) return readlinkSync(link);
  throw new CommandFailure("usage", `${printable(link)} leads through links in a circle`);
}

function namesIn(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

/** A directory that this user may not search is like a missing one: nothing in it can be reached. */
function stepTo(path: string): Step {
  try {
    const found = lstatSync(path);
    const kind = found.isDirectory() ? "directory" : found.isSymbolicLink() ? "link" : "file";
    return { path, kind, identity: fileIdentity(found), links: found.nlink };
  } catch {
    return { path, kind: "missing", identity: null, links: 0 };
  }
}

export type MountPoint = { readonly device: string; readonly root: string; readonly path: string };

/** Returns the mounts of this process, see proc_pid_mountinfo(5). */
export function readMounts(): readonly MountPoint[] {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [, , device = "", root = "", path = ""] = line.split(" ").map(unescaped);
    return { device, root, path };
  });
}

/** The kernel writes blanks and backslashes in octal. */
function unescaped(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/**
 * Returns the other paths of a file: bind mounts show it, a directory above it, or something in it, in a second place.
 * @param path without links
 */
export function otherNames(path: string, mounts: readonly MountPoint[]): string[] {
  const own = mounts.filter((mount) => isWithin(path, mount.path)).reduce(deeper, { device: "", root: "/", path: "/" });
  const inside = join(own.root, path.slice(own.path === "/" ? 0 : own.path.length));
  return mounts
    .filter((mount) => mount.device === own.device && mount.path !== own.path)
    .flatMap((mount) => {
      if (isWithin(inside, mount.root))
        return [join(mount.path, inside.slice(mount.root === "/" ? 0 : mount.root.length))];
      return isWithin(mount.root, inside) && !isWithin(mount.path, path) ? [mount.path] : [];
    });
}

/** A later mount in the same place covers an earlier one. */
function deeper(one: MountPoint, other: MountPoint): MountPoint {
  return other.path.length >= one.path.length ? other : one;
}

/** Whether a path is a directory's, or one below it; both absolute and without links. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}
