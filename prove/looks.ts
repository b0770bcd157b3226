/** Looks into a copy of the server's memory, in one state of the vault. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type AttackResult, attack, type OnProgress } from "./attacker.js";
import type { Header, Keys } from "./format.js";
import { readPlain } from "./home.js";
import { copyMemory, type MemoryCopy } from "./memory.js";
import { filesOfProgram } from "./program.js";
import { type Check, CouldNotLook, type VaultState } from "./report.js";
import { type Found, type Secret, SecretSearch } from "./search.js";
import type { Server } from "./server.js";
import { isAsymmetricName } from "./transit-keys.js";

/** A failure counts only when it is still there in the last of these copies: a request may hold a key for milliseconds. */
const mostLooks = 3;
const pauseMs = 400;
/** Time to repeat copies that do not count, because the vault changed around them. */
const disturbedMs = 180_000;

/** Values to search for. `keys`: null without the passphrase. */
export type Wanted = {
  readonly header: Header;
  readonly keys: Keys | null;
  readonly passphrase: Uint8Array | null;
  readonly canary: readonly Secret[];
  /** Private transit keys, in all their forms. */
  readonly transit: readonly Secret[];
};

export type Look = {
  readonly checks: readonly Check[];
  readonly attack: AttackResult;
  readonly stoodStillMs: number;
  readonly copiedBytes: number;
};

type Circumstances = {
  readonly pid: number;
  readonly server: Server | null;
  readonly state: VaultState;
  /** Returns what to look for, under the header as it is now; null while the passphrase does not open that. */
  readonly wanted: () => Promise<Wanted | null>;
  readonly onProgress: OnProgress;
};

/** Copies and judges until everything holds, or a failure has lasted. @throws CouldNotLook */
export async function lookAt(circumstances: Circumstances): Promise<Look> {
  let last: Look | null = null;
  let deadline = performance.now() + disturbedMs;
  for (let looks = 0; looks < mostLooks; ) {
    const look = await lookOnce(circumstances);
    if (look === null) {
      if (performance.now() > deadline)
        throw new CouldNotLook("keys are being derived all the time: try again when the server is less busy");
      await sleep(pauseMs / 4);
      continue;
    }
    deadline = performance.now() + disturbedMs;
    last = last === null ? look : { ...look, checks: lastingChecks(last.checks, look.checks) };
    if (last.checks.every(({ holds }) => holds)) return last;
    looks++;
    await sleep(pauseMs);
  }
  if (last === null) throw new CouldNotLook("the memory could not be copied");
  return last;
}

/**
 * Returns the checks of `after` where those of `before` failed too: a check that held once holds, and what was found in the
 * other copy was a request at work. DANGER: compared by name, as a rotation between the copies adds or removes a check.
 */
export function lastingChecks(before: readonly Check[], after: readonly Check[]): Check[] {
  const held = new Map(before.filter(({ holds }) => holds).map((check) => [check.what, check]));
  return after.map((check) => held.get(check.what) ?? check);
}

/** Null when the vault's keys or state changed around the copy. */
async function lookOnce({ pid, server, state, wanted, onProgress }: Circumstances): Promise<Look | null> {
  const before = await derivationsNow(server, state);
  const sought = await wanted();
  if (sought === null) return null;
  const copy = await wholeCopy(pid);
  try {
    const after = await derivationsNow(server, state);
    const isSameHeader = (await wanted())?.header.signed.equals(sought.header.signed) === true;
    if (before === null || before !== after || !isSameHeader) return null;
    const problem = problemOfCopy(copy, sought.header);
    if (problem !== null) throw new CouldNotLook(`process ${pid}: ${problem}`);
    const judged = judge(copy, sought, state, isPublicIn(pid), onProgress);
    return { ...judged, stoodStillMs: copy.stoodStillMs, copiedBytes: copy.bytes.length };
  } finally {
    copy.bytes.fill(0);
  }
}

/** Once more when the process grew by more than a copy has room for. */
async function wholeCopy(pid: number): Promise<MemoryCopy> {
  const copy = await copyMemory(pid);
  if (copy.missing === 0) return copy;
  copy.bytes.fill(0);
  return copyMemory(pid);
}

/** Equal before and after a copy if no key was derived and the state stayed; null while one is being derived. */
async function derivationsNow(server: Server | null, state: VaultState): Promise<string | null> {
  if (server === null) return "unknown";
  const isLocked = await server.isLocked();
  if (state !== null && isLocked !== (state === "locked")) throw new CouldNotLook(`the vault did not stay ${state}`);
  return server.hasToken ? JSON.stringify(await server.derivations()) : "unknown";
}

/**
 * Returns why nothing follows from what is not in a copy; null for all the memory of a server of this vault, which holds the
 * vault's id in every state: as bytes, or in a text of the header.
 */
export function problemOfCopy({ bytes, regions, missing }: MemoryCopy, { vaultId }: Header): string | null {
  const forms = [vaultId, Buffer.from(vaultId.toString("base64url"))];
  const isIn = ({ offset, length }: MemoryCopy["regions"][number]) => {
    const region = Buffer.from(bytes.buffer, bytes.byteOffset + offset, length);
    return forms.some((form) => region.includes(form));
  };
  if (!regions.some(isIn)) return "this is not the memory of a server of this vault: the vault's id is not in it";
  return missing > 0 ? `${missing} bytes of its memory are missing` : null;
}

/**
 * Judges a copy: the attacker's scan, then the search for all that is known.
 * @param isPublic - null when the process's files are not known, as for a dump
 */
export function judge(
  copy: MemoryCopy,
  { header, keys, passphrase, canary, transit }: Wanted,
  state: VaultState,
  isPublic: ((piece: Buffer) => boolean) | null,
  onProgress: OnProgress,
): { readonly checks: Check[]; readonly attack: AttackResult } {
  const result = attack(header, copy, onProgress);
  const search = new SecretSearch([...knownSecrets(keys, passphrase, isPublic === null), ...transit, ...canary]);
  search.searchCopy(copy);
  const found = search.take(isPublic ?? undefined);
  const others = new Set([...transit, ...canary]);
  const known = found.filter(([secret]) => !others.has(secret));
  const transitChecks = [...new Set(transit.map(({ name }) => name))].map((name) => {
    return transitCheck(
      state,
      name,
      found.filter(([secret]) => secret.name === name),
    );
  });
  const checks = [
    attackCheck(state, result),
    ...known.map(([secret, each]) => knownCheck(state, secret, each)),
    ...transitChecks,
  ];
  if (canary.length > 0)
    checks.push(
      canaryCheck(
        state,
        found.filter(([secret]) => canary.includes(secret)).map(([, each]) => each),
      ),
    );
  return { checks, attack: result };
}

const masterKeyName = "master key";

/** Eight bytes of a passphrase may be a word that stands in a program; in a dump, only longer pieces count. */
const textPieceInDump = 12;

function knownSecrets(keys: Keys | null, passphrase: Uint8Array | null, isDump: boolean): Secret[] {
  const typed = keys?.kekSlot.kind === "key" ? "recovery key" : "passphrase";
  const key = (name: string, bytes: Uint8Array | null | undefined): Secret[] => {
    return bytes ? [{ name, bytes, isText: false, pieceBytes: 8 }] : [];
  };
  return [
    ...key(masterKeyName, keys?.masterKey),
    ...key(`${masterKeyName} before the rotation`, keys?.oldKey),
    ...key(`KEK of the ${typed}`, keys?.kek),
    ...(passphrase === null
      ? []
      : [{ name: typed, bytes: passphrase, isText: true, pieceBytes: isDump ? textPieceInDump : 8 }]),
  ];
}

function attackCheck(state: VaultState, { places }: AttackResult): Check {
  const found = places.length;
  const what = "places that open the vault";
  if (state === null) return { step: "attacker", state, what, expected: "0 or 1", found, holds: found <= 1 };
  const expected = state === "unlocked" ? 1 : 0;
  const slots = places.filter(({ opens }) => opens === "slot").length;
  const control = state === "unlocked" && found === 0 ? "the control was not found, so the method has failed" : null;
  const detail = control ?? (slots > 0 ? `${slots} of them by a slot's KEK` : null);
  return { step: "attacker", state, what, expected, found, holds: found === expected, ...(detail && { detail }) };
}

/** Unlocked, a master key is held exactly once: at the start of its expanded form. */
function knownCheck(state: VaultState, { name }: Secret, { copies, pieces }: Found): Check {
  const isMaster = name.startsWith(masterKeyName);
  const found = copies.length + pieces;
  const what = `copies of the ${name}`;
  const most = isMaster && state !== "locked" ? 1 : 0;
  const isExact = state === "unlocked" && isMaster;
  const holds = isExact ? found === 1 && pieces === 0 : found <= most;
  const expected = state === null && isMaster ? "0 or 1" : most;
  return {
    step: "known-keys",
    state,
    what,
    expected,
    found,
    holds,
    ...(holds ? {} : { detail: countForms(copies, pieces) }),
  };
}

/** Unlocked, OpenSSL holds the numbers of asymmetric keys that were used; symmetric keys are opened for each use. */
function transitCheck(state: VaultState, name: string, all: readonly (readonly [Secret, Found])[]): Check {
  const copies = all.flatMap(([, each]) => each.copies);
  const pieces = all.reduce((sum, [, each]) => sum + each.pieces, 0);
  const found = copies.length + pieces;
  const what = `copies of the ${name}`;
  const isHeld = state !== "locked" && isAsymmetricName(name);
  const holds = isHeld ? all.every(isOfNumber) : found === 0;
  const expected = isHeld ? "raw numbers only, of keys in use" : 0;
  const detail = found === 0 ? {} : { detail: countForms(copies, pieces) };
  return { step: "known-keys", state, what, expected, found, holds, ...detail };
}

/** Whether what was found is a number as OpenSSL holds it, and no text, DER or PEM. */
function isOfNumber([{ pieceBytes }, { copies }]: readonly [Secret, Found]): boolean {
  return copies.length === 0 || (pieceBytes > 0 && copies.every((form) => form === "raw"));
}

function countForms(copies: readonly string[], pieces: number): string {
  const forms = [...new Set(copies)].map((form) => `${copies.filter((copy) => copy === form).length} ${form}`);
  return [...forms, ...(pieces > 0 ? [`${pieces} in pieces`] : [])].join(", ");
}

function canaryCheck(state: VaultState, found: readonly Found[]): Check {
  const copies = found.flatMap((each) => each.copies);
  const pieces = found.reduce((sum, each) => sum + each.pieces, 0);
  const count = copies.length + pieces;
  const what = "copies of the value that was followed";
  const detail = count === 0 ? {} : { detail: countForms(copies, pieces) };
  return { step: "canary", state, what, expected: 0, found: count, holds: count === 0, ...detail };
}

/** Returns whether a piece of a passphrase also stands in files that the process runs: they have many English words. */
function isPublicIn(pid: number): (piece: Buffer) => boolean {
  let files: Buffer[] | null = null;
  return (piece) => {
    files ??= [...mappedFiles(pid), ...filesOfProgram(pid)].map((file) => readPlain(file));
    return files.some((file) => file.includes(piece));
  };
}

/** Node and its libraries. */
function mappedFiles(pid: number): string[] {
  const lines = readFileSync(`/proc/${pid}/maps`, "latin1").split("\n");
  const files = lines.flatMap((line) => /^\S+ r-?x?p? ?.* (\/\S+)$/.exec(line)?.[1] ?? []);
  return [...new Set(files)].filter((file) => /\/node$|\.so\b/.test(file));
}
