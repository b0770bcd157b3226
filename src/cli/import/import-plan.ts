/** Plan of an import, before anything is stored: the parsed source and the path of each entry. */
import { folderPrefix } from "../secrets/folder.js";
import { CommandFailure } from "../session/exit-codes.js";
import { readInput, textOfInput } from "../session/input-file.js";
import { printable } from "../session/output.js";
import { canonicalPath, problemOfPath } from "../session/references.js";
import { type DuplicateAction, resolveDuplicates } from "./duplicate-paths.js";
import { readBitwarden } from "./formats/bitwarden.js";
import { parseDotenv } from "./formats/dotenv.js";
import type { GpgOptions } from "./formats/gpg.js";
import type { ImportEntry, Item, ParsedSource, Refused } from "./formats/import-entry.js";
import { readJson } from "./formats/nested-json.js";
import { passStoreDirectory, readPassStore } from "./formats/pass.js";

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
      return (await import("./formats/keepassxc.js")).readKeePassXc(text, name);
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
