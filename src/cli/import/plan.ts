/** Plan of an import, before anything is stored: the parsed source and the path of each entry. */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { canonicalPath, folderPrefix, problemOfPath } from "../kit/args/paths.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { printable } from "../kit/output.js";
import { readInput, textOfInput } from "../kit/prompts/input.js";
import { readBitwarden } from "./bitwarden.js";
import type { CsvOptions } from "./csv.js";
import { parseDotenv } from "./dotenv.js";
import { type DuplicateAction, resolveDuplicates } from "./duplicates.js";
import type { ImportEntry, Item, ParsedSource, Refused } from "./entry.js";
import { readJson } from "./json.js";
import { type GpgOptions, passStoreDirectory, readPassStore } from "./pass.js";
import { isZip } from "./zip.js";

export const formats = [
  "dotenv",
  "json",
  "pass",
  "bitwarden",
  "1password",
  "keepass",
  "keepassxc",
  "lastpass",
  "safari",
  "1password-csv",
  "browser",
] as const;
export type Format = (typeof formats)[number];

type TextFormat = Exclude<Format, "pass" | "1password">;

export type ReadSource = ParsedSource & { readonly format: Format };

/** How the .kdbx files of KeePass begin, which are encrypted. */
const keePassMagic = Buffer.from("03d9a29a", "hex");

/** Reads and parses the whole source; without a format, finds it out from the file. @throws CommandFailure usage */
export async function readSource(
  io: Io,
  source: string | undefined,
  given: Format | undefined,
  options: GpgOptions & { readonly dropped: readonly string[] },
): Promise<ReadSource> {
  if (given === "pass" || (given === undefined && source !== undefined && (await isPassStore(source)))) {
    return { ...(await readPassStore(io, source ?? passStoreDirectory(io), options)), format: "pass" };
  }
  if (source === undefined) {
    throw new CommandFailure(
      "usage",
      `${given === undefined ? "import" : `--format ${given}`} needs a source: the file, or -`,
    );
  }
  const name = source === "-" ? "standard input" : printable(source);
  const bytes = await readInput(io, source, name);
  if (given === "1password" || (given === undefined && isZip(bytes))) {
    const { readOnePassword } = await import("./one-password.js");
    return { ...readOnePassword(bytes, name), format: "1password" };
  }
  const text = textOfSource(bytes, name);
  const format = given ?? (await guessFormat(text, name));
  const isGuessed = given === undefined;
  return { ...(await parsed(text, name, format, { isGuessed, dropped: options.dropped })), format };
}

/** @throws CommandFailure usage */
function textOfSource(bytes: Buffer, name: string): string {
  if (!bytes.subarray(0, keePassMagic.length).equals(keePassMagic)) return textOfInput(bytes, name);
  throw new CommandFailure("usage", `${name} is a KeePass database: export it as XML, and import that`);
}

async function parsed(text: string, name: string, format: TextFormat, options: CsvOptions): Promise<ParsedSource> {
  if (format === "dotenv") return readDotenv(text, name);
  if (format === "json") return readJson(text, name);
  if (format === "bitwarden") return readBitwarden(text, name);
  if (format === "keepass") return (await import("./keepass.js")).readKeePass(text, name);
  return (await import("./csv.js")).readCsv(text, name, format, options);
}

/** By the file that pass puts into each store. @throws CommandFailure usage for any other directory, whose files may be no secrets */
async function isPassStore(source: string): Promise<boolean> {
  if ((await stat(source).catch(() => null))?.isDirectory() !== true) return false;
  if ((await stat(join(source, ".gpg-id")).catch(() => null)) !== null) return true;
  const which = `${printable(source)} is a directory without .gpg-id`;
  throw new CommandFailure("usage", `${which}: name a file, or say --format pass if all of its files are secrets`);
}

/** By what the file holds, since its name may be any. @throws CommandFailure usage */
async function guessFormat(text: string, name: string): Promise<TextFormat> {
  const start = text.replace(/^\uFEFF/, "").trimStart();
  if (start.startsWith("{")) return /"encrypted"\s*:\s*(?:true|false)/.test(start.slice(0, 200)) ? "bitwarden" : "json";
  if (start.startsWith("<") && (await import("./keepass.js")).isKeePass(text)) return "keepass";
  const csv = (await import("./csv.js")).csvFormatOf(text);
  if (csv !== null) return csv;
  const line = start.split("\n").find((each) => !/^\s*(?:#|$)/.test(each));
  if (line !== undefined && /^\s*(?:export\s+)?[\w.-]+\s*=/.test(line)) return "dotenv";
  throw new CommandFailure("usage", `${name}: the format is none that import knows: name it with --format`);
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
