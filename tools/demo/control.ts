/** The same search, by prove's scanner, in two servers that did the same: a naive one, where it must find secrets, and ours. */
import { spawn } from "node:child_process";
import { randomBytes, scryptSync } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { copyMemory } from "../../prove/memory.js";
import { SecretSearch } from "../../prove/search.js";
import { later } from "../rig/clean-up.js";
import { decodeKeys } from "../rig/decoder.js";
import { startProcess } from "../rig/process.js";
import { mustGet, mustInit, mustLock, mustPut } from "../rig/test-client.js";

const uses = 20;

/** Copies of each secret in the memory of the two servers. `expected` is what ours may have. */
export type Comparison = {
  readonly what: string;
  readonly naive: number;
  readonly expected: number;
  readonly ours: number;
  /** Whether the search found something in the naive server, and in ours what it may. */
  readonly holds: boolean;
};

/** Copies of the passphrase after the unlock, and of the key after the uses and after a lock. */
type Counts = readonly [passphrase: number, key: number, afterLock: number];

export async function compareServers(): Promise<Comparison[]> {
  const passphrase = randomBytes(18).toString("base64url"); // no part of it is a word of a program
  const [naive, ours] = [await searchNaive(passphrase), await searchOurs(passphrase)];
  const rows = [
    ["passphrase, after unlock", 0],
    ["key, after puts and gets", 1],
    ["key, after lock", 0],
  ] as const;
  return rows.map(([what, expected], i) => {
    const [there, here] = [naive[i] ?? 0, ours[i] ?? 0];
    return { what, naive: there, expected, ours: here, holds: there > 0 && here === expected };
  });
}

async function searchNaive(passphrase: string): Promise<Counts> {
  const { pid, call, stop } = await startNaive();
  try {
    await call("POST", "/unlock", { passphrase });
    const text = await count(pid, Buffer.from(passphrase));
    for (let i = 0; i < uses; i++) await call("PUT", `/secrets/${i}`, { value: `value ${i}` });
    for (let i = 0; i < uses; i++) await call("GET", `/secrets/${i}`);
    const key = scryptSync(passphrase, "salt", 32);
    const unlocked = await count(pid, key);
    await call("POST", "/lock");
    return [text, unlocked, await count(pid, key)];
  } finally {
    stop();
  }
}

async function searchOurs(passphrase: string): Promise<Counts> {
  const server = await startProcess([], { STRONGROOM_IDLE_TIMEOUT_MS: "0" });
  const pid = server.child.pid ?? 0;
  try {
    await mustInit(server, { passphrase });
    const text = await count(pid, Buffer.from(passphrase));
    for (let i = 0; i < uses; i++) await mustPut(server, `app/${i}`, `value ${i}`);
    for (let i = 0; i < uses; i++) await mustGet(server, `app/${i}`);
    const { masterKey } = decodeKeys(server.home, passphrase);
    const unlocked = await count(pid, masterKey);
    await mustLock(server);
    return [text, unlocked, await count(pid, masterKey)];
  } finally {
    await server.stop();
  }
}

/** Whole copies in any form, and pieces of 8 bytes that belong to none. */
async function count(pid: number, bytes: Uint8Array): Promise<number> {
  const search = new SecretSearch([{ name: "", bytes, isText: false, pieceBytes: 8 }]);
  search.searchCopy(await copyMemory(pid));
  return search.take().reduce((sum, [, { copies, pieces }]) => sum + copies.length + pieces, 0);
}

/** The naive server as a process of its own. */
export async function startNaive() {
  const child = spawn(process.execPath, [fileURLToPath(new URL("./naive-server.js", import.meta.url))], {
    stdio: ["pipe", "pipe", "ignore"], // it ends with its input, so with this process
  });
  const stop = () => void child.kill("SIGKILL");
  later(stop);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const base = `http://127.0.0.1:${line.toString().trim()}`;
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    // A connection that is kept may have been closed while memory was searched, which takes seconds.
    const headers = { "content-type": "application/json", connection: "close" };
    const response = await fetch(base + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return response.json();
  };
  return { pid: child.pid ?? 0, call, stop };
}
