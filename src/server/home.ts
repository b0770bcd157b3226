/** Owns the home directory: makes what is missing for the user alone, and refuses what others could read or write. */
import { chmod, lstat, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { StartError, systemCode } from "../errors.js";

export type Home = {
  readonly path: string;
  readonly token: string;
  readonly tls: string;
  readonly certificate: string;
  readonly privateKey: string;
  readonly vault: string;
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
  };
}

/** @throws StartError that says how to mend what is wrong. */
export async function openHome(path: string): Promise<Home> {
  const home = homeAt(path);
  await makeDirectory(path, true);
  await makeDirectory(home.tls);
  await makeDirectory(home.vault);
  for (const file of [home.token, home.privateKey, join(home.vault, "current")]) await refuseLooseFile(file, 0o077);
  await refuseLooseFile(home.certificate, 0o022);
  return home;
}

async function makeDirectory(path: string, withParents = false): Promise<void> {
  try {
    const made = await mkdir(path, { mode: 0o700, recursive: withParents });
    if (made !== undefined) await chmod(path, 0o700);
  } catch (error) {
    if (systemCode(error) !== "EEXIST") {
      throw new StartError(`${path} cannot be made (${systemCode(error)}): choose another home with STRONGROOM_HOME`);
    }
  }
  // The home itself may be a link of the user's own; what is in it may not.
  const found = await (withParents ? stat(path) : lstat(path));
  if (!found.isDirectory()) {
    throw new StartError(`${path} is not a directory: move it away, then start again`);
  }
  refuseLoose(path, found, 0o077, "700");
}

async function refuseLooseFile(path: string, forbidden: number): Promise<void> {
  let found: Awaited<ReturnType<typeof lstat>>;
  try {
    found = await lstat(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return;
    throw error;
  }
  if (!found.isFile()) throw new StartError(`${path} is not a plain file: move it away, then start again`);
  refuseLoose(path, found, forbidden, forbidden === 0o077 ? "600" : "644");
}

type Found = { readonly mode: number | bigint; readonly uid: number | bigint };

function refuseLoose(path: string, found: Found, forbidden: number, wanted: string): void {
  if (process.platform === "win32") return; // it has no modes
  if (Number(found.uid) !== process.getuid?.()) {
    throw new StartError(`${path} belongs to another user: give it to yourself (chown), or choose another home`);
  }
  if ((Number(found.mode) & forbidden) !== 0) {
    throw new StartError(`others may use ${path}: run  chmod ${wanted} ${quoted(path)}  and start again`);
  }
}

/** As a shell takes it. */
export function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
