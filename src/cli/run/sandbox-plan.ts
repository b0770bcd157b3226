/**
 * Mounts of the sandbox, and the paths under them. The whole file system is read-only but for some directories; a
 * hidden path is covered so that neither the program nor anything outside brings it back:
 *
 *   - The directory that a hidden path is in becomes a frame: an empty directory into which all its other entries are bound.
 *     Whatever comes to stand at the hidden name later is outside of the frame.
 *   - In a writable directory, each directory above a hidden path is a mount point, which cannot be renamed or removed.
 *   - Directly in a writable directory nothing can be framed: what is there is covered itself, and made if it is missing.
 */
import { lstatSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import type { Hidden } from "./hidden-paths.js";
import {
  fileIdentity,
  type Identity,
  isWithin,
  type MountPoint,
  otherNames,
  readMounts,
  type Step,
  type Walk,
  walk,
} from "./path-walk.js";

/** `own`: an empty directory that the program can write; `empty`: a read-only empty directory; `blank`: for a file. */
type MountKind = "writable" | "readOnly" | "own" | "frame" | "empty" | "blank";

type Entry =
  | { readonly name: string; readonly kind: "bound"; readonly identity: Identity }
  | { readonly name: string; readonly kind: "link"; readonly target: string };

export type Mount = {
  readonly path: string;
  readonly kind: MountKind;
  /** Entries of a frame; `isWritable`: they are bound so. */
  readonly entries?: readonly Entry[];
  readonly isWritable?: boolean;
};

/** Conditions that must hold before the program starts. */
export type Expected = {
  /** Files as seen from outside: a moved file may no longer be under its cover. Null: it is missing. */
  readonly unchanged: readonly (readonly [path: string, identity: Identity | null])[];
  /** Inside, these directories are the host's. */
  readonly same: readonly (readonly [path: string, identity: Identity])[];
  readonly mounted: readonly string[];
  /** Inside, no entry of these directories is one of the hidden files. */
  readonly frames: readonly string[];
  /** Entries bound into them, unless gone: a link in an entry's place would show its target without any cover. */
  readonly entries: readonly (readonly [path: string, identity: Identity])[];
  /** Directories above what is hidden: no entry of another name is one of them. */
  readonly above: readonly (readonly [path: string, identity: Identity])[];
  readonly hidden: readonly Identity[];
  /** Paths that were covered themselves: replacing one outside uncovers it. */
  readonly exposed: readonly string[];
};

type Plan = { readonly mounts: readonly Mount[]; readonly expected: Expected };

type PlanRequest = {
  /** Directories without links in their paths. */
  readonly writable: readonly string[];
  /** Directories that the program has to itself: the content of the host's is not seen. */
  readonly own: readonly string[];
  readonly hidden: readonly Hidden[];
  /** The installed program. */
  readonly program: readonly string[];
};

/** Limit of a frame's entries: in a larger directory, which needs too many mounts, a hidden path is covered itself. */
const mostEntries = 1000;

/** @throws CommandFailure usage, where something could not stay hidden */
export function planSandbox(request: PlanRequest): Plan {
  const planner = new Planner(request);
  const mounts = readMounts();
  const everyName = (path: string) => [path, ...otherPaths(path, mounts)];
  for (const path of request.program.flatMap(everyName)) planner.protect(path);
  const hidden = request.hidden.flatMap((each) => everyName(each.path).map((path) => ({ ...each, path })));
  for (const each of hidden) planner.makeMissing(each);
  for (const each of hidden) planner.hide(each);
  return planner.plan();
}

/** Returns the other paths under which bind mounts show what a path leads to, and the links on the way to it. */
function otherPaths(path: string, mounts: readonly MountPoint[]): string[] {
  const { steps, end } = walk(path);
  const places = [...steps.filter(({ kind }) => kind === "link").map((link) => link.path), end];
  return places.flatMap((place) => otherNames(place, mounts).filter((name) => isSame(walk(name), walk(place))));
}

/** Whether two paths lead to the same file, or to the same missing name of a directory. */
function isSame(one: Walk, other: Walk): boolean {
  const [last, otherLast] = [one, other].map(({ steps }) => steps.at(-1));
  if (one.end === other.end || last?.identity !== otherLast?.identity) return false;
  return last?.identity !== null || one.steps.at(-2)?.identity === other.steps.at(-2)?.identity;
}

type Target = { readonly walk: Walk; readonly hidden: Hidden };

class Planner {
  readonly #mounts = new Map<string, MountKind>();
  readonly #writable: readonly string[];
  readonly #own: readonly string[];
  readonly #program: string[] = [];
  readonly #targets: Target[] = [];

  constructor({ writable, own }: PlanRequest) {
    this.#writable = writable;
    this.#own = own;
    for (const path of own) this.#mounts.set(path, "own");
    for (const path of writable) this.#mounts.set(path, "writable");
  }

  /** The program that the user starts next time must be the same. */
  protect(path: string): void {
    const found = walk(path);
    if (found.steps.at(-1)?.kind === "missing") return;
    this.#refuseWithin(found.end, "has the installed program");
    this.#program.push(found.end);
    this.#fixDirectories(found, path);
    if (this.#mountRegion(found.end) !== "readOnly") this.#mounts.set(found.end, "readOnly");
  }

  hide(hidden: Hidden): void {
    const found = walk(hidden.path);
    const last = found.steps.at(-1);
    this.#targets.push({ walk: found, hidden });
    if (hidden.isKept && last?.kind === "file" && last.links > 1) throw hardLink(hidden.path);
    this.#cover(found, hidden);
  }

  /** Makes what is missing where the program could make it. */
  makeMissing({ path, kind, isKept }: Hidden): void {
    const { steps, end } = walk(path);
    const last = steps.at(-1);
    if (last?.kind !== "missing" || !isKept || this.#mountRegion(dirname(last.path)) !== "writable") return;
    mkdirSync(dirname(end), { recursive: true, mode: 0o700 });
    if (kind === "directory") mkdirSync(end, { recursive: true, mode: 0o700 });
    else writeFileSync(end, "", { flag: "a", mode: 0o600 });
  }

  #cover(found: Walk, { path, isKept }: Hidden): void {
    this.#refuseWithin(found.end, `is or lies below ${printable(path)}, which is hidden`);
    if (isKept) this.#fixDirectories(found, path);
    const last = found.steps.at(-1);
    const directory = dirname(last?.path ?? "/");
    const isOwn = this.#own.includes(found.end) || this.#mountRegion(directory) === "own";
    if (isOwn || this.#isCovered(found.end)) return;
    if (isKept && this.#canFrame(directory)) this.#mounts.set(directory, "frame");
    if (last !== undefined && last.kind !== "missing") {
      this.#mounts.set(found.end, last.kind === "directory" ? "empty" : "blank");
    }
  }

  /** In a writable directory a link can be replaced, and a directory renamed unless it is a mount point. */
  #fixDirectories({ steps, end }: Walk, path: string): void {
    for (const step of steps) {
      if (this.#mountRegion(dirname(step.path)) !== "writable") continue;
      if (step.kind === "link") throw replaceable(step.path, path);
      if (step.kind === "directory" && step.path !== end && !this.#mounts.has(step.path)) {
        this.#mounts.set(step.path, "writable");
      }
    }
  }

  #refuseWithin(path: string, problem: string): void {
    const found = this.#writable.find((directory) => isWithin(directory, path));
    if (found === undefined) return;
    throw new CommandFailure("usage", `${printable(found)} ${problem}: choose another working directory or --write`);
  }

  #canFrame(directory: string): boolean {
    if (directory === "/" || this.#writable.includes(directory)) return false;
    try {
      return readdirSync(directory).length <= mostEntries;
    } catch {
      return false;
    }
  }

  #isCovered(path: string): boolean {
    const above = [...this.#mounts].filter(([other]) => other !== path && isWithin(path, other));
    return above.some(([, kind]) => kind === "empty");
  }

  /** Returns what the program can do with entries of a directory. */
  #mountRegion(directory: string): "own" | "writable" | "readOnly" {
    const regions = [...this.#writable, ...this.#own].filter((path) => isWithin(directory, path));
    const nearest = regions.reduce((one, other) => (other.length > one.length ? other : one), "");
    if (nearest === "") return "readOnly";
    return this.#writable.includes(nearest) ? "writable" : "own";
  }

  plan(): Plan {
    const paths = [...this.#mounts.keys()].sort((a, b) => (a < b ? -1 : 1)); // a directory before what is in it
    const mounts = paths.filter((path) => !this.#isCovered(path)).map((path) => this.#mountAt(path));
    return { mounts, expected: this.#expected(mounts) };
  }

  #mountAt(path: string): Mount {
    const kind = this.#mounts.get(path) ?? "empty";
    if (kind !== "frame") return { path, kind };
    const isProgram = this.#program.some((directory) => isWithin(path, directory));
    const names = readdirSync(path).filter((name) => !this.#mounts.has(join(path, name)));
    const entries = names.flatMap((name) => readEntry(path, name) ?? []);
    return { path, kind, entries, isWritable: this.#mountRegion(path) === "writable" && !isProgram };
  }

  #expected(mounts: readonly Mount[]): Expected {
    const kept = this.#targets.filter(({ hidden }) => hidden.isKept);
    const steps = kept.flatMap(({ walk: { steps } }) => steps);
    const writable = this.#writable.flatMap((path) => walk(path).steps.slice(-1));
    const frames = mounts.filter(({ kind }) => kind === "frame").map(({ path }) => path);
    return {
      unchanged: unique(steps.map(({ path, identity }) => [path, identity] as const)),
      same: unique([...steps, ...writable].flatMap((step) => this.#sameInside(step, frames))),
      mounted: mounts.map(({ path }) => path),
      frames,
      entries: mounts.flatMap(boundEntries),
      above: unique(steps.flatMap(directoryStep)),
      exposed: kept.map(({ walk: { end } }) => end).filter((path) => this.#isExposed(path)),
      hidden: this.#targets.flatMap(({ walk: { steps } }) => steps.at(-1)?.identity ?? []),
    };
  }

  #isExposed(path: string): boolean {
    const kind = this.#mounts.get(path);
    return (
      (kind === "empty" || kind === "blank") && this.#mounts.get(dirname(path)) !== "frame" && !this.#isCovered(path)
    );
  }

  #sameInside({ path, kind, identity }: Step, frames: readonly string[]): (readonly [string, Identity])[] {
    const mount = this.#mounts.get(path);
    const isReplaced = frames.includes(path) || (mount !== undefined && mount !== "writable" && mount !== "readOnly");
    const isHidden = isReplaced || this.#isCovered(path) || this.#mountRegion(path) === "own";
    return kind !== "directory" || identity === null || isHidden ? [] : [[path, identity]];
  }
}

/** Returns null for what cannot be bound, and for what another program has just removed or replaced. */
function readEntry(directory: string, name: string): Entry | null {
  const path = join(directory, name);
  try {
    const found = lstatSync(path);
    if (found.isSymbolicLink()) return { name, kind: "link", target: readlinkSync(path) };
    return found.isDirectory() || found.isFile() ? { name, kind: "bound", identity: fileIdentity(found) } : null;
  } catch {
    return null;
  }
}

function boundEntries({ path, entries = [] }: Mount): (readonly [string, Identity])[] {
  return entries.flatMap((entry) =>
    entry.kind === "bound" ? [[join(path, entry.name), entry.identity] as const] : [],
  );
}

function directoryStep({ path, kind, identity }: Step): (readonly [string, Identity])[] {
  return kind === "directory" && identity !== null ? [[path, identity]] : [];
}

function unique<V>(rows: readonly (readonly [string, V])[]): (readonly [string, V])[] {
  return [...new Map(rows)];
}

function hardLink(path: string): CommandFailure {
  return new CommandFailure(
    "usage",
    `${printable(path)} has another name (a hard link), under which it could not be hidden: make it a file of its own`,
  );
}

function replaceable(link: string, path: string): CommandFailure {
  const problem = `${printable(link)} is a link on the way to ${printable(path)}, and the program could replace it`;
  return new CommandFailure("usage", `${problem}: choose another working directory or --write`);
}
