/** Place of the Unix socket: its rules, and the removal of what a killed server left there. */
import { lstat, stat, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { dirname } from "node:path";
import type { Settings } from "../config/definitions.js";
import { maxSocketPathBytes } from "../config/readers.js";
import { StartError, systemCode } from "../errors.js";
import { ignoring, missingAsNull } from "../files/durable.js";
import { type Home, quoted } from "../files/home.js";
import type { Log } from "../log.js";

/** `chosen`: by a setting, so that a problem with it ends the start. */
export type SocketPlace = { readonly path: string; readonly chosen: boolean };

/**
 * Returns where to listen, free of an earlier socket; null when the socket is turned off, or the home's path is too long
 * for one, which is logged.
 * @throws StartError when the place cannot be used.
 */
export async function findSocketPlace({ socket }: Settings, home: Home, log: Log): Promise<SocketPlace | null> {
  if (socket === "off" || process.platform === "win32") return null; // Windows has no modes to keep other users out
  const path = socket ?? home.socket;
  if (Buffer.byteLength(path) > maxSocketPathBytes) {
    const hint = "the home's path is too long for a Unix socket: choose its path with --socket, or set --no-socket";
    log.warn({ event: "no-socket", hint });
    return null;
  }
  await refuseSharedDirectory(dirname(path));
  await removeStaleSocket(path);
  return { path, chosen: socket !== null };
}

/** Clients trust what listens there, so no other user may be able to put a socket of theirs in its place. */
async function refuseSharedDirectory(directory: string): Promise<void> {
  const found = await missingAsNull(stat(directory));
  if (!found?.isDirectory()) throw new StartError(`${directory} is not a directory: create it, or change --socket`);
  if (found.uid === process.getuid?.() && (found.mode & 0o022) === 0) return;
  throw new StartError(
    `other users can write to ${directory}: choose a directory of your own for --socket, or run  chmod go-w ${quoted(directory)}`,
  );
}

async function removeStaleSocket(path: string): Promise<void> {
  const found = await missingAsNull(lstat(path));
  if (found === null) return;
  if (!found.isSocket()) throw new StartError(`${path} is not a socket: move it away, then start again`);
  if (await isListening(path)) throw new StartError(`another server listens on ${path}: choose another with --socket`);
  await ignoring(unlink(path), "ENOENT");
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(true)).once("error", (error) => resolve(systemCode(error) === "EAGAIN"));
    socket.once("connect", () => socket.destroy());
  });
}
