/** Sockets that an earlier run of a command has left. */
import { once } from "node:events";
import { lstatSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { systemCode } from "../errors.js";

/** Removes a socket that no program listens on; returns what is there otherwise: a program's socket, another file, or nothing. */
export async function removeStaleSocket(path: string): Promise<"listening" | "file" | null> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return null;
  if (!found.isSocket()) return "file";
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return "listening";
  } catch (error) {
    if (systemCode(error) === "ECONNREFUSED") rmSync(path, { force: true });
    return null; // a socket that is still there makes the caller's own attempt fail
  } finally {
    socket.destroy();
  }
}
