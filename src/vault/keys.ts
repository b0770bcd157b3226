/** Passphrase and keys of the vault: each change replaces its header. */
import type { Bytes, KeyDescription, Request, SharedBytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import type { Log } from "../log.js";
import type { DocumentChange } from "../storage/secret-store.js";
import type { Permit } from "./conditions.js";
import type { Header } from "./header.js";
import { wipingAfter } from "./key-worker.js";
import type { LockState } from "./lock-state.js";
import type { RotationSweep } from "./rotation.js";

/** Request for a change of the header: the body has a passphrase, or the text of a key. */
type HeaderChange = Extract<Request, { readonly op: "changePassphrase" | "createKey" | "rotate" }>;

const changeEvents = { changePassphrase: "passphrase-changed", createKey: "key-created", rotate: "rotated" } as const;

/** `key`: the created or deleted key; null when the result does not name it. */
type KeyChange = { readonly response: Bytes; readonly key: KeyDescription | null };

type KeySlotsOptions = {
  readonly lockState: LockState;
  readonly header: Header;
  readonly sweep: RotationSweep;
  /** See `RecordStore.documentForRotation`. */
  readonly documentForRotation: () => Promise<DocumentChange | null>;
  readonly scryptLogN: number;
  readonly clock: Clock;
  readonly log: Log;
};

export class KeySlots {
  readonly #options: KeySlotsOptions;

  constructor(options: KeySlotsOptions) {
    this.#options = options;
  }

  /**
   * Changes the passphrase, locked or unlocked; returns the response. `permit`: as in `unlock`; when it throws, nothing is
   * changed.
   * @throws VaultError BAD_REQUEST, UNAUTHORIZED, RATE_LIMITED, VAULT_LOCKED, INTEGRITY, UNAVAILABLE
   */
  async changePassphrase(body: SharedBytes, permit: Permit): Promise<Bytes> {
    const { scryptLogN: logN, clock } = this.#options;
    return (await this.#changeHeader({ op: "changePassphrase", body, logN, now: clock.now() }, permit)).response;
  }

  /** The response holds the text of the new key: wipe it once it is sent. @throws VaultError ALREADY_EXISTS, … as above */
  create(body: SharedBytes, permit: Permit): Promise<KeyChange> {
    return this.#changeHeader({ op: "createKey", body, now: this.#options.clock.now() }, permit);
  }

  /**
   * Makes a new master key, for the passphrase and the keys in the body; everything is sealed again under it in the
   * background. @throws VaultError ALREADY_EXISTS, … as above
   */
  async rotate(body: SharedBytes, permit: Permit): Promise<Bytes> {
    const { scryptLogN: logN, sweep } = this.#options;
    const { response } = await this.#changeHeader({ op: "rotate", body, logN }, permit);
    sweep.wake();
    return response;
  }

  /** Returns the response with all keys, including the passphrase; needs no key. @throws VaultError BAD_REQUEST */
  async list(): Promise<Bytes> {
    const { lockState, header } = this.#options;
    await header.refresh();
    return (await lockState.ask({ op: "keys" })).response;
  }

  /** @throws VaultError VAULT_LOCKED, BAD_REQUEST, NOT_FOUND, UNAVAILABLE */
  async delete(id: string, permit: Permit): Promise<KeyChange> {
    const { lockState, header, log } = this.#options;
    await header.refresh();
    const { header: proposed, response, key = null } = await lockState.derive({ op: "deleteKey", id });
    await header.replace(proposed, async () => {
      permit();
      return null;
    });
    log.info({ event: "key-deleted" });
    return { response, key };
  }

  async #changeHeader(request: HeaderChange, permit: Permit): Promise<KeyChange> {
    const { lockState, header, log } = this.#options;
    const derived = header.confirm().then(() => lockState.derive(request));
    const { header: proposed, response, key = null } = await wipingAfter(request.body, derived);
    try {
      try {
        permit();
      } catch (error) {
        await header.discard(proposed);
        throw error;
      }
      await header.replace(proposed, request.op === "rotate" ? this.#options.documentForRotation : undefined);
      log.info({ event: changeEvents[request.op] });
      return { response, key };
    } catch (error) {
      response.fill(0);
      throw error;
    }
  }
}
