/** Check of an audit log's checkpoints with the vault's passphrase, without a server. */
import type { Bytes } from "../../workers/protocol.js";
import { signedOf } from "../audit/format.js";
import type { Judge } from "../audit/verify.js";
import { Keys } from "./doctor/offline-keys.js";

/**
 * Runs work with a judge that has the key of the vault with this header. The passphrase is wiped.
 * @throws VaultError UNAUTHORIZED, INTEGRITY
 */
export async function withOfflineJudge<T>(
  header: Bytes,
  passphrase: Bytes,
  work: (judge: Judge) => Promise<T>,
): Promise<T> {
  const keys = new Keys(passphrase);
  try {
    await keys.unlock("current", header);
    return await work((checkpoints) => keys.verifyCheckpoints(checkpoints.map(signedOf)));
  } finally {
    await keys.stop();
  }
}
