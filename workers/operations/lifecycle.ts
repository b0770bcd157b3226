/** Lifecycle operations: load a header, init, adopt or discard a proposed header, unlock, lock. */
import { type Header, parseHeader } from "../crypto/header.js";
import type { Keyring } from "../crypto/keyring.js";
import { createVault, endKeys, headerRotation, openHeader, strongerKdf, upgradedHeader } from "../crypto/master-key.js";
import { findAccess, isMistypedKey } from "../crypto/slots.js";
import { concat, utf8, wipe, withScratch } from "../memory.js";
import type { Done, Refusal, RequestOf, ResultOf } from "../protocol.js";
import {
  alreadyExists,
  brokenHeader,
  changedHeader,
  lockedMeanwhile,
  mistypedKey,
  noHeader,
  notInitialized,
  notLoaded,
  wrongPassphrase,
} from "../refusals.js";
import type { TurnResult } from "../turns.js";
import type { Context } from "./context.js";
import { refusing } from "./header-access.js";
import { signLastCheckpoint } from "./records.js";
import type { InitBody } from "./request-bodies.js";

const done: Done = { ok: true };

export function load({ keyring, settings, turns }: Context, { header }: RequestOf<"load">): ResultOf<"load"> {
  const parsed = header && parseHeader(header, settings.minScryptLogN);
  // DANGER: what waits would propose a header that its caller no longer adopts or discards, and nothing else could begin.
  turns.cancel();
  // DANGER: the previous header would open, and seal into, another vault.
  keyring.load(header && !parsed ? undefined : parsed);
  if (header && !parsed) return brokenHeader;
  return { ok: true, rotation: headerRotation(parsed) };
}

export function init(context: Context, request: RequestOf<"init">): Promise<ResultOf<"init">> {
  const { readers, keyring, turns } = context;
  const { body } = request;
  const read = readers.init(body);
  if (!read.ok) return refusing(body, read);
  const refusal = whyNotInit(keyring, read.fields);
  if (refusal !== null) return refusing(body, refusal);
  return turns.take(body, () => initInTurn(keyring, request, read.fields));
}

export function adopt({ keyring }: Context): ResultOf<"adopt"> {
  if (!keyring.adopt()) return notLoaded;
  return { ok: true, rotation: headerRotation(keyring.header ?? null) };
}

export function discard({ keyring }: Context): ResultOf<"discard"> {
  keyring.discard();
  return done;
}

export function unlock(context: Context, request: RequestOf<"unlock">): Promise<ResultOf<"unlock">> {
  const { readers, keyring, turns } = context;
  const { body, logN = 0, forVault } = request;
  const read = forVault ? readers.unseal(body) : readers.unlock(body);
  if (!read.ok) return refusing(body, read);
  const passphrase = read.fields.passphrase.bytes;
  const refusal = whyNotUnlock(keyring.header, passphrase);
  if (refusal !== null) return refusing(body, refusal);
  return turns.take(body, () => unlockInTurn(keyring, passphrase, logN));
}

export function lock(context: Context, { checkpoint }: RequestOf<"lock">): ResultOf<"lock"> {
  // DANGER: nothing may come between the two: without the key there is no signature.
  const signed = checkpoint === undefined ? null : signLastCheckpoint(context, checkpoint);
  context.keyring.lock();
  context.turns.cancel();
  context.transit.generations.cancel();
  return { ok: true, signed };
}

export async function drain({ turns, transit }: Context): Promise<ResultOf<"drain">> {
  await Promise.all([turns.idle(), transit.generations.idle()]);
  return done;
}

function whyNotInit({ header }: Keyring, { force }: InitBody): Refusal | null {
  if (header === undefined) return notLoaded;
  return header !== null && force !== true ? alreadyExists : null;
}

function whyNotUnlock(header: Header | null | undefined, passphrase: Uint8Array): Refusal | null {
  if (!header) return noHeader(header);
  return isMistypedKey(header, passphrase) ? mistypedKey : null;
}

async function initInTurn(
  keyring: Keyring,
  { logN, now }: RequestOf<"init">,
  fields: InitBody,
): Promise<TurnResult<ResultOf<"init">>> {
  const refusal = whyNotInit(keyring, fields);
  if (refusal !== null) return { response: refusal };
  const { lockings } = keyring;
  const { header, keys } = await createVault(fields.passphrase.bytes, logN, now);
  if (lockings !== keyring.lockings) {
    endKeys(keys);
    return { response: lockedMeanwhile };
  }
  const until = keyring.propose(header, keys);
  return { response: { ok: true, header: concat([header.bytes]) }, until };
}

async function unlockInTurn(
  keyring: Keyring,
  passphrase: Uint8Array,
  logN: number,
): Promise<TurnResult<ResultOf<"unlock">>> {
  const { header, lockings } = keyring;
  if (!header) return { response: notInitialized };
  const access = await findAccess(header, passphrase);
  if (access === null) return { response: wrongPassphrase };
  const stronger = await strongerKdf(header, access, passphrase, logN).catch(() => null); // the unlock succeeds without it
  try {
    if (lockings !== keyring.lockings) return { response: lockedMeanwhile };
    return withScratch(() => {
      const keys = openHeader(header, access);
      if (keys === null) return { response: changedHeader };
      keyring.unlock(keys);
      const response = utf8('{"ok":true,"message":"the vault is unlocked"}');
      const upgraded = logN === 0 ? null : upgradedHeader(header, access, keys, stronger);
      if (upgraded === null) return { response: { ok: true, response, header: null } };
      const until = keyring.propose(upgraded, null);
      return { response: { ok: true, response, header: concat([upgraded.bytes]) }, until };
    });
  } finally {
    wipe(access.kek, stronger?.kek);
  }
}
