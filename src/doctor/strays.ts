/** Owns what a crash or a broken-off command leaves behind, and that it is removed only while nobody may need it. */
import type { Dirent } from "node:fs";
import { lstat, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { isTempName, missingAsNull } from "../storage/durable.js";
import { entriesOf, reportOddKind, type Scene } from "./scene.js";

/** A backup or restore makes them, and removes them in the end. */
const workName = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/** A younger one may be at work. */
const oldEnough = 3600 * 1000;

/** What to do about all that is left over. */
export const removeStopped = "remove it while no server runs";

/** What stands in the vault's directory, or beside a header, and is none of what belongs there. */
export async function reportStray(scene: Scene, path: string, entry: Dirent): Promise<void> {
  if (entry.isDirectory() && workName.test(entry.name)) return reportOldWork(scene, path);
  if (entry.isFile() && isTempName(entry.name)) return reportTemp(scene, path);
  if (!entry.isFile() && !entry.isDirectory()) return reportOddKind(scene, path, entry.isSymbolicLink());
  const remedy = "see what it is, and move it away";
  scene.report({ code: "foreign-file", path, message: "it is not a file or directory of ours", remedy, mend: null });
}

export async function reportTemps(scene: Scene, directory: string): Promise<void> {
  for (const entry of await entriesOf(scene, directory)) {
    if (entry.isFile() && isTempName(entry.name)) reportTemp(scene, join(directory, entry.name));
  }
}

export function reportTemp(scene: Scene, file: string): void {
  scene.report({
    code: "stray-temp",
    path: file,
    message: "a write that was broken off has left it; nothing uses it",
    remedy: removeStopped,
    mend: { did: "removed it", whileServed: false, run: () => unlink(file) },
  });
}

async function reportOldWork(scene: Scene, directory: string): Promise<void> {
  const found = await missingAsNull(lstat(directory));
  if (found === null || scene.now - found.mtimeMs < oldEnough) return;
  scene.report({
    code: "stray-directory",
    path: directory,
    message: "a backup or restore that was broken off has left it; nothing uses it",
    remedy: removeStopped,
    mend: { did: "removed it", whileServed: false, run: () => rm(directory, { recursive: true, force: true }) },
  });
}
