/**
 * Check of the trees of blobs: which files are blobs and which do not belong there, from the directories, without following
 * links; then kind, owner, mode and structure of each secret without the key, and its content with it.
 */
import type { Dirent } from "node:fs";
import { constants } from "node:fs";
import { open, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import pMap from "p-map";
import type { BlobFault, BlobOutline, Bytes } from "../../../workers/protocol.js";
import { isTempName, readFileBytes, systemFiles } from "../../files/durable.js";
import { blobFile, sealedSuffix, secretFileName, segmentOfDirectory, segmentOfFile } from "../../paths/file-name.js";
import { isSecretPath } from "../../paths/secret-path.js";
import type { Space } from "../../storage/secret-store.js";
import { readTrashed, trashedHeadBytes } from "../../storage/trashed-blob.js";
import { headBytes } from "../offline-keys.js";
import {
  examine,
  type Inspection,
  readEntries,
  reading,
  reportLeftover,
  reportTemp,
  reportWrongKind,
} from "./inspection.js";

/** A file whose name the server never writes; `path` is the secret path that it may stand for. */
type ForeignFile = { readonly file: string; readonly path: string | null; readonly inForeignDirectory: boolean };

type Walk = { readonly inspection: Inspection; readonly secrets: string[]; readonly foreignFiles: ForeignFile[] };

/** `prefix` is null below a directory whose name decodes to no path. */
type WalkedDirectory = { readonly directory: string; readonly prefix: string | null; readonly foreign: boolean };

/** Checks the tree of one space; returns the paths in it. `isOpened`: the vault is unlocked. */
export async function examineSpace(
  inspection: Inspection,
  space: Space,
  root: string,
  isOpened: boolean,
): Promise<readonly string[]> {
  const paths = await walkTree(inspection, root);
  inspection.progress.expect(isOpened ? 2 * paths.length : paths.length);
  for (let at = 0; at < paths.length; at += sliceSize) {
    const slice = paths.slice(at, at + sliceSize).map((path) => ({ space, file: blobFile(root, path), path }));
    const intact = await intactOnes(inspection, slice);
    if (isOpened) await pMap(intact, (file) => openOne(inspection, file), { concurrency: blobsAtOnce });
  }
  return paths;
}

/** Returns the paths of all blobs, judged by file names: paths only, since there may be a million. */
async function walkTree(inspection: Inspection, root: string): Promise<readonly string[]> {
  const walk: Walk = { inspection, secrets: [], foreignFiles: [] };
  await walkDirectory(walk, { directory: root, prefix: "", foreign: false });
  if (walk.foreignFiles.length > 0) {
    const paths = new Set(walk.secrets);
    const secretFile = (path: string) => (paths.has(path) ? blobFile(root, path) : undefined);
    for (const foreign of walk.foreignFiles) reportForeign(inspection, foreign, secretFile);
  }
  return walk.secrets;
}

/** Returns true when it holds nothing but empty directories. */
async function walkDirectory(walk: Walk, walked: WalkedDirectory): Promise<boolean> {
  const entries = await readEntries(walk.inspection, walked.directory);
  let empty = entries !== null;
  for (const entry of entries ?? []) {
    const inner = entry.isDirectory()
      ? await walkSubdirectory(walk, walked, entry.name)
      : await walkFile(walk, walked, entry);
    empty = inner && empty;
  }
  return empty;
}

async function walkSubdirectory(walk: Walk, walked: WalkedDirectory, name: string): Promise<boolean> {
  const { inspection } = walk;
  const directory = join(walked.directory, name);
  const inner = innerDirectory(walked, directory, name);
  if (inner.foreign && !walked.foreign) {
    const message = "its name is no part of a secret path: the server does not see what is in it";
    inspection.report({ code: "foreign-name", path: directory, message, remedy: lookAndMove, fix: null });
  }
  if ((await examine(inspection, directory, "directory")) === null) return false;
  const empty = await walkDirectory(walk, inner);
  if (empty && !inner.foreign) {
    const what = { code: "stray-directory", path: directory, message: "it is empty" } as const;
    await reportLeftover(inspection, what, () => rmdir(directory));
  }
  return empty && !inner.foreign;
}

function innerDirectory({ prefix, foreign }: WalkedDirectory, directory: string, name: string): WalkedDirectory {
  const segment = decoded(name);
  const path = prefix === null || segment === null ? null : prefix + segment;
  const ours = !foreign && path !== null && segmentOfDirectory(name) !== null && isSecretPath(path);
  return { directory, prefix: path === null ? null : `${path}/`, foreign: !ours };
}

/** Returns false: a directory with a file is not empty. */
async function walkFile(walk: Walk, walked: WalkedDirectory, entry: Dirent): Promise<false> {
  const { inspection, secrets, foreignFiles } = walk;
  const { directory, prefix, foreign } = walked;
  const file = join(directory, entry.name);
  if (!entry.isFile()) {
    reportWrongKind(inspection, file, entry.isSymbolicLink());
    return false;
  }
  if (isTempName(entry.name)) {
    await reportTemp(inspection, file);
    return false;
  }
  const segment = entry.name.endsWith(sealedSuffix) ? decoded(entry.name.slice(0, -sealedSuffix.length)) : null;
  const path = prefix === null || segment === null ? null : prefix + segment;
  const ours = !foreign && path !== null && segmentOfFile(entry.name) !== null && isSecretPath(path);
  if (ours) secrets.push(path);
  else foreignFiles.push({ file, path, inForeignDirectory: foreign });
  return false;
}

const lookAndMove = "see what it is, and move it away or restore its name";

function reportForeign(
  inspection: Inspection,
  { file, path, inForeignDirectory }: ForeignFile,
  secretFile: (path: string) => string | undefined,
) {
  const twin = path === null ? undefined : secretFile(path.normalize("NFC"));
  if (twin !== undefined) {
    const message = `it is a second file of one secret; the server uses ${twin}`;
    const remedy = "compare the two, and move this one away";
    inspection.report({ code: "duplicate-secret", path: file, message, remedy, fix: null });
    return;
  }
  if (inForeignDirectory) return; // the directory was reported
  inspection.report({ ...whatItIs(path, file), path: file, remedy: lookAndMove, fix: null });
}

function whatItIs(path: string | null, file: string) {
  if (path === null) return { code: "foreign-file", message: "it is not a file of Strongroom" } as const;
  const segment = path.slice(path.lastIndexOf("/") + 1);
  if (basename(file) === secretFileName(segment) && !isSecretPath(path)) {
    return { code: "forbidden-path", message: "its name is that of a path that is not allowed for secrets" } as const;
  }
  const message = "its name is not one that the server writes: the server does not see it";
  return { code: "foreign-name", message } as const;
}

/** Decodes a file name however it is spelled; null when it cannot be decoded. */
function decoded(name: string): string | null {
  try {
    return decodeURIComponent(name);
  } catch {
    return null;
  }
}

type SecretFile = { readonly space: Space; readonly file: string; readonly path: string };

const maxBlobBytes = 2 ** 30;
const sliceSize = 256;

/** Keeps the disk busy, and stays far below the limit of open files. */
const headsAtOnce = 16;

/** Each check holds a whole secret in memory. */
const blobsAtOnce = 4;

const fromBackup = "restore the file from a backup, or delete the secret";

export const unopened = "it does not open with the vault's key: it is corrupt, or belongs to another path or vault";

export const faultMessages: { readonly [F in BlobFault]: string } = {
  foreign: "it is not a sealed secret",
  version: "it was written by a later version",
  length: "it is truncated, or its lengths are inconsistent",
};

async function intactOnes(inspection: Inspection, files: readonly SecretFile[]): Promise<SecretFile[]> {
  const outlines = await pMap(files, (file) => examineOutline(inspection, file), { concurrency: headsAtOnce });
  const found = outlines.flatMap((outline, i) => {
    const file = files[i];
    return outline === null || file === undefined ? [] : [{ file, outline }];
  });
  const verdicts = await inspection.keys.findFaults(found.map(({ outline }) => outline));
  return found.flatMap(({ file }, i) => {
    const fault = verdicts[i];
    if (!fault) return [file];
    inspection.report({
      code: "blob-damaged",
      path: file.file,
      message: faultMessages[fault],
      remedy: fromBackup,
      fix: null,
    });
    return [];
  });
}

async function examineOutline(inspection: Inspection, { space, file }: SecretFile): Promise<BlobOutline | null> {
  inspection.progress.step();
  const outline =
    (await examine(inspection, file, "file")) && (await reading(inspection, file, () => readOutline(file)));
  return outline && innerOutline(space, outline);
}

/** Returns the outline of the sealed blob in the stored bytes; of other content, a damaged outline. */
export function innerOutline(space: Space, { head, length }: BlobOutline): BlobOutline {
  const trashed = space === "trash" ? readTrashed(head) : null;
  return trashed === null ? { head, length } : { head: trashed.blob.slice(), length: length - trashedHeadBytes };
}

/** Reads both through one descriptor: the file may be replaced at any time. */
async function readOutline(file: string): Promise<BlobOutline> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | (constants.O_NOFOLLOW ?? 0));
  try {
    const { size } = await handle.stat();
    const head: Bytes = new Uint8Array(new ArrayBuffer(Math.min(trashedHeadBytes + headBytes, size)));
    await handle.read(head);
    return { head, length: size };
  } finally {
    await handle.close();
  }
}

/** Whether what is stored in the space opens; if it is a secret, records when it expires. */
export async function opensNotingExpiry(
  inspection: Inspection,
  space: Space,
  path: string,
  stored: Bytes,
): Promise<boolean> {
  const blob = space === "trash" ? (readTrashed(stored)?.blob ?? stored) : stored;
  const checked = await inspection.keys.check(path, blob, space === "keys");
  if (space === "secrets" && typeof checked?.expiresAt === "number") inspection.expires(checked.expiresAt);
  return checked !== null;
}

async function openOne(inspection: Inspection, { space, file, path }: SecretFile): Promise<void> {
  inspection.progress.step();
  const blob: Bytes | null = await reading(inspection, file, () => readFileBytes(systemFiles, file, maxBlobBytes));
  if (blob === null || (await opensNotingExpiry(inspection, space, path, blob))) return;
  inspection.report({ code: "secret-damaged", path: file, message: unopened, remedy: fromBackup, fix: null });
}
