/** Refusals of the key worker. The texts are for the client, and never repeat any input except a path. */
import { maxOperations } from "./body-limits.js";
import type { Refusal } from "./protocol.js";

function refuse(code: Refusal["code"], detail: string): Refusal {
  return { ok: false, code, detail };
}

export function forbidden(detail: string): Refusal {
  return refuse("FORBIDDEN", detail);
}

export function badRequest(detail: string): Refusal {
  return refuse("BAD_REQUEST", detail);
}

export const lockedNow = refuse("VAULT_LOCKED", "the vault is locked: unlock it first");
export const lockedMeanwhile = refuse(
  "VAULT_LOCKED",
  "the vault was locked while this request was waiting: send it again",
);
export const tooMany = refuse("RATE_LIMITED", "too many passphrases are being checked: try again in a second");
export const alreadyExists = refuse(
  "ALREADY_EXISTS",
  "the vault is already initialized: unlock it, or send force: true",
);
export const notInitialized = refuse("BAD_REQUEST", "the vault is not initialized: init it first");
export const wrongPassphrase = refuse("UNAUTHORIZED", "the passphrase is wrong");
export const mistypedKey = refuse("UNAUTHORIZED", "the key is mistyped: its check letters do not fit");
export const keyLikePassphrase = refuse(
  "BAD_REQUEST",
  "a passphrase that looks like the text of a key would be taken for one: choose another",
);
export const unfitLabel = refuse(
  "BAD_REQUEST",
  "label must be a text of 1 to 64 bytes of UTF-8, without control characters or leading or trailing white space",
);
export const sameLabel = refuse(
  "ALREADY_EXISTS",
  "a key with this label already exists: choose another, or delete that key",
);
export const tooManyKeys = refuse("BAD_REQUEST", "the vault has 15 keys, the most it can have: delete one first");
export const unknownKey = refuse("UNAUTHORIZED", "`keys` contains an unknown key: GET /v1/keys lists the valid ones");
export const alreadyRotating = refuse(
  "ALREADY_EXISTS",
  "a rotation of the master key is in progress: try again when GET /v1/status no longer reports it",
);
export const notRotating = refuse("BAD_REQUEST", "the master key is not being rotated");
export const needsPassphrase = refuse(
  "BAD_REQUEST",
  "a rotation wraps the new master key under the passphrase: send the passphrase itself, or delete it first",
);
export const noKey = refuse("NOT_FOUND", "there is no such key: GET /v1/keys lists them");
export const lastWayIn = refuse("BAD_REQUEST", "this is the last way into the vault: create another key first");
export const changedHeader = refuse(
  "INTEGRITY",
  "the vault's header is damaged, or was changed by another program: put its header.json back from a backup",
);
export const brokenHeader = refuse("INTEGRITY", "the vault's header is damaged or from a newer version");
export const notLoaded = refuse("INTERNAL", "the key worker has not loaded the vault yet: try again");

/** `header` null: the vault has none yet; undefined: none is loaded. */
export function noHeader(header: null | undefined): Refusal {
  return header === null ? notInitialized : notLoaded;
}

/** Hides an unexpected error: its message may hold secrets and must not leave this thread; its stack frames may. */
export function unexpected(error: unknown): Refusal {
  const frames = error instanceof Error ? error.stack?.split("\n").filter((line) => line.startsWith("    at ")) : [];
  return { ...refuse("INTERNAL", "the key worker failed"), trace: frames?.join("\n") ?? "" };
}

export function damaged(
  path: string,
  remedy = "install that version, restore its file from a backup, or delete it",
): Refusal {
  const problem = `the stored secret at ${path} is corrupt, belongs to another path or vault, or is from a newer version`;
  return refuse("INTEGRITY", `${problem}: ${remedy} (strongroom doctor shows more)`);
}

export function damagedVersion(path: string, version: number): Refusal {
  return refuse("INTEGRITY", `version ${version} of the secret at ${path} is damaged: restore its file from a backup`);
}

export function noTransitKey(name: string): Refusal {
  return refuse("NOT_FOUND", `there is no transit key ${name}`);
}

export function sameTransitKey(name: string): Refusal {
  return refuse("ALREADY_EXISTS", `a transit key ${name} already exists: rotate it, or use another name`);
}

export function damagedKey(name: string): Refusal {
  const problem = `the stored transit key ${name} is corrupt or belongs to another name or vault`;
  return refuse("INTEGRITY", `${problem}: restore its file from a backup (strongroom doctor shows more)`);
}

/** Texts that Vault's clients look for. */
export const casMismatch = refuse("BAD_REQUEST", "check-and-set parameter did not match the current version");
export const casRequired = refuse("BAD_REQUEST", "check-and-set parameter required for this call");

export const noOperations = refuse(
  "BAD_REQUEST",
  `the body must be one JSON object in UTF-8 with operations, an array of at most ${maxOperations}`,
);

export function noSecret(path: string): Refusal {
  return refuse("NOT_FOUND", `there is no secret at ${path}`);
}

export function goneVersion(path: string, version: number, state: "deleted" | "destroyed"): Refusal {
  const remedy = state === "deleted" ? ": POST /v1/versions/:path brings it back" : "";
  return refuse("NOT_FOUND", `version ${version} of the secret at ${path} is ${state}${remedy}`);
}

export function newestVersion(path: string): Refusal {
  const remedy = "move the secret to the trash, or delete it";
  return badRequest(`the newest version of the secret at ${path} cannot be destroyed: ${remedy}`);
}

export function noVersion(path: string, version: number): Refusal {
  const remedy = "GET /v1/versions/:path lists those that are kept";
  return refuse("NOT_FOUND", `version ${version} of the secret at ${path} is not kept: ${remedy}`);
}
