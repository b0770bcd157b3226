/** Home directory of a server, as a client may trust it: any other may be another user's trap for tokens and passphrases. */
import { constants, type Stats } from "node:fs";
import { lstat, open, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { StrongroomError, systemCode } from "./errors.js";
import { anyAccess, findWeakPlace, isPrivate, ownUid, quoted, weakPlaceText, writing } from "./ownership.js";

/** Addresses that a running server announces. */
type Announcement = {
  readonly url?: string | undefined;
  readonly socket?: string | undefined;
  /** Secret files of the server's that are outside of the home. */
  readonly files: readonly string[];
};

export class ServerHome {
  readonly path: string;
  #check: Promise<boolean> | null = null;

  constructor(path: string) {
    this.path = path;
  }

  /** Whether there is a home. @throws StrongroomError UNTRUSTED_HOME */
  exists(): Promise<boolean> {
    this.#check ??= this.#checkDirectories();
    return this.#check;
  }

  /** Returns null if there is none. @throws StrongroomError UNTRUSTED_HOME */
  async token(): Promise<string | null> {
    return (await this.exists()) ? readPrivate(join(this.path, "token"), anyAccess) : null;
  }

  /** Returns null if there is none. @throws StrongroomError UNTRUSTED_HOME */
  async certificate(): Promise<string | null> {
    return (await this.exists()) ? readPrivate(join(this.path, "tls", "cert.pem"), writing) : null;
  }

  /** May be a dead server's. @throws StrongroomError UNTRUSTED_HOME */
  async announcement(): Promise<Announcement> {
    const text = (await this.exists()) ? await readPrivate(join(this.path, "vault", "server.pid"), anyAccess) : null;
    try {
      const { url, socket, files } = JSON.parse(text ?? "{}") as Record<string, unknown>;
      const named = Array.isArray(files) ? files.filter((file) => typeof file === "string") : [];
      return { url: optionalText(url), socket: optionalText(socket), files: named };
    } catch {
      return { files: [] };
    }
  }

  async #checkDirectories(): Promise<boolean> {
    const home = await missingAsNull(this.path, stat(this.path)); // may be a link; what is in it may not
    if (home === null) return false;
    mustBePrivate(this.path, home, home.isDirectory(), anyAccess);
    const weak = await findWeakPlace(this.path);
    if (weak !== null) throw untrusted(weakPlaceText(this.path, weak));
    for (const directory of [join(this.path, "tls"), join(this.path, "vault")]) {
      const found = await missingAsNull(directory, lstat(directory));
      if (found !== null) mustBePrivate(directory, found, found.isDirectory(), anyAccess);
    }
    return true;
  }
}

/** Whether there is a socket of this user's, in a directory to which no other user can write and which none can replace. */
export async function isOwnSocket(path: string): Promise<boolean> {
  try {
    const [socket, directory] = [await lstat(path), await stat(dirname(path))];
    const isOwn = socket.isSocket() && isPrivate(socket, anyAccess) && isPrivate(directory, writing);
    return isOwn && (await findWeakPlace(path)) === null;
  } catch {
    return false;
  }
}

async function readPrivate(path: string, forbidden: number): Promise<string | null> {
  // O_NONBLOCK: opening a pipe would wait for its writer. The open file is checked, since a name may be moved at any time.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const file = await missingAsNull(path, open(path, flags));
  if (file === null) return null;
  try {
    const found = await file.stat();
    mustBePrivate(path, found, found.isFile(), forbidden);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

async function missingAsNull<T>(path: string, attempt: Promise<T>): Promise<T | null> {
  try {
    return await attempt;
  } catch (error) {
    const code = systemCode(error);
    if (["ENOENT", "ENOTDIR"].includes(code)) return null;
    const problem = code === "ELOOP" ? "is a link" : `cannot be used (${code})`;
    throw untrusted(`${path} ${problem}: check what it is, its owner and its mode`);
  }
}

function mustBePrivate(path: string, found: Stats, isRightKind: boolean, forbidden: number): void {
  if (!isRightKind) throw untrusted(`${path} is not what a server puts there: move it away, or choose another home`);
  if (ownUid !== null && found.uid !== ownUid) {
    throw untrusted(`${path} belongs to another user, and may be a trap: choose another home with STRONGROOM_HOME`);
  }
  if (!isPrivate(found, forbidden)) {
    throw untrusted(`other users can access ${path}: make sure that it is yours, then run  chmod go= ${quoted(path)}`);
  }
}

function untrusted(message: string): StrongroomError {
  return new StrongroomError("UNTRUSTED_HOME", message);
}

function optionalText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
