/** Changes of the header that a passphrase, or the text of a key, allows: each in its turn, proposed to the vault. */
import type { Header, Slot } from "../crypto/header-members.js";
import { changeSlots, type VaultKeys } from "../crypto/master-key.js";
import { type Access, findAccess, isMistypedKey } from "../crypto/slots.js";
import type { Keyring } from "../keyring.js";
import { concat, wipe, withScratch } from "../memory.js";
import type { Bytes, SharedBytes } from "../owned-bytes.js";
import {
  changedHeader,
  lockedMeanwhile,
  mistypedKey,
  notInitialized,
  notMounted,
  wrongPassphrase,
} from "../refusals.js";
import type { HeaderReply, Refusal } from "../replies.js";
import type { Outcome, Turns } from "../turns.js";

export type HeaderOutcome = Outcome<HeaderReply | Refusal>;

/** A header, and a proven way into it. */
export type Opened = { readonly header: Header; readonly access: Access; readonly lockings: number };

export class HeaderAccess {
  readonly #keyring: Keyring;
  readonly #turns: Turns;

  constructor(keyring: Keyring, turns: Turns) {
    this.#keyring = keyring;
    this.#turns = turns;
  }

  /** Proves the passphrase, then lets `change` propose another header; wipes the body. */
  changing(
    body: SharedBytes,
    passphrase: Uint8Array,
    change: (opened: Opened) => Promise<HeaderOutcome>,
  ): Promise<HeaderReply | Refusal> {
    const refusal = this.#whyNot(passphrase);
    if (refusal !== null) return refusing(body, refusal);
    return this.#turns.take(body, async () => {
      const { header, lockings } = this.#keyring;
      if (!header) return { reply: noHeader(header) };
      const access = await findAccess(header, passphrase);
      if (access === null) return { reply: wrongPassphrase };
      return change({ header, access, lockings }).finally(() => wipe(access.kek));
    });
  }

  /** Proposes the header with other slots. */
  withSlots(opened: Opened, change: (masterKey: Bytes) => readonly Slot[], reply: Bytes): HeaderOutcome {
    if (this.isLate(opened)) return { reply: lockedMeanwhile };
    const changed = withScratch(() => changeSlots(opened.header, opened.access, change));
    return changed === null ? { reply: changedHeader } : this.propose(changed, null, reply);
  }

  /** Whether the vault was locked since the way in was proven. */
  isLate({ lockings }: Opened): boolean {
    return lockings !== this.#keyring.lockings;
  }

  propose(changed: Header, keys: VaultKeys | null, reply: Bytes): HeaderOutcome {
    const until = this.#keyring.propose(changed, keys);
    return { reply: { ok: true, header: concat([changed.bytes]), reply }, until };
  }

  #whyNot(passphrase: Uint8Array): Refusal | null {
    const { header } = this.#keyring;
    if (!header) return noHeader(header);
    return isMistypedKey(header, passphrase) ? mistypedKey : null;
  }
}

export function noHeader(header: null | undefined): Refusal {
  return header === null ? notInitialized : notMounted;
}

export async function refusing(body: SharedBytes, refusal: Refusal): Promise<Refusal> {
  wipe(body);
  return refusal;
}
