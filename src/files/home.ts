/** Home directory: creates what is missing, private to the user, and refuses what other users could read or write. */
import { chmod, lstat, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { anyAccess, findWeakPlace, ownUid, weakPlaceText, writing } from "../client/ownership.js";
import type { Settings } from "../config/definitions.js";
import { StartError, systemCode } from "../errors.js";
import { type FileOperations, makeDirectory, missingAsNull, systemFiles } from "./durable.js";

export type Home = {
  readonly path: string;
  readonly token: string;
  readonly tls: string;
  readonly certificate: string;
  readonly privateKey: string;
  readonly vault: string;
  readonly socket: string;
};

export function homeAt(path: string): Home {
  const tls = join(path, "tls");
  return {
    path,
    token: join(path, "token"),
    tls,
    certificate: join(tls, "cert.pem"),
    privateKey: join(tls, "key.pem"),
    vault: join(path, "vault"),
    socket: join(path, "strongroom.sock"),
  };
}

/** @throws StartError that says how to fix the problem. */
export async function openHome(path: string, files = systemFiles): Promise<Home> {
  const home = homeAt(path);
  await refuseUnmakeable(path, () => makeWithParents(files, path));
  checkDirectory(path, await stat(path)); // the home may be a link, its contents may not
  await refuseReplaceable(path);
  for (const directory of [home.tls, home.vault]) {
    await refuseUnmakeable(directory, () => makePrivate(files, directory));
    checkDirectory(directory, await lstat(directory));
  }
  for (const file of [home.token, home.privateKey, join(home.vault, "current")]) await checkFile(file, anyAccess);
  await checkFile(home.certificate, writing);
  return home;
}

async function refuseUnmakeable(path: string, make: () => Promise<void>): Promise<void> {
  try {
    await make();
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw new StartError(`${path} cannot be made (${systemCode(error)}): choose another home with STRONGROOM_HOME`);
  }
}

/** One by one: a recursive mkdir never returns where the system reports an existing parent as missing, as in /proc. */
async function makeWithParents(files: FileOperations, path: string): Promise<void> {
  if ((await missingAsNull(stat(path))) !== null) return makePrivate(files, path);
  if ((await missingAsNull(stat(dirname(path)))) === null) await makeWithParents(files, dirname(path));
  await refuseReplaceable(path);
  await makePrivate(files, path);
}

/** @throws StartError when another user can put something else in the place of a path */
export async function refuseReplaceable(path: string): Promise<void> {
  const weak = await findWeakPlace(path);
  if (weak !== null) throw new StartError(weakPlaceText(path, weak));
}

/**
 * Makes a missing directory: durable, since puts in it are acknowledged, and private whatever the umask. DANGER: the mode is
 * changed by name, so no other user may be able to replace the directory.
 */
async function makePrivate(files: FileOperations, path: string): Promise<void> {
  if (await makeDirectory(files, path)) await chmod(path, 0o700);
}

function checkDirectory(path: string, found: Found & { isDirectory(): boolean }): void {
  if (!found.isDirectory()) throw new StartError(`${path} is not a directory: move it away, then start again`);
  checkPermissions(path, found, anyAccess, "700");
}

async function checkFile(path: string, forbidden: number): Promise<void> {
  let found: Awaited<ReturnType<typeof lstat>>;
  try {
    found = await lstat(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return;
    throw error;
  }
  if (!found.isFile()) throw new StartError(`${path} is not a plain file: move it away, then start again`);
  checkPermissions(path, found, forbidden, forbidden === anyAccess ? "600" : "644");
}

type Found = { readonly mode: number | bigint; readonly uid: number | bigint };

function checkPermissions(path: string, found: Found, forbidden: number, wanted: string): void {
  if (ownUid === null) return; // Windows has no modes
  if (Number(found.uid) !== ownUid) {
    throw new StartError(`${path} belongs to another user: change its owner (chown), or choose another home`);
  }
  if ((Number(found.mode) & forbidden) !== 0) {
    throw new StartError(`other users can access ${path}: run  chmod ${wanted} ${quoted(path)}  and start again`);
  }
}

/**
 * Returns, for the log, which of the files named by settings other users can access. In the home that is an error; here it
 * may be intended, for example a supervisor's group that reads them.
 */
export async function hintsOnNamedFiles({ token, tokenFile, tlsKey }: Settings): Promise<readonly string[]> {
  if (process.platform === "win32") return []; // Windows has no modes
  const hints: string[] = [];
  for (const file of [token === null ? tokenFile : null, tlsKey]) {
    if (file === null || ((await stat(file)).mode & 0o027) === 0) continue;
    hints.push(`other users can access ${file}: run  chmod 600 ${quoted(file)}`);
  }
  return hints;
}

/** Quotes a path for a shell. */
export function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
