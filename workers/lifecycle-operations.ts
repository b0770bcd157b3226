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

  init({ body, logN, now }: RequestOf<"init">): ReplyOf<"init"> | Promise<ReplyOf<"init">> {
    const read = this.#readers.init(body);
    if (!read.ok) return read;
    const { fields } = read;
    const refusal = this.#whyNotInit(fields);
    if (refusal !== null) {
      wipe(fields.passphrase.bytes);
      return refusal;
    }
    return new Promise((answer) => {
      const job = () => this.#initInTurn(fields, logN, now, answer);
      this.#derivations.run(fields.passphrase.bytes, job).then(
        (outcome) => outcome && answer(outcome === "full" ? tooMany : lockedMeanwhile),
        (error: unknown) => answer(unexpected(error)),
      );
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
    const read = this.#readers.unlock(body);
    if (!read.ok) return read;
    const passphrase = read.fields.passphrase.bytes;
    const refusal = this.#whyNotUnlock();
    if (refusal !== null) {
      wipe(passphrase);
      return refusal;
    }
    const outcome = await this.#derivations.run(passphrase, () => this.#unlockInTurn(passphrase));
    if (outcome === "full") return tooMany;
    return outcome === "cancelled" ? lockedMeanwhile : outcome;
  }

  async lock(): Promise<ReplyOf<"lock">> {
    this.#keyring.lock();
    await this.#derivations.cancel();
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
    body: InitBody,
    logN: number,
    now: number,
    answer: (reply: ReplyOf<"init">) => void,
  ): Promise<void> {
    const refusal = this.#whyNotInit(body);
    if (refusal !== null) return answer(refusal);
    const { lockings } = this.#keyring;
    const { header, masterKey } = await createHeader(body.passphrase.bytes, logN, now);
    wipe(body.passphrase.bytes);
    if (lockings !== this.#keyring.lockings) {
      wipe(masterKey);
      return answer(lockedMeanwhile);
    }
    const decided = this.#keyring.propose(header, masterKey);
    answer({ ok: true, header: concat([header.bytes]) });
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
