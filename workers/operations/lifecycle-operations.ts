/** Lifecycle operations of the key worker: mount, init, adopt or discard, unlock, lock. */
import { parseHeader } from "../crypto/header.js";
import { createVault, endKeys, openHeader, rotationOf } from "../crypto/master-key.js";
import { findAccess, isMistypedKey } from "../crypto/slots.js";
import { strongerKdf, withStrongerKdf } from "../crypto/stronger-kdf.js";
import type { Keyring } from "../keyring.js";
import { concat, utf8, wipe, withScratch } from "../memory.js";
import type { ReplyOf, RequestOf } from "../protocol.js";
import {
  alreadyExists,
  brokenHeader,
  changedHeader,
  lockedMeanwhile,
  mistypedKey,
  notInitialized,
  notMounted,
  wrongPassphrase,
} from "../refusals.js";
import type { Done, Refusal } from "../replies.js";
import type { BodyReaders, InitBody } from "../request-bodies.js";
import type { Outcome, Turns } from "../turns.js";

const done: Done = { ok: true };

export class Lifecycle {
  readonly #keyring: Keyring;
  readonly #readers: BodyReaders;
  readonly #turns: Turns;
  readonly #minScryptLogN: number | undefined;

  constructor(keyring: Keyring, readers: BodyReaders, turns: Turns, minScryptLogN: number | undefined) {
    this.#keyring = keyring;
    this.#readers = readers;
    this.#turns = turns;
    this.#minScryptLogN = minScryptLogN;
  }

  mount({ header }: RequestOf<"mount">): ReplyOf<"mount"> {
    const parsed = header && parseHeader(header, this.#minScryptLogN);
    // DANGER: the header before would open, and seal into, another vault.
    this.#keyring.mount(header && !parsed ? undefined : parsed);
    if (header && !parsed) return brokenHeader;
    return { ok: true, rotation: rotationOf(parsed) };
  }

  async init(request: RequestOf<"init">): Promise<ReplyOf<"init">> {
    const read = this.#readers.init(request.body);
    const refusal = read.ok ? this.#whyNotInit(read.fields) : read;
    if (read.ok && refusal === null)
      return this.#turns.take(request.body, () => this.#initInTurn(request, read.fields));
    wipe(request.body);
    return refusal ?? notMounted;
  }

  adopt(): ReplyOf<"adopt"> {
    if (!this.#keyring.adopt()) return notMounted;
    return { ok: true, rotation: rotationOf(this.#keyring.header ?? null) };
  }

  discard(): ReplyOf<"discard"> {
    this.#keyring.discard();
    return done;
  }

  async unlock({ body, logN = 0 }: RequestOf<"unlock">): Promise<ReplyOf<"unlock">> {
    const read = this.#readers.unlock(body);
    const refusal = read.ok ? this.#whyNotUnlock(read.fields.passphrase.bytes) : read;
    if (read.ok && refusal === null)
      return this.#turns.take(body, () => this.#unlockInTurn(read.fields.passphrase.bytes, logN));
    wipe(body);
    return refusal ?? notMounted;
  }

  lock(): void {
    this.#keyring.lock();
    this.#turns.cancel();
  }

  async drain(): Promise<ReplyOf<"drain">> {
    await this.#turns.idle();
    return done;
  }

  #whyNotInit({ force }: InitBody): Refusal | null {
    if (this.#keyring.header === undefined) return notMounted;
    return this.#keyring.header !== null && force !== true ? alreadyExists : null;
  }

  #whyNotUnlock(passphrase: Uint8Array): Refusal | null {
    const { header } = this.#keyring;
    if (!header) return header === null ? notInitialized : notMounted;
    return isMistypedKey(header, passphrase) ? mistypedKey : null;
  }

  async #initInTurn({ logN, now }: RequestOf<"init">, fields: InitBody): Promise<Outcome<ReplyOf<"init">>> {
    const refusal = this.#whyNotInit(fields);
    if (refusal !== null) return { reply: refusal };
    const { lockings } = this.#keyring;
    const { header, keys } = await createVault(fields.passphrase.bytes, logN, now);
    if (lockings !== this.#keyring.lockings) {
      endKeys(keys);
      return { reply: lockedMeanwhile };
    }
    const until = this.#keyring.propose(header, keys);
    return { reply: { ok: true, header: concat([header.bytes]) }, until };
  }

  async #unlockInTurn(passphrase: Uint8Array, logN: number): Promise<Outcome<ReplyOf<"unlock">>> {
    const { header, lockings } = this.#keyring;
    if (!header) return { reply: notInitialized };
    const access = await findAccess(header, passphrase);
    if (access === null) return { reply: wrongPassphrase };
    const stronger = await strongerKdf(access, passphrase, logN).catch(() => null); // the unlock succeeds without it
    try {
      if (lockings !== this.#keyring.lockings) return { reply: lockedMeanwhile };
      return withScratch(() => {
        const keys = openHeader(header, access);
        if (keys === null) return { reply: changedHeader };
        this.#keyring.unlock(keys);
        const reply = utf8('{"ok":true,"message":"the vault is unlocked"}');
        const upgraded = stronger && withStrongerKdf(header, access, stronger);
        if (upgraded === null) return { reply: { ok: true, reply, header: null } };
        const until = this.#keyring.propose(upgraded, null);
        return { reply: { ok: true, reply, header: concat([upgraded.bytes]) }, until };
      });
    } finally {
      wipe(access.kek, stronger?.kek);
    }
  }
}
