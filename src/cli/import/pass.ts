/**
 * Reader of a password store, one file per entry: `.gpg` files are decrypted by gpg, others are read as they are. The first
 * line is the secret at the file's path, the rest, which may hold secrets too, is the secret `notes` under it, without
 * `otpauth://` lines, which become `totp`. A PEM file, and a binary entry of gopass, is one secret. Links within the store
 * are followed. Names that start with a dot are ignored: they are the store's own.
 */
import { isUtf8 } from "node:buffer";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Dirent } from "node:fs";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import pMap from "p-map";
import { systemCode } from "../../errors.js";
import { failureReason } from "../../files/file-problem.js";
import { CommandFailure } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { progressBar } from "../kit/output/progress.js";
import { printable } from "../kit/output.js";
import { joinSources, oneTimeMark, type ParsedSource } from "./entry.js";
import { isKept, segmentsFor } from "./names.js";
import { isSeedUrl, readSeed } from "./seeds.js";

/** gpg's agent decrypts one file at a time; more processes only hide their start. */
const decryptions = 4;

/** `target`: the file itself, after its links. `problem`: why it is not read. */
type StoreFile = { readonly path: string } & ({ readonly target: string } | Problem);

export function passStoreDirectory(io: Io): string {
  return io.env["PASSWORD_STORE_DIR"] || join(io.homeDirectory(), ".password-store");
}

/** Shows its progress on a terminal. @throws CommandFailure usage; unexpected, without a gpg that can decrypt */
export async function readPassStore(io: Io, root: string, options: GpgOptions): Promise<ParsedSource> {
  const files = await filesIn(root, "", []);
  const bar = progressBar(io, "reading");
  let done = 0;
  const read = async (file: StoreFile): Promise<Partial<ParsedSource>> => {
    const found = "problem" in file ? file : await readEntry(file.target, options);
    bar.show(++done, files.length);
    if ("problem" in found) return { refused: [{ origin: file.path, problem: found.problem }] };
    return secretsIn(found.text, file.path.replace(/\.gpg$/, ""));
  };
  try {
    const asking = 1 + files.findIndex((file) => "target" in file && file.target.endsWith(".gpg")); // the first one may ask for the passphrase
    const first = await pMap(files.slice(0, asking), read, { concurrency: 1 });
    return joinSources([...first, ...(await pMap(files.slice(asking), read, { concurrency: decryptions }))]);
  } finally {
    bar.end();
  }
}

/** `above`: the directories that are being read, as they are without links. */
async function filesIn(root: string, folder: string, above: readonly string[]): Promise<StoreFile[]> {
  const files: StoreFile[] = [];
  const entries = await directoryEntries(join(root, folder));
  const inside = [...above, await realpath(join(root, folder))];
  for (const entry of entries) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) files.push(...(await filesIn(root, path, inside)));
    else if (entry.isFile()) files.push({ path, target: join(root, path) });
    else if (entry.isSymbolicLink()) files.push(...(await linkedFiles(root, path, inside)));
    else files.push({ path, ...problem("it is neither a file nor a directory") });
  }
  return files;
}

/** pass makes links between entries; a link that leaves the store, or leads into itself, is refused. */
async function linkedFiles(root: string, path: string, inside: readonly string[]): Promise<StoreFile[]> {
  const target = await realpath(join(root, path)).catch(() => null);
  if (target === null) return [{ path, ...problem("it is a link to what does not exist") }];
  if (!target.startsWith(`${inside[0]}${sep}`))
    return [{ path, ...problem("it is a link to a place outside the store") }];
  const kind = await stat(target);
  if (kind.isFile()) return [{ path, target }];
  if (!kind.isDirectory()) return [{ path, ...problem("it is neither a file nor a directory") }];
  if (inside.includes(target)) return [{ path, ...problem("it is a link to a folder that it is in") }];
  return filesIn(root, path, inside);
}

async function directoryEntries(directory: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter(({ name }) => !name.startsWith(".")).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    throw new CommandFailure(
      "usage",
      `${printable(directory)} cannot be read as a directory${failureReason(systemCode(error))}`,
    );
  }
}

async function readEntry(file: string, options: GpgOptions): Promise<{ text: string } | Problem> {
  const read = file.endsWith(".gpg") ? await decryptFile(file, options) : await readPlain(file);
  if ("problem" in read) return read;
  const start = read.bytes.toString("latin1", 0, 40);
  if (/^(?:age-encryption\.org\/|-----BEGIN AGE ENCRYPTED FILE-----)/.test(start))
    return problem("it is encrypted with age: decrypt it first");
  if (start.startsWith("-----BEGIN PGP MESSAGE-----")) return problem("it is encrypted with PGP: its name needs .gpg");
  return isUtf8(read.bytes) ? { text: read.bytes.toString("utf8") } : problem("it is not UTF-8");
}

async function readPlain(file: string): Promise<{ bytes: Buffer } | Problem> {
  try {
    return { bytes: await readFile(file) };
  } catch (error) {
    return problem(`it cannot be read${failureReason(systemCode(error))}`);
  }
}

type Problem = { readonly problem: string };

function problem(text: string): Problem {
  return { problem: text };
}

function secretsIn(text: string, file: string): Partial<ParsedSource> {
  const path = segmentsFor(file).join("/");
  const remarks = isKept(file) ? [] : [`${file}: stored as ${path}`];
  const binary = binaryIn(text);
  if (binary !== null) {
    const found = [{ path, value: binary, encoding: "base64", origin: file }] as const;
    return { found, remarks: [...remarks, `${file}: the bytes of a binary entry, without its header`] };
  }
  if (text.startsWith("-----BEGIN ")) return { found: [{ path, value: text, origin: file }], remarks };
  const [first = "", ...rest] = text.replace(/\r?\n$/, "").split("\n");
  const value = first.replace(/\r$/, "");
  const notes = rest.filter((line) => !isSeedUrl(line)).join("\n");
  const own = { path, value, type: "password", origin: file };
  const seeds = rest.filter(isSeedUrl);
  return joinSources([
    isSeedUrl(value) ? seedAt(path, value, file) : { found: [own] },
    ...seeds.map((url, i) => seedAt(`${path}/totp${i === 0 ? "" : `-${i + 1}`}`, url, `${file}, its URL`)),
    notes === "" ? {} : { found: [{ path: `${path}/notes`, value: notes, origin: `${file}, from line 2` }] },
    { remarks },
  ]);
}

function seedAt(path: string, url: string, origin: string): Partial<ParsedSource> {
  const seed = readSeed(url);
  if ("value" in seed) return { found: [{ path, value: seed.value, ...oneTimeMark, origin }] };
  return { refused: [{ origin, problem: `no one-time code can be computed: ${seed.problem}` }] };
}

const member = "(?:[\\w-]+: [^\\r\\n]*\\r?\\n)*";
const binaryHead = new RegExp(
  `^(?:GOPASS-SECRET-1\\.0)?\\r?\\n?${member}Content-Transfer-Encoding: base64\\r?\\n${member}`,
  "i",
);

/** Returns the base64 of a binary entry, as gopass writes it: members of a MIME header before it; null for another entry. */
function binaryIn(text: string): string | null {
  const [head] = binaryHead.exec(text) ?? [];
  const body = head === undefined ? "" : text.slice(head.length).replace(/\s/g, "");
  return head !== undefined && /^[A-Za-z0-9+/]*={0,2}$/.test(body) ? body : null;
}

export type GpgOptions = {
  /** Forbids the question for the key's passphrase. */
  readonly nonInteractive: boolean;
  readonly env: NodeJS.ProcessEnv;
};

/** @throws CommandFailure, when no other file can be decrypted either: gpg is missing, or its key is locked */
async function decryptFile(file: string, options: GpgOptions): Promise<{ bytes: Buffer } | Problem> {
  const mode = options.nonInteractive ? ["--pinentry-mode", "cancel"] : [];
  const args = ["--quiet", "--batch", "--status-fd", "3", ...mode, "--decrypt", "--", file];
  const { bytes, log, status, code } = await runGpg(args, options);
  if (code === 0) return { bytes };
  bytes.fill(0);
  if (!isKeyLocked(status)) return problem(printable(log.trim().split("\n").at(-1) || "gpg cannot decrypt it"));
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
    streamBytes(child.stdout),
    streamBytes(child.stderr),
    streamBytes(child.stdio[3] as Readable),
    ended.catch((error) => Promise.reject(systemCode(error) === "ENOENT" ? missing() : error)),
  ]);
  return { bytes, log: log.toString("utf8"), status: status.toString("utf8"), code: code as number | null };
}

function streamBytes(stream: Readable | null): Promise<Buffer> {
  return stream === null ? Promise.resolve(Buffer.alloc(0)) : buffer(stream);
}

function missing(): CommandFailure {
  return new CommandFailure("unexpected", "gpg not found: install GnuPG, which decrypts the password store");
}
