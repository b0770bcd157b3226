/** Checks of secrets' files: kind, owner, mode and structure without the key, content with it. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import pMap from "p-map";
import type { BlobFault, BlobOutline, Bytes } from "../../../workers/protocol.js";
import { readFileBytes, systemFiles } from "../../files/durable.js";
import { blobFile } from "../../paths/file-name.js";
import { examine, type Inspection, reading } from "./inspection.js";
import { headBytes } from "./offline-keys.js";

type SecretFile = { readonly file: string; readonly path: string };

const maxBlobBytes = 2 ** 30;
const sliceSize = 256;

/** Keeps the disk busy, and stays far below the limit of open files. */
const headsAtOnce = 16;

/** Each holds a whole secret in memory. */
const blobsAtOnce = 4;

const fromBackup = "restore the file from a backup, or delete the secret";

export const unopened =
  "it does not open with the vault's key: it is damaged, or was moved here from another path or vault";

export const faultMessages: { readonly [F in BlobFault]: string } = {
  foreign: "it is not a sealed secret",
  version: "it was written by a later version",
  length: "it is truncated, or its lengths are inconsistent",
};

/** `opened`: the vault is unlocked; opens every intact blob too. */
export async function examineBlobs(
  inspection: Inspection,
  root: string,
  paths: readonly string[],
  opened: boolean,
): Promise<void> {
  inspection.progress.expect(opened ? 2 * paths.length : paths.length);
  for (let at = 0; at < paths.length; at += sliceSize) {
    const slice = paths.slice(at, at + sliceSize).map((path) => ({ file: blobFile(root, path), path }));
    const intact = await intactOnes(inspection, slice);
    if (opened) await pMap(intact, (file) => openOne(inspection, file), { concurrency: blobsAtOnce });
  }
}

async function intactOnes(inspection: Inspection, files: readonly SecretFile[]): Promise<SecretFile[]> {
  const outlines = await pMap(files, (file) => outlineOf(inspection, file), { concurrency: headsAtOnce });
  const found = outlines.flatMap((outline, i) => {
    const file = files[i];
    return outline === null || file === undefined ? [] : [{ file, outline }];
  });
  const verdicts = await inspection.keys.faultsOf(found.map(({ outline }) => outline));
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

async function outlineOf(inspection: Inspection, { file }: SecretFile): Promise<BlobOutline | null> {
  inspection.progress.step();
  return (await examine(inspection, file, "file")) && reading(inspection, file, () => readOutline(file));
}

/** Reads both through one descriptor: the file may be replaced meanwhile. */
async function readOutline(file: string): Promise<BlobOutline> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | (constants.O_NOFOLLOW ?? 0));
  try {
    const { size } = await handle.stat();
    const head: Bytes = new Uint8Array(new ArrayBuffer(Math.min(headBytes, size)));
    await handle.read(head);
    return { head, length: size };
  } finally {
    await handle.close();
  }
}

async function openOne(inspection: Inspection, { file, path }: SecretFile): Promise<void> {
  inspection.progress.step();
  const blob: Bytes | null = await reading(inspection, file, () => readFileBytes(systemFiles, file, maxBlobBytes));
  if (blob === null || (await inspection.keys.opens(path, blob))) return;
  inspection.report({ code: "secret-damaged", path: file, message: unopened, remedy: fromBackup, fix: null });
}
