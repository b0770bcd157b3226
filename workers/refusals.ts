/** Owns the texts with which the key worker refuses. They are for the client, and never repeat any input but a path. */
import type { Refusal } from "./protocol.js";

function refuse(code: Refusal["code"], detail: string): Refusal {
  return { ok: false, code, detail };
}

export const lockedNow = refuse("VAULT_LOCKED", "the vault is locked: unlock it first");
export const lockedMeanwhile = refuse("VAULT_LOCKED", "the vault was locked while this request waited: send it again");
export const tooMany = refuse("RATE_LIMITED", "too many passphrases are being checked: try again in a second");
export const alreadyExists = refuse(
  "ALREADY_EXISTS",
  "the vault is already initialized: unlock it, or send force: true",
);
export const notInitialized = refuse("BAD_REQUEST", "the vault is not initialized: init it first");
export const wrongPassphrase = refuse("UNAUTHORIZED", "the passphrase is wrong");
export const brokenHeader = refuse("INTEGRITY", "the vault's header is damaged or from a later version");
export const notMounted = refuse("INTERNAL", "the key worker was not told which vault it serves: try again");

/** For a failure that nobody foresaw: its text may hold what must not leave this thread, the places it passed do not. */
export function unexpected(error: unknown): Refusal {
  const frames = error instanceof Error ? error.stack?.split("\n").filter((line) => line.startsWith("    at ")) : [];
  return { ...refuse("INTERNAL", "the key worker failed"), trace: frames?.join("\n") ?? "" };
}

export function damaged(path: string, remedy: string): Refusal {
  const problem = `the stored secret at ${path} is damaged, or was moved here from elsewhere`;
  return refuse("INTEGRITY", `${problem}: ${remedy} (strongroom doctor tells more)`);
}
