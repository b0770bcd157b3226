/** Context of one inspection of a home, the checks that every file and directory gets, and leftovers of crashes. */
import { constants, type Dirent, type Stats } from "node:fs";
import { chmod, lchmod, lstat, open, readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../../errors.js";
import { isTempName, missingAsNull, NotPlainFile, systemFiles } from "../../files/durable.js";
import { type Home, quoted } from "../../files/home.js";
import { removeTree } from "../../files/remove-tree.js";
import { findHolder } from "../../storage/files/claim.js";
import type { Keys } from "../offline-keys.js";
import type { Finding, Fix } from "./finding.js";

export type Inspection = {
  readonly home: Home;
  /** User id that must own everything; null where files have no owners. */
  readonly owner: number | null;
  readonly keys: Keys;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** A server runs, and changes files during the inspection. */
  readonly served: boolean;
  readonly report: (finding: Finding) => void;
  /** Called with the time at which a secret of the unlocked vault expires, in milliseconds since 1970. */
  readonly expires: (time: number) => void;
  readonly progress: Progress;
};

export type Progress = { readonly expect: (steps: number) => void; readonly step: () => void };

/** Expected kind of a path. A certificate is a file that others may read. */
type Kind = "directory" | "file" | "certificate";

type Modes = { readonly wanted: number; readonly needed: number; readonly forbidden: number };

const modes: { readonly [K in Kind]: Modes } = {
  directory: { wanted: 0o700, needed: 0o700, forbidden: 0o077 },
  file: { wanted: 0o600, needed: 0o400, forbidden: 0o077 },
  certificate: { wanted: 0o644, needed: 0o400, forbidden: 0o022 },
};

/** Checks kind, owner and mode; returns null when there is nothing of that kind. A missing file is no finding. */
export async function examine(
  inspection: Inspection,
  path: string,
  kind: Kind,
  followLink = false,
): Promise<Stats | null> {
  const found = await reading(inspection, path, () => (followLink ? stat(path) : lstat(path)));
  if (found === null || !isOfKind(inspection, path, found, kind)) return null;
  if (inspection.owner !== null) checkAccess(inspection, inspection.owner, path, found, kind);
  return found;
}

/** Returns the sorted entries of a directory; none when it cannot be read. */
export async function directoryEntries(inspection: Inspection, directory: string): Promise<Dirent[]> {
  return (await readEntries(inspection, directory)) ?? [];
}

/** Like `directoryEntries`, but returns null when it cannot be read. */
export async function readEntries(inspection: Inspection, directory: string): Promise<Dirent[] | null> {
  const entries = await reading(inspection, directory, () => readdir(directory, { withFileTypes: true }));
  return entries?.sort((a, b) => (a.name < b.name ? -1 : 1)) ?? null;
}

/** Awaits a read; returns null when the path is missing, and also reports a finding when it cannot be read. */
export async function reading<T>(inspection: Inspection, path: string, read: () => Promise<T>): Promise<T | null> {
  try {
    return await missingAsNull(read());
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    const message = `it cannot be read (${code})`;
    const remedy = "check that you may read it, and that the disk works";
    inspection.report({ code: "unreadable", path, message, remedy, fix: null });
    return null;
  }
}

/** Reports the wrong kind of file; it is never followed, never removed. */
export function reportWrongKind(inspection: Inspection, path: string, isLink: boolean, wanted = "a plain file"): void {
  const wrong = isLink
    ? ({ code: "symlink", message: "it is a symbolic link" } as const)
    : ({ code: "wrong-kind", message: `it is not ${wanted}` } as const);
  inspection.report({ ...wrong, path, remedy: "see what it is, and move it away", fix: null });
}

function isOfKind(inspection: Inspection, path: string, found: Stats, kind: Kind): boolean {
  if (kind === "directory" ? found.isDirectory() : found.isFile()) return true;
  reportWrongKind(inspection, path, found.isSymbolicLink(), kind === "directory" ? "a directory" : "a plain file");
  return false;
}

function checkAccess(inspection: Inspection, owner: number, path: string, found: Stats, kind: Kind): void {
  const { wanted, needed, forbidden } = modes[kind];
  if (found.uid !== owner) {
    const message = `it belongs to user ${found.uid} instead of ${owner}`;
    inspection.report({ code: "foreign-owner", path, message, remedy: `chown ${owner} ${quoted(path)}`, fix: null });
  }
  if ((found.mode & forbidden) === 0 && (found.mode & needed) === needed) return;
  const [is, should] = [octal(found.mode & 0o777), octal(wanted)];
  const message =
    (found.mode & forbidden) === 0 ? `its owner has no access (mode ${is})` : `others have access (mode ${is})`;
  const remedy = `chmod ${should} ${quoted(path)}`;
  inspection.report({ code: "wrong-mode", path, message, remedy, fix: setMode(path, wanted) });
}

function setMode(path: string, mode: number): Fix {
  return { did: `set its mode to ${octal(mode)}`, whileServed: true, run: () => changeMode(path, mode) };
}

/** linux/fcntl.h, O_PATH: opens a name also where its owner may not open the file. */
const nameOnly = 0o10000000;

/** Changes what has the name now, through a descriptor, so that no link can redirect the change. */
async function changeMode(path: string, mode: number): Promise<void> {
  if (process.platform !== "linux") return lchmod(path, mode);
  const handle = await open(path, nameOnly | constants.O_NOFOLLOW);
  try {
    const found = await handle.stat();
    // Another name of a private file of this user's: others must not get to read that.
    if (found.isSymbolicLink() || (found.nlink > 1 && found.isFile() && (mode & 0o077) !== 0))
      throw new NotPlainFile(path);
    await chmod(`/proc/self/fd/${handle.fd}`, mode);
  } finally {
    await handle.close();
  }
}

function octal(mode: number): string {
  return mode.toString(8);
}

/** Work directories of backup and restore. */
const workName = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/** Milliseconds; younger ones may be in use. */
const ageBesideServer = { work: 3600 * 1000, rest: 60 * 1000 };

/** Reports an entry that does not belong in the vault's directory or beside a header. */
export async function reportStray(inspection: Inspection, path: string, entry: Dirent): Promise<void> {
  if (entry.isDirectory() && workName.test(entry.name)) return reportOldWork(inspection, path);
  if (entry.isFile() && isTempName(entry.name)) return reportTemp(inspection, path);
  if (!entry.isFile() && !entry.isDirectory()) return reportWrongKind(inspection, path, entry.isSymbolicLink());
  const remedy = "see what it is, and move it away";
  inspection.report({
    code: "foreign-file",
    path,
    message: "it is not a file or directory of Strongroom",
    remedy,
    fix: null,
  });
}

export async function reportTemps(inspection: Inspection, directory: string): Promise<void> {
  for (const entry of await directoryEntries(inspection, directory)) {
    if (entry.isFile() && isTempName(entry.name)) await reportTemp(inspection, join(directory, entry.name));
  }
}

export async function reportTemp(inspection: Inspection, file: string): Promise<void> {
  const message = "an interrupted write left it; it is unused and harmless";
  await reportLeftover(inspection, { code: "stray-temp", path: file, message }, () => unlink(file));
}

async function reportOldWork(inspection: Inspection, path: string): Promise<void> {
  if ((await findHolder(path)) !== null) return; // a backup is reading it
  const message = "an interrupted backup or restore left it; it is unused";
  const remove = () => removeTree(systemFiles, path);
  await reportLeftover(inspection, { code: "stray-directory", path, message }, remove, ageBesideServer.work);
}

/** Reports a leftover unless it may be in use: beside a server, anything recently changed may be. */
export async function reportLeftover(
  inspection: Inspection,
  what: Pick<Finding, "code" | "path" | "message">,
  remove: () => Promise<unknown>,
  ageBeside = ageBesideServer.rest,
): Promise<void> {
  const found = await missingAsNull(lstat(what.path));
  if (found === null || (inspection.served && inspection.now - found.mtimeMs < ageBeside)) return;
  const fix = { did: "removed it", whileServed: false, run: remove };
  inspection.report({ ...what, remedy: "remove it while no server runs", fix });
}
