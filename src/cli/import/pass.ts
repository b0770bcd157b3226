/**
 * Reader of a password store, one file per entry: `.gpg` files are decrypted by gpg, others are read as they are. The first line is the secret at the file's path, the
 * rest, which may hold secrets too, is the secret `notes` under it, without `otpauth://` lines, which become `totp`. A PEM
 * file is one secret. Names that start with a dot are ignored: they are the store's own.
 */
import { isUtf8 } from "node:buffer";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Dirent } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import pMap from "p-map";
import { systemCode } from "../../errors.js";
import { reasonOf } from "../../files/file-problem.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { progressBar } from "../kit/output/progress.js";
import { printable } from "../kit/output.js";
import { type ImportEntry, isOneTimeUrl, oneTimeMark, type ParsedSource } from "./entry.js";

/** gpg's agent decrypts one file at a time; more processes only hide their start. */
const decryptions = 4;

type StoreFile = { readonly path: string; readonly entry: Dirent };

/** Returns where pass keeps its store. */
export function passStoreDirectory(io: Io): string {
  return io.env["PASSWORD_STORE_DIR"] || join(io.env["HOME"] || homedir(), ".password-store");
}

/** Shows its progress on a terminal. @throws CommandFailure usage; unexpected, without a gpg that can decrypt */
export async function readPassStore(io: Io, root: string, options: GpgOptions): Promise<ParsedSource> {
  const files = await filesIn(root, "");
  const bar = progressBar(io, "reading");
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

export type GpgOptions = {
  /** Forbids the question for the key's passphrase. */
  readonly nonInteractive: boolean;
  readonly env: NodeJS.ProcessEnv;
};

type Decrypted = { readonly bytes: Buffer } | { readonly problem: string };

/** @throws CommandFailure, when no other file can be decrypted either: gpg is missing, or its key is locked */
async function decryptFile(file: string, options: GpgOptions): Promise<Decrypted> {
  const mode = options.nonInteractive ? ["--pinentry-mode", "cancel"] : [];
  const args = ["--quiet", "--batch", "--status-fd", "3", ...mode, "--decrypt", "--", file];
  const { bytes, log, status, code } = await runGpg(args, options);
  if (code === 0) return { bytes };
  bytes.fill(0);
  if (!isKeyLocked(status)) return { problem: printable(log.trim().split("\n").at(-1) ?? "gpg cannot decrypt it") };
  const name = printable(file);
  const remedy = `unlock it with  gpg --decrypt ${name}  and import again`;
  throw new CommandFailure("unexpected", `gpg cannot unlock the secret key for ${name}: ${remedy}`);
}

/** The key is there, but gives no session key. gpg's messages call that "No secret key", like a key that is missing. */
function isKeyLocked(status: string): boolean {
  const says = (keyword: string) => status.includes(`[GNUPG:] ${keyword}`);
  return says("KEY_CONSIDERED") && says("DECRYPTION_FAILED") && !says("NO_SECKEY") && !says("DECRYPTION_INFO");
}

async function runGpg(args: readonly string[], { nonInteractive, env }: GpgOptions) {
  const child = spawn("gpg", args, { stdio: [nonInteractive ? "ignore" : "inherit", "pipe", "pipe", "pipe"], env });
  const ended = once(child, "close");
  const [bytes, log, status, [code]] = await Promise.all([
    bytesOf(child.stdout),
    bytesOf(child.stderr),
    bytesOf(child.stdio[3] as Readable),
    ended.catch((error) => Promise.reject(systemCode(error) === "ENOENT" ? missing() : error)),
  ]);
  return { bytes, log: log.toString("utf8"), status: status.toString("utf8"), code: code as number | null };
}

function bytesOf(stream: Readable | null): Promise<Buffer> {
  return stream === null ? Promise.resolve(Buffer.alloc(0)) : buffer(stream);
}

function missing(): CommandFailure {
  return new CommandFailure("unexpected", "gpg not found: install GnuPG, which decrypts the password store");
}
