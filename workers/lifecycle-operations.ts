/** Lifecycle operations of the key worker: mount, init, adopt or discard, unlock, lock. */
import { DerivationQueue } from "./crypto/derivation.js";
import { createHeader, parseHeader, unwrapMasterKey } from "./crypto/header.js";
import type { Keyring } from "./keyring.js";
import { concat, utf8, wipe } from "./memory.js";
import type { Done, Refusal, ReplyOf, RequestOf } from "./protocol.js";
import {
  alreadyExists,
  brokenHeader,
  lockedMeanwhile,
  notInitialized,
  notMounted,
  tooMany,
  unexpected,
  wrongPassphrase,
} from "./refusals.js";
import type { BodyReaders, InitBody } from "./request-bodies.js";

const waitingDerivations = 16;
const done: Done = { ok: true };

export class Lifecycle {
  readonly #keyring: Keyring;
  readonly #readers: BodyReaders;
  readonly #minScryptLogN: number | undefined;
  readonly #derivations = new DerivationQueue(waitingDerivations);

  constructor(keyring: Keyring, readers: BodyReaders, minScryptLogN: number | undefined) {
    this.#keyring = keyring;
    this.#readers = readers;
    this.#minScryptLogN = minScryptLogN;
  }

  mount({ header }: RequestOf<"mount">): ReplyOf<"mount"> {
    const parsed = header && parseHeader(header, this.#minScryptLogN);
    if (header && !parsed) return brokenHeader;
    this.#keyring.mount(parsed);
    return done;
  }

  init(request: RequestOf<"init">): ReplyOf<"init"> | Promise<ReplyOf<"init">> {
    const { body } = request;
    const read = this.#readers.init(body);
    const refusal = read.ok ? this.#whyNotInit(read.fields) : read;
    if (!read.ok || refusal !== null) {
      wipe(body);
      return refusal ?? notMounted;
    }
    return new Promise((reply) => {
      this.#derivations
        .run(() => this.#initInTurn(request, read.fields, reply))
        .then(
          (outcome) => outcome && reply(outcome === "full" ? tooMany : lockedMeanwhile),
          (error: unknown) => reply(unexpected(error)),
        )
        .finally(() => wipe(body));
    });
  }

  adopt(): ReplyOf<"adopt"> {
    return this.#keyring.adopt() ? done : notMounted;
  }

  discard(): ReplyOf<"discard"> {
    this.#keyring.discard();
    return done;
  }

  async unlock({ body }: RequestOf<"unlock">): Promise<ReplyOf<"unlock">> {
    try {
      const read = this.#readers.unlock(body);
      if (!read.ok) return read;
      const refusal = this.#whyNotUnlock();
      if (refusal !== null) return refusal;
      const outcome = await this.#derivations.run(() => this.#unlockInTurn(read.fields.passphrase.bytes));
      if (outcome === "full") return tooMany;
      return outcome === "cancelled" ? lockedMeanwhile : outcome;
    } finally {
      wipe(body);
    }
  }

  lock(): ReplyOf<"lock"> {
    this.#keyring.lock();
    this.#derivations.cancel();
    return done;
  }

  async drain(): Promise<ReplyOf<"drain">> {
    await this.#derivations.idle();
    return done;
  }

  #whyNotInit({ force }: InitBody): Refusal | null {
    if (this.#keyring.header === undefined) return notMounted;
    return this.#keyring.header !== null && force !== true ? alreadyExists : null;
  }

  #whyNotUnlock(): Refusal | null {
    if (this.#keyring.header === undefined) return notMounted;
    return this.#keyring.header === null ? notInitialized : null;
  }

  /** Replies early, then keeps its turn until the new vault is adopted or discarded: no unlock may come between. */
  async #initInTurn(
    { body, logN, now }: RequestOf<"init">,
    fields: InitBody,
    reply: (reply: ReplyOf<"init">) => void,
  ): Promise<void> {
    const refusal = this.#whyNotInit(fields);
    if (refusal !== null) return reply(refusal);
    const { lockings } = this.#keyring;
    const { header, masterKey } = await createHeader(fields.passphrase.bytes, logN, now);
    wipe(body);
    if (lockings !== this.#keyring.lockings) {
      wipe(masterKey);
      return reply(lockedMeanwhile);
    }
    const decided = this.#keyring.propose(header, masterKey);
    reply({ ok: true, header: concat([header.bytes]) });
    return decided;
  }

  async #unlockInTurn(passphrase: Uint8Array): Promise<ReplyOf<"unlock">> {
    const { header, lockings } = this.#keyring;
    if (!header) return notInitialized;
    const masterKey = await unwrapMasterKey(header, passphrase);
    if (masterKey === null) return wrongPassphrase;
    if (lockings !== this.#keyring.lockings) {
      wipe(masterKey);
      return lockedMeanwhile;
    }
    this.#keyring.unlock(masterKey);
    return { ok: true, reply: utf8('{"ok":true,"message":"the vault is unlocked"}') };
  }
}
