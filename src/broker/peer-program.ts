/** The program at the other end of a connection on loopback, as Linux shows it; a sandbox shows its relay. */
import { readdir, readFile, readlink } from "node:fs/promises";

/** `name`: what the program calls itself, at most 15 bytes. */
export type Program = { readonly pid: number; readonly name: string };

/**
 * Returns the program that has connected from one port of 127.0.0.1 to another; null where that cannot be seen: on other systems,
 * for other users' programs, and for an ended program.
 */
export async function findProgram(from: number, to: number): Promise<Program | null> {
  try {
    const inode = findInode(await readFile("/proc/net/tcp", "latin1"), from, to);
    const pids = inode === null ? [] : (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    for (const pid of pids.sort((a, b) => Number(b) - Number(a))) {
      if (await hasOpen(pid, `socket:[${inode}]`))
        return { pid: Number(pid), name: (await readFile(`/proc/${pid}/comm`, "utf8")).trimEnd() };
    }
    return null;
  } catch {
    return null;
  }
}

/** Addresses and ports are in hexadecimal; the inode is the tenth column. */
function findInode(table: string, from: number, to: number): string | null {
  const place = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const line = table.split("\n").find((one) => one.includes(` ${place(from)} ${place(to)} `));
  const inode = line?.trim().split(/ +/)[9];
  return inode === undefined || inode === "0" ? null : inode;
}

async function hasOpen(pid: string, wanted: string): Promise<boolean> {
  const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const links = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => "")));
  return links.includes(wanted);
}
