/**
 * Entries of an import that would have the same path: an error, renamed with a suffix, or left out. Items are renamed unless
 * the user says otherwise, since programs allow any number of one title; names that are paths themselves are not.
 */
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import type { ImportEntry } from "./entry.js";

export const duplicateActions = ["error", "suffix", "skip"] as const;
export type DuplicateAction = (typeof duplicateActions)[number];

type Resolved = { readonly entries: readonly ImportEntry[]; readonly leftOut: readonly string[] };

/** Entries of one item of the source, which keep together: a user name stays with its password. */
type Group = readonly ImportEntry[];

/** Returns entries with distinct paths. @throws CommandFailure conflict, for `error` and for entries without an item */
export function resolveDuplicates(entries: readonly ImportEntry[], action: DuplicateAction | undefined): Resolved {
  const paths = new Set(entries.map(({ path }) => path));
  if (paths.size === entries.length) return { entries, leftOut: [] };
  const refused = action === undefined ? entries.filter(({ item }) => item === undefined) : entries;
  if (action === "error" || action === undefined) refuseDuplicates(refused);
  const groups = inOrderOfCreation(groupByItem(entries));
  return action === "skip" ? firstOfEach(groups) : { entries: renamed(groups, paths), leftOut: [] };
}

function groupByItem(entries: readonly ImportEntry[]): Group[] {
  const groups = new Map<object, ImportEntry[]>();
  for (const entry of entries) {
    const key = entry.item ?? entry;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [entry]);
    else group.push(entry);
  }
  return [...groups.values()];
}

/**
 * Sorts items by their creation, so that a suffix stays with its item when the source is exported again, in another order or
 * with more items. An item with its own name comes before those that got the same name here.
 */
function inOrderOfCreation(groups: readonly Group[]): Group[] {
  const sortKey = ([first]: Group) => `${first?.item?.created ?? ""} ${first?.item?.id ?? ""}`;
  const isRenamed = ([first]: Group) => Number(first?.item?.isRenamed ?? false);
  return groups.toSorted(
    (a, b) => isRenamed(a) - isRenamed(b) || (sortKey(a) < sortKey(b) ? -1 : Number(sortKey(a) > sortKey(b))),
  );
}

/** Leaves out an item as a whole: its user name alone would be misleading. */
function firstOfEach(groups: readonly Group[]): Resolved {
  const origins = new Map<string, string>();
  const entries: ImportEntry[] = [];
  const leftOut: string[] = [];
  for (const group of groups) {
    const clash = group.find(({ path }) => origins.has(path));
    if (clash !== undefined) {
      leftOut.push(`${clash.origin}, and all of its item: same path as ${origins.get(clash.path)}`);
      continue;
    }
    for (const entry of group) {
      entries.push(entry);
      origins.set(entry.path, entry.origin);
    }
  }
  return { entries, leftOut };
}

function renamed(groups: readonly Group[], given: ReadonlySet<string>): ImportEntry[] {
  const taken = new Set<string>();
  const suffixes = new Suffixes((path) => taken.has(path) || given.has(path));
  return groups.flatMap((group) => {
    const placed = group.some(({ path }) => taken.has(path)) ? withSuffix(group, suffixes) : group;
    for (const { path } of placed) taken.add(path);
    return placed;
  });
}

/** Renames the item's folder; an entry that is not in one, itself. */
function withSuffix(group: Group, suffixes: Suffixes): Group {
  const [first] = group;
  const root = first?.item?.path ?? first?.path ?? "";
  const tails = group.map(({ path }) => path.slice(root.length));
  const to = `${root}-${suffixes.freeFor(root, tails)}`;
  const item = first?.item && { ...first.item, path: to, isRenamed: true };
  return group.map((entry, i) => ({ ...entry, path: `${to}${tails[i]}`, item }));
}

/** Free numbers for paths. Numbers used up by a path are not retried: a source may have one path 100,000 times. */
class Suffixes {
  readonly #isUsed: (path: string) => boolean;
  /** Lowest numbers by path; all below are used, and stay so. */
  readonly #lowest = new Map<string, number>();

  constructor(isUsed: (path: string) => boolean) {
    this.#isUsed = isUsed;
  }

  /** Returns the lowest number from 2 that is free behind `root` with each of the tails. */
  freeFor(root: string, tails: readonly string[]): number {
    let n = tails.reduce((most, tail) => Math.max(most, this.#lowestFor(root, tail)), 2);
    while (tails.some((tail) => this.#isUsed(`${root}-${n}${tail}`))) n++;
    return n;
  }

  #lowestFor(root: string, tail: string): number {
    const key = `${root}\0${tail}`;
    let n = this.#lowest.get(key) ?? 2;
    while (this.#isUsed(`${root}-${n}${tail}`)) n++;
    this.#lowest.set(key, n);
    return n;
  }
}

const maxNamed = 20;

function firstNames(names: readonly string[]): readonly string[] {
  return names.length > maxNamed ? [...names.slice(0, maxNamed), `${names.length - maxNamed} more`] : names;
}

function refuseDuplicates(entries: readonly ImportEntry[]): void {
  const origins = new Map<string, string[]>();
  for (const { path, origin } of entries) {
    const others = origins.get(path);
    if (others === undefined) origins.set(path, [origin]);
    else others.push(origin);
  }
  const clashes = [...origins].filter(([, list]) => list.length > 1);
  if (clashes.length === 0) return;
  const rows = clashes
    .slice(0, maxNamed)
    .map(([path, list]) => `\n  ${printable(path)}: ${firstNames(list.map(printable)).join(" and ")}`);
  const more = clashes.length > maxNamed ? `\n  and ${clashes.length - maxNamed} more` : "";
  const problem = "several entries have the same path, so nothing was imported";
  const remedy = "rename them in the source, or use --on-duplicate suffix or skip";
  throw new CommandFailure("conflict", `${problem}: ${remedy}${rows.join("")}${more}`);
}
