/** Judgement of an audit log's checkpoints with the vault's passphrase, without a server. */
import type { Bytes } from "../../workers/protocol.js";
import { signedOf } from "../audit/audit-format.js";
import type { Judge } from "../audit/verify-log.js";
import { systemFiles } from "../files/durable.js";
import { currentGeneration } from "../storage/files/generations.js";
import { Keys } from "./doctor/offline-keys.js";

/**
 * Runs work with a judge that has the key of the home's current vault; null when there is no vault. The passphrase is wiped.
 * @throws VaultError UNAUTHORIZED
 */
export async function withOfflineJudge<T>(
  vaultPath: string,
  passphrase: Bytes,
  work: (judge: Judge | null) => Promise<T>,
): Promise<T> {
  const keys = new Keys(passphrase);
  try {
    const current = await currentGeneration(systemFiles, vaultPath);
    if (current === null) return await work(null);
    await keys.unlock(current.directory, current.header);
    return await work((checkpoints) => keys.verifyCheckpoints(checkpoints.map(signedOf)));
  } finally {
    await keys.stop();
  }
}
