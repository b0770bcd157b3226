/**
 * Placeholder in place of a vault's header while a migration or a restore fills the vault: no server starts on it, and the
 * header that replaces it in the end makes everything current at once.
 *
 *   {"format":"strongroom unfinished vault","source":"…"}
 */
import type { Bytes } from "../../workers/protocol.js";
import { StartError } from "../errors.js";
import type { SecretStore } from "./secret-store.js";

const start = '{"format":"strongroom unfinished vault",';

/** `source` identifies what the vault is filled with. */
export function unfinishedHeader(source: string): Bytes {
  return new Uint8Array(Buffer.from(`${start}"source":${JSON.stringify(source)}}\n`, "utf8"));
}

export function isUnfinished(header: Uint8Array): boolean {
  return Buffer.from(header.subarray(0, start.length)).toString("latin1") === start;
}

/** @throws StartError when a migration or a restore into the store has not ended. */
export async function refuseUnfinished(store: SecretStore): Promise<void> {
  const header = await store.header();
  if (header === null || !isUnfinished(header)) return;
  const what = "holds an unfinished migration or restore";
  throw new StartError(`${store.vaultPath} ${what}: run the same command again to finish it, then start again`);
}
