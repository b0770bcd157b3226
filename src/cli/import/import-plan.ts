/** Plan of an import, before anything is stored: the parsed source and the path of each entry. */
import { CommandFailure } from "../session/exit-codes.js";
import { readInput, textOfInput } from "../session/input-file.js";
import { printable } from "../session/output.js";
import { canonicalPath, problemOfPath } from "../session/references.js";
import { readBitwarden } from "./formats/bitwarden.js";
import { parseDotenv } from "./formats/dotenv.js";
import type { ImportEntry, ParsedSource, Refused } from "./formats/import-entry.js";
import { readJson } from "./formats/nested-json.js";
import { readPassStore } from "./formats/pass.js";

export const formats = ["dotenv", "json", "pass", "bitwarden", "keepassxc"] as const;
export type Format = (typeof formats)[number];

/** Reads and parses the whole source. @throws CommandFailure usage */
export async function readSource(source: string, format: Format): Promise<ParsedSource> {
  if (format === "pass") return readPassStore(source);
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

/** Puts every entry into the folder; those without a valid path are refused. @throws CommandFailure conflict */
export function planPaths(
  found: readonly ImportEntry[],
  folder: string,
): { entries: ImportEntry[]; refused: Refused[] } {
  const entries: ImportEntry[] = [];
  const refused: Refused[] = [];
  for (const entry of found) {
    const path = `${folder}${entry.path}`;
    const problem = problemOfPath(path);
    if (problem === null) entries.push({ ...entry, path: path.normalize("NFC") });
    else refused.push({ origin: entry.origin, problem });
  }
  refuseClashes(entries);
  return { entries, refused };
}

/** Returns `prefix` as a folder, with its final slash. @throws CommandFailure usage */
export function folderOf(prefix = ""): string {
  const folder = prefix.replace(/\/$/, "");
  return folder === "" ? "" : `${canonicalPath(folder, "--prefix")}/`;
}

const maxNamed = 20;

function refuseClashes(entries: readonly ImportEntry[]): void {
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
  const what = "several entries have the same path, so nothing was imported: rename them in the source";
  throw new CommandFailure("conflict", `${what}:${rows.join("")}${more}`);
}
