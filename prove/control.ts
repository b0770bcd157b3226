/** A control of the method for a vault that stays locked: a key that is planted in another process must be found there. */
import { spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { attack } from "./attacker.js";
import { derivedKey, type Header } from "./format.js";
import { copyMemory } from "./memory.js";

/** Holds the bytes that come on standard input. */
const holder =
  "const held = new Uint8Array(new ArrayBuffer(32)); process.stdin.on('data', (chunk) => {" +
  "held.set(chunk); chunk.fill(0); process.stdout.write('.'); }); process.on('beforeExit', () => held.fill(0));";

/** A process that holds up to 32 bytes, also in the memory of its pipe's buffers, until `end`. */
export type Holder = { readonly pid: number; readonly end: () => Promise<void> };

export async function holdElsewhere(bytes: Uint8Array): Promise<Holder> {
  const child = spawn(process.execPath, ["-e", holder], { stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.write(bytes);
  await once(child.stdout, "data");
  const end = async () => {
    child.stdin.end();
    await once(child, "close");
  };
  return { pid: child.pid ?? 0, end };
}

/** Returns in how many places a planted key is found. */
export async function findPlantedKey(): Promise<number> {
  const key = randomBytes(32);
  const signed = randomBytes(300);
  const mac = createHmac("sha256", derivedKey(key, "header check")).update(signed).digest();
  const header: Header = { version: 2, vaultId: randomBytes(16), slots: [], oldKey: null, mac, signed };
  const { pid, end } = await holdElsewhere(key);
  try {
    const copy = await copyMemory(pid);
    const { places } = attack(header, copy);
    copy.bytes.fill(0);
    return places.length;
  } finally {
    await end();
  }
}
