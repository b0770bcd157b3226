/** Context of one inspection of a home, and the checks that every file and directory gets. */
import { constants, type Dirent, type Stats } from "node:fs";
import { chmod, lstat, open, readdir, stat } from "node:fs/promises";
import { systemCode } from "../../errors.js";
import { ignoring, missingAsNull } from "../../files/durable.js";
import { type Home, quoted } from "../../files/home.js";
import type { Finding, Fix } from "./finding.js";
import type { Keys } from "./offline-keys.js";

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
  readonly progress: Progress;
};

export type Progress = {
  /** Adds to the number of expected steps. */
  readonly expect: (steps: number) => void;
  readonly step: () => void;
};

/** Expected kind of a path. A certificate is a file that others may read. */
export type Kind = "directory" | "file" | "certificate";

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
export async function entriesOf(inspection: Inspection, directory: string): Promise<Dirent[]> {
  return (await readEntries(inspection, directory)) ?? [];
}

/** As `entriesOf`, but returns null when it cannot be read. */
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
  const run = async () => {
    // By name only when its owner may not open it; root, whom a link could lead anywhere, may always open it.
    if (!(await ignoring(setModeOfOpened(path, mode), "EACCES"))) await chmod(path, mode);
  };
  return { did: `set its mode to ${octal(mode)}`, whileServed: true, run };
}

/** Through a descriptor, so that no link can redirect the change. */
async function setModeOfOpened(path: string, mode: number): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | (constants.O_NOFOLLOW ?? 0));
  try {
    await handle.chmod(mode);
  } finally {
    await handle.close();
  }
}

function octal(mode: number): string {
  return mode.toString(8);
}
