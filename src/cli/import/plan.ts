/** Plan of an import, before anything is stored: the parsed source and the path of each entry. */

import { CommandFailure } from "../lib/errors.js";
import { readInput, textOfInput } from "../lib/input.js";
import { printable } from "../lib/output.js";
import { canonicalPath, folderPrefix, problemOfPath } from "../lib/paths.js";
import { readBitwarden } from "./bitwarden.js";
import { parseDotenv } from "./dotenv.js";
import { type DuplicateAction, resolveDuplicates } from "./duplicates.js";
import type { ImportEntry, Item, ParsedSource, Refused } from "./entry.js";
import { readJson } from "./json.js";
import { type GpgOptions, passStoreDirectory, readPassStore } from "./pass.js";

export const formats = ["dotenv", "json", "pass", "bitwarden", "keepassxc"] as const;
export type Format = (typeof formats)[number];

/** Reads and parses the whole source. @throws CommandFailure usage */
export async function readSource(
  source: string | undefined,
  format: Format,
  options: GpgOptions,
): Promise<ParsedSource> {
  if (format === "pass") return readPassStore(source ?? passStoreDirectory(), options);
  if (source === undefined) throw new CommandFailure("usage", `--format ${format} needs a source: the file, or -`);
  const name = source === "-" ? "standard input" : printable(source);
  const text = textOfInput(await readInput(source, name), name);
  switch (format) {
    case "dotenv":
      return readDotenv(text, name);
    case "json":
      return readJson(text, name);
    case "bitwarden":
      return readBitwarden(text, name);
    case "keepassxc":
      return (await import("./keepassxc.js")).readKeePassXc(text, name);
  }
}

function readDotenv(text: string, name: string): ParsedSource {
  const found = parseDotenv(text, name).map(({ name, value, line }) => ({ path: name, value, origin: `line ${line}` }));
  return { found, refused: [], leftOut: [] };
}

/**
 * Puts every entry into the folder; those without a valid path are refused, and duplicates are treated as `onDuplicate`
 * says. @throws CommandFailure conflict
 */
export function planPaths(
  found: readonly ImportEntry[],
  folder: string,
  onDuplicate: DuplicateAction,
): { entries: readonly ImportEntry[]; refused: Refused[]; leftOut: readonly string[] } {
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
  return { ...resolveDuplicates(entries, onDuplicate), refused };
}

/** Returns `prefix` as a folder, with its final slash. @throws CommandFailure usage */
export function folderOf(prefix = ""): string {
  const folder = folderPrefix(prefix);
  if (folder !== "") canonicalPath(folder.slice(0, -1), "--prefix");
  return folder;
}
