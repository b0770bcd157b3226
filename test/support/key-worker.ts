/** The key worker's real thread without a server: for thousands of damaged headers and blobs, which it alone judges. */
import { systemClock } from "../../src/clock.js";
import { VaultError } from "../../src/errors.js";
import { KeyWorker } from "../../src/vault/key-worker.js";
import type { SharedBytes } from "../../workers/protocol.js";
import { later } from "./clean-up.js";
import { passphrase, testScryptLogN } from "./server.js";

/** Starts a thread, unlocked when a header is given. A crash of it fails the next call. */
export async function startKeyWorker(header: Uint8Array | null = null): Promise<KeyWorker> {
  const settings = { maxValueBytes: 1024, keepVersions: 0, keepVersionBytes: 0, minScryptLogN: testScryptLogN };
  let crashed = false;
  const worker = KeyWorker.start({
    settings,
    clock: systemClock,
    crashed: () => {
      crashed = true;
    },
  });
  later(async () => {
    await worker.stop();
    if (crashed) throw new Error("the key worker has crashed");
  });
  if (header === null) return worker;
  await worker.call({ op: "load", header: new Uint8Array(header) });
  await unlockKeyWorker(worker);
  return worker;
}

/** Starts a thread with a new, unlocked vault. */
export async function startNewVault(): Promise<KeyWorker> {
  const worker = await startKeyWorker();
  await worker.call({ op: "load", header: null });
  const body = sharedBytes(JSON.stringify({ passphrase }));
  await worker.call({ op: "init", body, logN: testScryptLogN, now: 0 });
  await worker.call({ op: "adopt" });
  return worker;
}

export function sharedBytes(text: string): SharedBytes {
  const bytes = new TextEncoder().encode(text);
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  return shared;
}

export async function unlockKeyWorker(worker: KeyWorker, opener = passphrase): Promise<void> {
  await worker.call({ op: "unlock", body: sharedBytes(JSON.stringify({ passphrase: opener })) });
}

/** Returns the code of the key worker's refusal, or `success`. */
export async function verdict(success: string, call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return success;
  } catch (error) {
    if (error instanceof VaultError) return error.code;
    throw error;
  }
}
