/**
 * Key workers of maintenance, without a server: a worker without a key checks structure and, given the passphrase, one
 * with a key opens the secrets of one vault. No value leaves them.
 */
import type {
  BlobFault,
  BlobOutline,
  Bytes,
  CheckpointVerdict,
  SharedBytes,
  SignedCheckpoint,
} from "../../workers/protocol.js";
import { signedCheckpoint } from "../audit/format.js";
import type { CheckpointJudge } from "../audit/verify.js";
import { systemClock } from "../clock.js";
import { VaultError } from "../errors.js";
import { KeyWorker } from "../vault/key-worker.js";

/** Bytes of a blob that its structure check needs. */
export const headBytes = 9;

/** Whether a server can use a header. */
export type HeaderCheck = (header: Bytes) => Promise<boolean>;

export class Keys {
  readonly #judge = startWorker();
  readonly #passphrase: Bytes | null;
  #opener: { readonly generation: string; readonly header: Bytes; readonly worker: KeyWorker } | null = null;

  /** Takes the passphrase, and wipes it in `stop`. Null: nothing is opened. */
  constructor(passphrase: Bytes | null) {
    this.#passphrase = passphrase;
  }

  /** Whether the header is valid. */
  async understands(header: Bytes): Promise<boolean> {
    return (await unlessDamaged(this.#judge.call({ op: "load", header: copyBytes(header) }))) !== null;
  }

  async findFaults(blobs: readonly BlobOutline[]): Promise<readonly (BlobFault | null)[]> {
    return (await this.#judge.call({ op: "inspect", blobs })).faults;
  }

  /**
   * Unlocks the vault of the first call, and again once a server has changed its header: a rotation makes another key. Does
   * nothing for other vaults. @throws VaultError UNAUTHORIZED
   */
  async unlock(generation: string, header: Bytes): Promise<void> {
    const before = this.#opener;
    if (this.#passphrase === null) return;
    if (before !== null && (before.generation !== generation || Buffer.compare(before.header, header) === 0)) return;
    const worker = before?.worker ?? startWorker();
    this.#opener = { generation, header, worker };
    try {
      await worker.call({ op: "load", header: copyBytes(header) });
      const body = passphraseBody(this.#passphrase);
      await worker.call({ op: "unlock", body }).finally(() => body.fill(0)); // its thread may have crashed
    } catch (error) {
      this.#opener = null; // it has no key
      await worker.stop();
      throw error;
    }
  }

  /** Name of the unlocked vault. */
  get opened(): string | null {
    return this.#opener?.generation ?? null;
  }

  /**
   * Opens all versions of the secret, or of the transit key, at this path of the unlocked vault. Returns when the secret
   * expires, in milliseconds since 1970, or null when it does not. Returns null if a version is damaged.
   */
  async check(path: string, blob: Bytes, isKey = false): Promise<{ readonly expiresAt: number | null } | null> {
    const worker = this.#opener?.worker;
    if (worker === undefined) throw new Error("nothing was unlocked");
    return unlessDamaged(worker.call({ op: "check", path, blob, isKey }));
  }

  /** Whether each text has the MAC that the unlocked vault's key worker made. */
  async verifyRecords(texts: readonly string[], macs: readonly string[]): Promise<readonly boolean[]> {
    const worker = this.#opener?.worker;
    if (worker === undefined) throw new Error("nothing was unlocked");
    return (await worker.call({ op: "verifyRecords", texts, macs })).valid;
  }

  /** Checks the MACs of the audit log's checkpoints with the key of the unlocked vault. */
  async verifyCheckpoints(checkpoints: readonly SignedCheckpoint[]): Promise<readonly CheckpointVerdict[]> {
    const worker = this.#opener?.worker;
    if (worker === undefined) throw new Error("nothing was unlocked");
    return (await worker.call({ op: "verifyCheckpoints", checkpoints })).verdicts;
  }

  async stop(): Promise<void> {
    this.#passphrase?.fill(0);
    await this.#opener?.worker.call({ op: "lock" }).catch(() => {}); // an ended thread holds no key
    await Promise.all([this.#judge.stop(), this.#opener?.worker.stop()]);
  }
}

/**
 * Runs work with a judge of audit checkpoints that has the key of the vault with this header. The passphrase is wiped.
 * @throws VaultError UNAUTHORIZED, INTEGRITY
 */
export async function withOfflineJudge<T>(
  header: Bytes,
  passphrase: Bytes,
  work: (judge: CheckpointJudge) => Promise<T>,
): Promise<T> {
  const keys = new Keys(passphrase);
  try {
    await keys.unlock("current", header);
    return await work((checkpoints) => keys.verifyCheckpoints(checkpoints.map(signedCheckpoint)));
  } finally {
    await keys.stop();
  }
}

function startWorker(): KeyWorker {
  const settings = { maxValueBytes: 0, keepVersions: 0, keepVersionBytes: 0 };
  return KeyWorker.start({ settings, clock: systemClock, crashed: () => {} });
}

/** Returns null when the key worker reports damage. */
async function unlessDamaged<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof VaultError && error.code === "INTEGRITY") return null;
    throw error;
  }
}

/** Bytes sent to the key worker are transferred. */
function copyBytes(bytes: Bytes): Bytes {
  return bytes.slice();
}

/**
 * Returns the JSON body of an unlock, `{"passphrase":"…"}`, of valid UTF-8, without making a string of it. The caller wipes
 * both.
 */
function passphraseBody(passphrase: Uint8Array): SharedBytes {
  const before = '{"passphrase":"';
  const after = '"}';
  const escapes = passphrase.reduce((sum, byte) => sum + (jsonEscape(byte)?.length ?? 1) - 1, 0);
  const body = new Uint8Array(new SharedArrayBuffer(before.length + passphrase.length + escapes + after.length));
  let at = putAscii(body, 0, before);
  for (const byte of passphrase) {
    const spelled = jsonEscape(byte);
    if (spelled === null) body[at++] = byte;
    else at = putAscii(body, at, spelled);
  }
  putAscii(body, at, after);
  return body;
}

/** Returns the JSON escape of a byte; null when it needs none. */
function jsonEscape(byte: number): string | null {
  if (byte === 0x22 || byte === 0x5c) return byte === 0x22 ? '\\"' : "\\\\";
  return byte < 0x20 ? `\\u00${byte.toString(16).padStart(2, "0")}` : null;
}

/** Returns the end of the text. */
function putAscii(target: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) target[at + i] = text.charCodeAt(i);
  return at + text.length;
}
