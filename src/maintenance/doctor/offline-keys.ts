/**
 * Owns doctor's key workers: one that judges structure and never holds a key, and, with the passphrase, one that opens
 * the secrets of one vault. Values are wiped as soon as they have opened.
 */
import type { BlobFault, BlobOutline, Bytes } from "../../../workers/protocol.js";
import { systemClock } from "../../clock.js";
import { VaultError } from "../../errors.js";
import { KeyWorkerClient } from "../../vault/worker/key-worker-client.js";
import { passphraseBody } from "./passphrase-body.js";

/** Enough of a blob to judge its structure. */
export const headBytes = 9;

export class Keys {
  readonly #judge = startWorker();
  readonly #passphrase: Bytes | null;
  #opener: { readonly generation: string; readonly worker: KeyWorkerClient } | null = null;

  /** Wipes the passphrase in the end. Null: nothing is opened. */
  constructor(passphrase: Bytes | null) {
    this.#passphrase = passphrase;
  }

  /** Whether it is a header that this version wrote. */
  async understands(header: Bytes): Promise<boolean> {
    return succeeds(this.#judge.call({ op: "mount", header: copyOf(header) }));
  }

  async faultsOf(blobs: readonly BlobOutline[]): Promise<readonly (BlobFault | null)[]> {
    return (await this.#judge.call({ op: "inspect", blobs })).faults;
  }

  /** Unlocks the vault that is in force when it is first asked for. @throws VaultError UNAUTHORIZED */
  async unlock(generation: string, header: Bytes): Promise<void> {
    if (this.#passphrase === null || this.#opener !== null) return;
    const worker = startWorker();
    this.#opener = { generation, worker };
    await worker.call({ op: "mount", header: copyOf(header) });
    await worker.call({ op: "unlock", body: passphraseBody(this.#passphrase) });
  }

  /** The vault that was unlocked. */
  get opened(): string | null {
    return this.#opener?.generation ?? null;
  }

  /** Whether the blob is the secret at this path of the vault that was unlocked. */
  async opens(path: string, blob: Bytes): Promise<boolean> {
    const worker = this.#opener?.worker;
    if (worker === undefined) throw new Error("nothing was unlocked");
    return succeeds(worker.call({ op: "open", path, blob }).then(({ reply }) => reply.fill(0)));
  }

  async stop(): Promise<void> {
    this.#passphrase?.fill(0);
    await this.#opener?.worker.call({ op: "lock" }).catch(() => {}); // a thread that ended holds no key
    await Promise.all([this.#judge.stop(), this.#opener?.worker.stop()]);
  }
}

function startWorker(): KeyWorkerClient {
  return KeyWorkerClient.start({ maxValueBytes: 0 }, systemClock, () => {});
}

/** False when the key worker answers that what it was given is damaged. */
async function succeeds(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer;
    return true;
  } catch (error) {
    if (error instanceof VaultError && error.code === "INTEGRITY") return false;
    throw error;
  }
}

/** What goes to the key worker is moved there. */
function copyOf(bytes: Bytes): Bytes {
  return bytes.slice();
}
