/**
 * Parser of a password store's decrypted tree, one file per entry. The first line is the secret at the file's path, the
 * rest, which may hold secrets too, is the secret `notes` under it, without `otpauth://` lines, which become `totp`. A PEM
 * file is one secret. Names that start with a dot are ignored: they are the store's own.
 */
import { isUtf8 } from "node:buffer";
import type { Dirent } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../../../errors.js";
import { reasonOf } from "../../../files/file-problem.js";
import { CommandFailure } from "../../session/exit-codes.js";
import { printable } from "../../session/output.js";
import { type ImportEntry, isOneTimeUrl, oneTimeMark, type ParsedSource, type Refused } from "./import-entry.js";

/** @throws CommandFailure usage */
export async function readPassStore(root: string): Promise<ParsedSource> {
  const found: ImportEntry[] = [];
  const refused: Refused[] = [];
  const walk = async (folder: string) => {
    for (const entry of await entriesOf(join(root, folder))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) await walk(path);
      else await take(entry, path);
    }
  };
  const take = async (entry: Dirent, path: string) => {
    const read = entry.isFile() ? await readEntry(join(root, path)) : problem("it is neither a file nor a directory");
    if ("problem" in read) refused.push({ origin: path, ...read });
    else found.push(...secretsIn(read.text, path));
  };
  await walk("");
  return { found, refused, leftOut: [] };
}

async function entriesOf(directory: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter(({ name }) => !name.startsWith(".")).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    throw new CommandFailure(
      "usage",
      `${printable(directory)} cannot be read as a directory${reasonOf(systemCode(error))}`,
    );
  }
}

async function readEntry(file: string): Promise<{ text: string } | { problem: string }> {
  if (file.endsWith(".gpg")) return problem("it is encrypted: decrypt it to a file without .gpg");
  try {
    const bytes = await readFile(file);
    return isUtf8(bytes) ? { text: bytes.toString("utf8") } : problem("it is not UTF-8");
  } catch (error) {
    return problem(`it cannot be read${reasonOf(systemCode(error))}`);
  }
}

function problem(text: string): { problem: string } {
  return { problem: text };
}

function secretsIn(text: string, path: string): ImportEntry[] {
  if (text.startsWith("-----BEGIN ")) return [{ path, value: text, origin: path }];
  const [first = "", ...rest] = text.replace(/\r?\n$/, "").split("\n");
  const value = first.replace(/\r$/, "");
  const url = rest.find(isOneTimeUrl);
  const notes = rest.filter((line) => line !== url).join("\n");
  return [
    { path, value, ...(isOneTimeUrl(value) ? oneTimeMark : { type: "password" }), origin: path },
    ...(url === undefined
      ? []
      : [{ path: `${path}/totp`, value: url.trim(), ...oneTimeMark, origin: `${path}, its URL` }]),
    ...(notes === "" ? [] : [{ path: `${path}/notes`, value: notes, origin: `${path}, from line 2` }]),
  ];
}
