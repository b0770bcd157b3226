/**
 * The key worker without a server, in its real thread: for thousands of damaged headers and blobs, which it alone judges. And in
 * the tests' own, for what only its insides show.
 */
import { expect } from "chai";
import { systemClock } from "../../src/clock.js";
import { VaultError } from "../../src/errors.js";
import { KeyWorker } from "../../src/vault/key-worker.js";
import { later } from "../../tools/rig/clean-up.js";
import { passphrase, testScryptLogN } from "../../tools/rig/server.js";
import { newContext } from "../../workers/operations/key-worker.js";
import { adopt, init, load } from "../../workers/operations/lifecycle.js";
import type { Bytes, ResultOf, SharedBytes } from "../../workers/protocol.js";

const settings = { maxValueBytes: 1024, keepVersions: 0, keepVersionBytes: 0, minScryptLogN: testScryptLogN };

/** Starts a thread, unlocked when a header is given. A crash of it fails the next call. */
export async function startKeyWorker(header: Uint8Array | null = null): Promise<KeyWorker> {
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

export type Context = ReturnType<typeof newContext>;

/** A key worker in this thread, with a new, unlocked vault. */
export async function keyWorkerHere(): Promise<{ readonly context: Context; readonly header: Bytes }> {
  const context = newContext(settings, new Int32Array(new SharedArrayBuffer(4)));
  must(load(context, { op: "load", header: null }));
  return { context, header: await initHere(context) };
}

/** Puts a new vault in the place of the one that there is; returns its header. */
export async function initHere(context: Context): Promise<Bytes> {
  const body = sharedBytes(JSON.stringify({ passphrase, force: true }));
  const { header } = must<ResultOf<"init">>(await init(context, { op: "init", body, logN: testScryptLogN, now: 0 }));
  must(adopt(context));
  return header;
}

export function must<R extends { readonly ok: boolean }>(result: R): Extract<R, { readonly ok: true }> {
  expect(result).to.include({ ok: true });
  return result as Extract<R, { readonly ok: true }>;
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
