/**
 * Transit keys of an unlocked vault: named keys that encrypt and sign in the key worker and never leave it. They are sealed
 * blobs in a space of their own beside the secrets. A change of a key takes its turn; uses of a key do not wait for another.
 */
import type { Bytes, RequestOf, SharedBytes, TransitUse, VaultForm } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import { KeyedMutex, type ReadWriteLock } from "../locks.js";
import { includesPath, type NameRange } from "../paths/path-scope.js";
import type { SecretStore } from "../storage/secret-store.js";
import { CiphertextCache, headOf } from "./cache.js";
import { Conflict, expectedAs, type Permit, repeating } from "./conditions.js";
import { wipingAfter } from "./key-worker.js";
import type { LockState } from "./lock-state.js";

export type TransitOptions = {
  readonly store: SecretStore;
  readonly lockState: LockState;
  readonly lock: ReadWriteLock;
  readonly clock: Clock;
  readonly cacheBytes: number;
};

/** `form`: of one of Vault's clients. */
export type Use = {
  readonly use: TransitUse;
  readonly name: string;
  readonly body: SharedBytes;
  readonly form?: VaultForm;
};
type UseReply = { readonly response: Bytes; readonly status: number };

const space = "keys";

/** Small enough that a get behind a slice hardly waits. */
const sliceKeys = 64;
const sliceNames = 1000;

/** Enough for the sealed metadata of most keys; of one with more versions the whole blob is read. */
const headBytes = 16 * 1024;

export class VaultTransit {
  readonly #store: SecretStore;
  readonly #lockState: LockState;
  readonly #lock: ReadWriteLock;
  readonly #clock: Clock;
  readonly #names = new KeyedMutex();
  readonly #blobs: CiphertextCache<Bytes>;

  constructor({ store, lockState, lock, clock, cacheBytes }: TransitOptions) {
    this.#store = store;
    this.#lockState = lockState;
    this.#lock = lock;
    this.#clock = clock;
    this.#blobs = new CiphertextCache(store.shared === undefined ? cacheBytes / 16 : 0);
  }

  /** A new, empty vault has replaced the previous one. No other operation may run. */
  vaultReplaced(): void {
    this.#blobs.clear();
  }

  /**
   * Returns the response that shows the key. `permit`: called before the key is stored, since the token may have been
   * replaced by then. @throws VaultError ALREADY_EXISTS, BAD_REQUEST, RATE_LIMITED, VAULT_LOCKED, UNAVAILABLE
   */
  create(name: string, body: SharedBytes, permit: Permit, form?: VaultForm): Promise<Bytes> {
    const create = async () => {
      const [exists, now] = [(await this.#read(name)) !== null, this.#clock.now()];
      const request = { op: "createTransitKey", name, exists, body, now, ...(form && { form }) } as const;
      const { blob, response } = await this.#lockState.ask(request);
      permit();
      if (!(await this.#names.run([name], () => this.#commit(name, blob, null)))) throw alreadyExists(name);
      return response;
    };
    // DANGER: not within the name's turn: making an RSA key takes seconds.
    return wipingAfter(body, this.#whileUnlocked(create));
  }

  /** Adds a version, or changes settings; returns the response that shows the key. @throws VaultError NOT_FOUND, … as create */
  change(
    change: RequestOf<"changeTransitKey">["change"],
    name: string,
    body: SharedBytes,
    permit: Permit,
    form?: VaultForm,
  ): Promise<Bytes> {
    const attempt = async () => {
      const previous = await this.#mustRead(name);
      const now = this.#clock.now();
      const changed = { op: "changeTransitKey", change, name, blob: previous, body, now } as const;
      const request = { ...changed, ...(form && { form }) };
      const { blob, response } = await this.#lockState.ask(request);
      permit();
      if (!(await this.#commit(name, blob, previous))) throw changing(name);
      return response;
    };
    return wipingAfter(body, this.#changing(name, attempt));
  }

  /** @throws VaultError NOT_FOUND, INTEGRITY, VAULT_LOCKED, UNAVAILABLE */
  show(name: string, form?: VaultForm): Promise<Bytes> {
    return this.#whileUnlocked(async () => {
      const blob = await this.#mustRead(name);
      return (await this.#lockState.ask({ op: "showTransitKey", name, blob, ...(form && { form }) })).response;
    });
  }

  /** The response holds private parts: wipe it once it is sent. @throws VaultError BAD_REQUEST, … as show */
  export(name: string, form?: VaultForm): Promise<Bytes> {
    return this.#whileUnlocked(async () => {
      const blob = await this.#mustRead(name);
      return (await this.#lockState.ask({ op: "exportTransitKey", name, blob, ...(form && { form }) })).response;
    });
  }

  /** @throws VaultError BAD_REQUEST, … as show */
  remove(name: string, permit: Permit, form?: VaultForm): Promise<void> {
    return this.#changing(name, async () => {
      const blob = await this.#mustRead(name);
      await this.#lockState.ask({ op: "checkTransitDeletion", name, blob, ...(form && { form }) });
      permit();
      if (!(await this.#commit(name, null, blob))) throw changing(name);
    });
  }

  /** Returns the list's response in pieces. `within`: only names in these ranges. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  async list(within?: readonly NameRange[]): Promise<readonly Bytes[]> {
    const pieces: Bytes[] = [];
    const damaged: string[] = [];
    for (let after: string | undefined = ""; after !== undefined; ) {
      const behind: string = after;
      const found: readonly string[] = await this.#store.list("", behind, sliceKeys, space);
      const visible = within === undefined ? found : found.filter((name) => includesPath(within, name));
      const slice = await this.#whileUnlocked(() => this.#describe(visible));
      if (slice.response.length > 0) pieces.push(text(pieces.length > 0 ? "," : ""), slice.response);
      damaged.push(...slice.damaged);
      after = found.length < sliceKeys ? undefined : found.at(-1);
    }
    const end = damaged.length > 0 ? `],"damaged":${JSON.stringify(damaged)}}` : "]}";
    return [text('{"keys":['), ...pieces, text(end)];
  }

  /** Returns the names behind a prefix, in ascending order. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  async names(prefix: string, within?: readonly NameRange[]): Promise<readonly string[]> {
    const names: string[] = [];
    for (let after: string | undefined = ""; after !== undefined; ) {
      const behind: string = after;
      const list = () => this.#store.list(prefix, behind, sliceNames, space);
      const found: readonly string[] = await this.#whileUnlocked(list);
      names.push(...(within === undefined ? found : found.filter((name) => includesPath(within, name))));
      after = found.length < sliceNames ? undefined : found.at(-1);
    }
    return names;
  }

  /**
   * Encrypts, signs and so on. The response may hold plaintext: wipe it once it is sent.
   * @throws VaultError BAD_REQUEST, … as show
   */
  async use(use: TransitUse, name: string, body: SharedBytes): Promise<Bytes> {
    return (await this.useAs({ use, name, body })).response;
  }

  /** As `use`, in another form than the native one. `status`: the response's, where it is not 200. */
  useAs(wish: Use): Promise<UseReply> {
    const { name, body } = wish;
    const work = async () => {
      const used = await this.#ask(wish, await this.#read(name));
      if ("response" in used) return used;
      return this.#names.run([name], () => repeating(() => this.#reserveAndUse(wish)));
    };
    return wipingAfter(body, this.#whileUnlocked(work));
  }

  /** Checks the body of a use that must not be carried out, without a look at storage. @throws VaultError BAD_REQUEST */
  async validateUse(use: TransitUse, name: string, body: SharedBytes, form?: VaultForm): Promise<void> {
    const work = this.#whileUnlocked(() => this.#ask({ use, name, body, ...(form && { form }) }, null));
    await wipingAfter(body, work).catch((error: unknown) => {
      if (!(error instanceof VaultError) || error.code !== "NOT_FOUND") throw error;
    });
  }

  /** @throws VaultError BAD_REQUEST, VAULT_LOCKED */
  random(body: SharedBytes, form?: VaultForm): Promise<Bytes> {
    const work = async () => (await this.#lockState.ask({ op: "randomBytes", body, ...(form && { form }) })).response;
    return wipingAfter(body, this.#whileUnlocked(work));
  }

  /** Hashes the input of a body. @throws VaultError BAD_REQUEST, VAULT_LOCKED */
  hash(body: SharedBytes, form: VaultForm): Promise<Bytes> {
    const work = async () => (await this.#lockState.ask({ op: "hashBytes", body, form })).response;
    return wipingAfter(body, this.#whileUnlocked(work));
  }

  /** As `VaultSecrets.reseal`. */
  reseal(name: string): Promise<boolean> {
    const reseal = async () => (await this.#resealOnce(name, false)) || this.#resealOnce(name, true);
    return this.#lock.shared(() => this.#names.run([name], () => repeating(reseal)));
  }

  async #whileUnlocked<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#lock.tryEnter()) await this.#lock.enter();
    try {
      this.#lockState.mustBeUnlocked();
      return await work();
    } finally {
      this.#lock.leave();
    }
  }

  #changing<T>(name: string, change: () => Promise<T>): Promise<T> {
    return this.#whileUnlocked(() => this.#names.run([name], () => repeating(change)));
  }

  /** `lacking`: messages of these versions must be reserved first. A null blob: there is no such key. */
  async #ask(wish: Use, blob: Bytes | null): Promise<UseReply | { readonly lacking: readonly number[] }> {
    const used = await this.#lockState.ask({ op: "useTransitKey", ...wish, blob });
    if (used.response === null) return { lacking: used.lacking };
    return { response: used.response, status: used.status ?? 200 };
  }

  async #reserveAndUse(wish: Use): Promise<UseReply> {
    const { name } = wish;
    const blob = await this.#mustRead(name);
    const early = await this.#ask(wish, blob); // another use may have reserved enough
    if ("response" in early) return early;
    const versions = early.lacking;
    const { blob: reserved } = await this.#lockState.ask({ op: "reserveMessages", name, blob, versions });
    if (!(await this.#commit(name, reserved, blob))) throw changing(name);
    const used = await this.#ask(wish, reserved);
    if ("response" in used) return used;
    throw changing(name);
  }

  async #resealOnce(name: string, asItIs: boolean): Promise<boolean> {
    const before = await this.#store.read(name, undefined, space);
    if (before === null) return true;
    const { blob, intact } = await this.#lockState.ask({ op: "reseal", path: name, blob: before, isKey: true });
    if (!intact && !asItIs) return false;
    if (blob === null) await this.#store.flush(name, space);
    else if (!(await this.#commit(name, blob, before))) throw changing(name);
    return intact;
  }

  async #describe(names: readonly string[]) {
    const blobs = await Promise.all(names.map((name) => this.#blobs.get(name) ?? this.#head(name)));
    const found = names.filter((_, i) => blobs[i] !== null); // without keys that were deleted since
    const heads = blobs.flatMap((blob) => (blob === null ? [] : [headOf(blob, blob.length)]));
    return this.#lockState.ask({ op: "listTransitKeys", names: found, heads });
  }

  /** Of a file that cannot be a blob, such as a directory, no bytes, which are as damaged. */
  async #head(name: string): Promise<Bytes | null> {
    try {
      const head = await this.#store.read(name, headBytes, space);
      return head?.length === headBytes ? await this.#read(name) : head;
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return new Uint8Array(0);
      throw error;
    }
  }

  async #mustRead(name: string): Promise<Bytes> {
    const blob = await this.#read(name);
    if (blob === null) throw new VaultError("NOT_FOUND", `there is no transit key ${name}`);
    return blob;
  }

  /** From memory or storage. */
  async #read(name: string): Promise<Bytes | null> {
    const cached = this.#blobs.get(name);
    if (cached !== undefined) return cached;
    this.#blobs.missed();
    return this.#blobs.reading(async (keep) => {
      const blob = await this.#store.read(name, undefined, space);
      if (blob !== null) keep(name, blob);
      return blob;
    });
  }

  /** Returns false, and changes nothing, where the key is not what it was. */
  async #commit(name: string, blob: Bytes | null, previous: Bytes | null): Promise<boolean> {
    const changes = [{ space, path: name, blob, expected: expectedAs(previous) }] as const;
    this.#blobs.beginChange(changes);
    try {
      return (await this.#store.commit(changes)).committed;
    } finally {
      this.#blobs.endChange(changes);
    }
  }
}

function alreadyExists(name: string): VaultError {
  return new VaultError("ALREADY_EXISTS", `a transit key ${name} already exists: rotate it, or use another name`);
}

function changing(name: string): Conflict {
  return new Conflict("UNAVAILABLE", `another program keeps changing the transit key ${name}: try again`);
}

function text(json: string): Bytes {
  return new TextEncoder().encode(json);
}
