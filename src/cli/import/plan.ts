/** Plan of an import, before anything is stored: the path of each entry, and what became of it. */
import { canonicalPath, folderPrefix, problemOfPath } from "../kit/args/paths.js";
import { type DuplicateAction, resolveDuplicates } from "./duplicates.js";
import type { ImportEntry, Item, Refused } from "./entry.js";

type Plan = {
  readonly entries: readonly ImportEntry[];
  readonly refused: readonly Refused[];
  readonly leftOut: readonly string[];
  readonly remarks: readonly string[];
};

/**
 * Puts every entry into the folder; those without a valid path are refused, and duplicates are treated as `onDuplicate`
 * says. @throws CommandFailure conflict
 */
export function planPaths(found: readonly ImportEntry[], folder: string, onDuplicate?: DuplicateAction): Plan {
  const moved = new Map<Item, Item>();
  for (const { item } of found) if (item) moved.set(item, { ...item, path: `${folder}${item.path}`.normalize("NFC") });
  const entries: ImportEntry[] = [];
  const refused: Refused[] = [];
  for (const entry of found) {
    const path = `${folder}${entry.path}`;
    const problem = problemOfPath(path);
    if (problem !== null) refused.push({ origin: entry.origin, problem });
    else entries.push({ ...entry, path: path.normalize("NFC"), item: entry.item && moved.get(entry.item) });
  }
  const resolved = resolveDuplicates(entries, onDuplicate);
  const renamed = new Set(resolved.entries.flatMap(({ item }) => (item?.isRenamed ? [item] : [])));
  return { ...resolved, refused, remarks: [...renamed].map(({ origin, path }) => `${origin}: stored as ${path}`) };
}

/** Returns `prefix` as a folder, with its final slash. @throws CommandFailure usage */
export function importFolder(prefix = ""): string {
  const folder = folderPrefix(prefix);
  if (folder !== "") canonicalPath(folder.slice(0, -1), "--prefix");
  return folder;
}
