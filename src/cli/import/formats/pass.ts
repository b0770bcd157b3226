/**
 * Reader of a password store, one file per entry: `.gpg` files are decrypted by gpg, others are read as they are. The first line is the secret at the file's path, the
 * rest, which may hold secrets too, is the secret `notes` under it, without `otpauth://` lines, which become `totp`. A PEM
 * file is one secret. Names that start with a dot are ignored: they are the store's own.
 */
import { isUtf8 } from "node:buffer";
import type { Dirent } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import pMap from "p-map";
import { systemCode } from "../../../errors.js";
import { reasonOf } from "../../../files/file-problem.js";
import { CommandFailure } from "../../session/exit-codes.js";
import { printable } from "../../session/output.js";
import { progressBar } from "../../session/progress.js";
import { decryptFile, type GpgOptions } from "./gpg.js";
import { type ImportEntry, isOneTimeUrl, oneTimeMark, type ParsedSource } from "./import-entry.js";

/** gpg's agent decrypts one file at a time; more processes only hide their start. */
const decryptions = 4;

type StoreFile = { readonly path: string; readonly entry: Dirent };

/** Returns where pass keeps its store. */
export function passStoreDirectory(): string {
  return process.env["PASSWORD_STORE_DIR"] || join(homedir(), ".password-store");
}

/** Shows its progress on a terminal. @throws CommandFailure usage; unexpected, without a gpg that can decrypt */
export async function readPassStore(root: string, options: GpgOptions): Promise<ParsedSource> {
  const files = await filesIn(root, "");
  const bar = progressBar("reading");
  let done = 0;
  const read = async ({ path, entry }: StoreFile): Promise<ParsedSource> => {
    const found = await readEntry(join(root, path), entry, options);
    bar.show(++done, files.length);
    if ("problem" in found) return { found: [], refused: [{ origin: path, ...found }], leftOut: [] };
    return { found: secretsIn(found.text, path.replace(/\.gpg$/, "")), refused: [], leftOut: [] };
  };
  try {
    const asking = 1 + files.findIndex(({ path }) => path.endsWith(".gpg")); // the first one may ask for the passphrase
    const first = await pMap(files.slice(0, asking), read, { concurrency: 1 });
    return joined([...first, ...(await pMap(files.slice(asking), read, { concurrency: decryptions }))]);
  } finally {
    bar.end();
  }
}

function joined(sources: readonly ParsedSource[]): ParsedSource {
  return {
    found: sources.flatMap(({ found }) => found),
    refused: sources.flatMap(({ refused }) => refused),
    leftOut: [],
  };
}

async function filesIn(root: string, folder: string): Promise<StoreFile[]> {
  const files: StoreFile[] = [];
  for (const entry of await entriesOf(join(root, folder))) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) files.push(...(await filesIn(root, path)));
    else files.push({ path, entry });
  }
  return files;
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

async function readEntry(file: string, entry: Dirent, options: GpgOptions): Promise<{ text: string } | Problem> {
  if (!entry.isFile()) return problem("it is neither a file nor a directory");
  const read = file.endsWith(".gpg") ? await decryptFile(file, options) : await readPlain(file);
  if ("problem" in read) return read;
  return isUtf8(read.bytes) ? { text: read.bytes.toString("utf8") } : problem("it is not UTF-8");
}

async function readPlain(file: string): Promise<{ bytes: Buffer } | Problem> {
  try {
    return { bytes: await readFile(file) };
  } catch (error) {
    return problem(`it cannot be read${reasonOf(systemCode(error))}`);
  }
}

type Problem = { readonly problem: string };

function problem(text: string): Problem {
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
