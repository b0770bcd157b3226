/** Entries of an import that would have the same path: an error, renamed with a suffix, or left out. */
import { CommandFailure } from "../lib/errors.js";
import { printable } from "../lib/output.js";
import type { ImportEntry } from "./entry.js";

export const duplicateActions = ["error", "suffix", "skip"] as const;
export type DuplicateAction = (typeof duplicateActions)[number];

type Resolved = { readonly entries: readonly ImportEntry[]; readonly leftOut: readonly string[] };

/** Entries of one item of the source, which keep together: a user name stays with its password. */
type Group = readonly ImportEntry[];

/** Returns entries with distinct paths. @throws CommandFailure conflict, for `error` */
export function resolveDuplicates(entries: readonly ImportEntry[], action: DuplicateAction): Resolved {
  if (action === "error") refuseDuplicates(entries);
  const paths = new Set(entries.map(({ path }) => path));
  if (paths.size === entries.length) return { entries, leftOut: [] };
  const groups = inOrderOfCreation(groupsOf(entries));
  return action === "skip" ? firstOfEach(groups) : { entries: renamed(groups, paths), leftOut: [] };
}

function groupsOf(entries: readonly ImportEntry[]): Group[] {
  const groups = new Map<object, ImportEntry[]>();
  for (const entry of entries) {
    const key = entry.item ?? entry;
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  }
  return [...groups.values()];
}

/** So that a suffix stays with its item when the source is exported again, in another order or with more items. */
function inOrderOfCreation(groups: readonly Group[]): Group[] {
  const keyOf = ([first]: Group) => `${first?.item?.created ?? ""} ${first?.item?.id ?? ""}`;
  return groups.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : Number(keyOf(a) > keyOf(b))));
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
      if (origins.has(entry.path)) leftOut.push(`${entry.origin}: same path as ${origins.get(entry.path)}`);
      else entries.push(entry);
      origins.set(entry.path, entry.origin);
    }
  }
  return { entries, leftOut };
}

function renamed(groups: readonly Group[], given: ReadonlySet<string>): ImportEntry[] {
  const taken = new Set<string>();
  return groups.flatMap((group) => {
    const distinct = withDistinctFields(group, given);
    const placed = distinct.some(({ path }) => taken.has(path)) ? withSuffix(distinct, taken, given) : distinct;
    for (const { path } of placed) taken.add(path);
    return placed;
  });
}

/** An item may have two fields of the same name. */
function withDistinctFields(group: Group, given: ReadonlySet<string>): Group {
  const own = new Set<string>();
  return group.map((entry) => {
    const path = own.has(entry.path) ? freePath(entry.path, (path) => !own.has(path) && !given.has(path)) : entry.path;
    own.add(path);
    return { ...entry, path };
  });
}

/** Renames the item's folder; an entry that is not in one, itself. */
function withSuffix(group: Group, taken: ReadonlySet<string>, given: ReadonlySet<string>): Group {
  const [first] = group;
  const root = first?.item?.path ?? first?.path ?? "";
  const moved = (to: string) => group.map((entry) => ({ ...entry, path: `${to}${entry.path.slice(root.length)}` }));
  const isFree = (to: string) => moved(to).every(({ path }) => !taken.has(path) && !given.has(path));
  return moved(freePath(root, isFree));
}

function freePath(path: string, isFree: (path: string) => boolean): string {
  for (let n = 2; ; n++) if (isFree(`${path}-${n}`)) return `${path}-${n}`;
}

const maxNamed = 20;

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
    .map(([path, list]) => `\n  ${printable(path)}: ${list.map(printable).join(" and ")}`);
  const more = clashes.length > maxNamed ? `\n  and ${clashes.length - maxNamed} more` : "";
  const problem = "several entries have the same path, so nothing was imported";
  const remedy = "rename them in the source, or use --on-duplicate suffix or skip";
  throw new CommandFailure("conflict", `${problem}: ${remedy}${rows.join("")}${more}`);
}
