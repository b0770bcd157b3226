/** Changes of the header that a passphrase, or the text of a key, authorizes: each in its turn, proposed to the vault. */
import type { Header, Slot } from "../crypto/header.js";
import type { Keyring } from "../crypto/keyring.js";
import { changeSlots, type VaultKeys } from "../crypto/master-key.js";
import { type Access, findAccess, isMistypedKey } from "../crypto/slots.js";
import { concat, wipe, withScratch } from "../memory.js";
import type { Bytes, HeaderResult, Refusal, SharedBytes } from "../protocol.js";
import { changedHeader, lockedMeanwhile, mistypedKey, noHeader, wrongPassphrase } from "../refusals.js";
import type { TurnResult } from "../turns.js";
import type { Context } from "./context.js";

export type HeaderOutcome = TurnResult<HeaderResult | Refusal>;

/** A header, and a proven way into it. */
export type Opened = { readonly header: Header; readonly access: Access; readonly lockings: number };

/** Proves the passphrase, then lets `change` propose another header; wipes the body. */
export function changingHeader(
  { keyring, turns }: Context,
  body: SharedBytes,
  passphrase: Uint8Array,
  change: (opened: Opened) => Promise<HeaderOutcome>,
): Promise<HeaderResult | Refusal> {
  if (!keyring.header) return refusing(body, noHeader(keyring.header));
  if (isMistypedKey(keyring.header, passphrase)) return refusing(body, mistypedKey);
  return turns.take(body, async () => {
    const { header, lockings } = keyring;
    if (!header) return { response: noHeader(header) };
    const access = await findAccess(header, passphrase);
    if (access === null) return { response: wrongPassphrase };
    return change({ header, access, lockings }).finally(() => wipe(access.kek));
  });
}

/** Proposes the header with other slots. */
export function proposeSlots(
  keyring: Keyring,
  opened: Opened,
  change: (masterKey: Bytes) => readonly Slot[],
  response: Bytes,
): HeaderOutcome {
  if (isLate(keyring, opened)) return { response: lockedMeanwhile };
  const changed = withScratch(() => changeSlots(opened.header, opened.access, change));
  return changed === null ? { response: changedHeader } : propose(keyring, changed, null, response);
}

/** Whether the vault was locked since the way in was proven. */
export function isLate(keyring: Keyring, { lockings }: Opened): boolean {
  return lockings !== keyring.lockings;
}

/** See `Keyring.propose`. */
export function propose(
  keyring: Keyring,
  changed: Header,
  keys: VaultKeys | null,
  response: Bytes,
  unlocks = true,
): HeaderOutcome {
  const until = keyring.propose(changed, keys, unlocks);
  return { response: { ok: true, header: concat([changed.bytes]), response }, until };
}

export async function refusing(body: SharedBytes, refusal: Refusal): Promise<Refusal> {
  wipe(body);
  return refusal;
}
