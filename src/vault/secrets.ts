/**
 * Operations on the secrets of an unlocked vault: none runs beside a lock or a forced init, and changes of one path take
 * turns. Each is a sequence of storage and key worker calls; it never looks into a body, nor into a blob beyond its etag.
 */
import type {
  Binding,
  Bytes,
  Head,
  Request,
  RequestOf,
  RequestToRender,
  ResultOf,
  SealResult,
  SharedBytes,
  VersionChange,
} from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import { KeyedMutex, type ReadWriteLock } from "../locks.js";
import type { Log } from "../log.js";
import { tagHeadBytes, tagOf } from "../storage/blob-tag.js";
import type { Expected, SecretStore } from "../storage/secret-store.js";
import { Batches } from "./batch.js";
import type { BatchPermit } from "./batch-plan.js";
import { CachedStore, type PathWatcher } from "./cache.js";
import { type CheckQuery, checkSecrets } from "./check.js";
import {
  always,
  type Condition,
  conflictAt,
  expectedAs,
  includesTag,
  isConditional,
  type MaybeResponse,
  notFound,
  type Permit,
  repeating,
  requireCondition,
  requireOf,
  type TaggedResponse,
  type Tags,
  tagOrNone,
  unconditional,
} from "./conditions.js";
import { type Success, wipingAfter } from "./key-worker.js";
import { Lister, type ListPart, type ListQuery, listNames, type NameQuery, secretsIn } from "./list.js";
import type { LockState } from "./lock-state.js";
import { VaultTrash } from "./trash.js";

export type ReadDecision = Exclude<ResultOf<"readDecision">, { readonly ok: false }>;

export type SecretsOptions = {
  readonly store: SecretStore;
  readonly lockState: LockState;
  readonly lock: ReadWriteLock;
  readonly clock: Clock;
  readonly log: Log;
  readonly cacheBytes: number;
  readonly maxBatchBytes: number;
  /** Whether a put keeps what it replaces. */
  readonly keepsHistory: boolean;
  /** Whether the master key is being rotated. */
  readonly isRotating: () => boolean;
};

/** What makes a secret of the one before and of a body. */
type SealingRequest = RequestOf<"kvWrite" | "kvConfigure">;

type Rewrite = "undo" | "changeMetadata";

export class VaultSecrets {
  readonly trash: VaultTrash;
  readonly #store: SecretStore;
  readonly #lockState: LockState;
  readonly #lock: ReadWriteLock;
  readonly #clock: Clock;
  readonly #cached: CachedStore;
  readonly #paths = new KeyedMutex();
  readonly #lister: Lister;
  readonly #batches: Batches;
  #requests = 0;
  /** Number of vaults made since the start. */
  #vaults = 0;

  constructor(options: SecretsOptions) {
    const { store, lockState, lock, clock } = options;
    const cached = new CachedStore(options);
    this.#store = store;
    this.#lockState = lockState;
    this.#lock = lock;
    this.#clock = clock;
    this.#cached = cached;
    this.#lister = new Lister(secretsIn(cached), lockState);
    const open = (path: string) => this.#open(path);
    const paths = this.#paths;
    this.trash = new VaultTrash({
      ...{ ...options, cached, paths },
      change: (path, permit, change) => this.#change(path, permit, change),
      inParts: (parts) => this.#inParts(parts),
    });
    this.#batches = new Batches({ ...options, cached, paths, open, trash: this.trash });
  }

  /** How many operations there have been. */
  get requests(): number {
    return this.#requests;
  }

  get cacheStats(): CachedStore["stats"] {
    return this.#cached.stats;
  }

  /** A new, empty vault has replaced the previous one. No other operation may run. */
  vaultReplaced(): void {
    this.#vaults++;
    this.#cached.clear();
  }

  /**
   * Call it for every secret operation before any other check. `isActivity`: it delays the idle lock.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  admit(isActivity: boolean): void {
    this.#lockState.lockIfIdle();
    if (isActivity) this.#lockState.touch();
    this.#lockState.mustBeUnlocked();
  }

  /** Records activity, which delays the idle lock. */
  touch(): void {
    this.#lockState.touch();
  }

  /**
   * The body is checked before the condition.
   * @throws VaultError VAULT_LOCKED, BAD_REQUEST, PRECONDITION_FAILED, INTEGRITY, UNAVAILABLE
   */
  put(path: string, body: Bytes, condition = unconditional, permit = always): Promise<TaggedResponse> {
    return this.#changeBy(body, path, permit, async (given) => {
      const now = this.#clock.now();
      const first = await this.#cached.previous(path);
      const { result, previous } = await this.#cached.rereading(path, first, (previous, reread) => {
        const body = previous === null || reread ? given : copyOf(given); // what is sent is moved
        return this.#lockState.ask({ op: "seal", path, body, previous, now, reread });
      });
      return this.#replace(path, condition, previous, result);
    });
  }

  /**
   * The response holds the value: wipe it once it is sent. It is null when the secret still has one of the etags.
   * @throws VaultError NOT_FOUND, … as put
   */
  get(path: string, unlessTagged: Tags | null = null): Promise<MaybeResponse> {
    return this.#whileUnlocked(async () => {
      if (unlessTagged === null) return this.#open(path);
      const head = this.#cached.current(path) ?? (await this.#store.read(path, tagHeadBytes));
      const tag = head && tagOf(head);
      return tag !== null && includesTag(unlessTagged, tag) ? { response: null, tag } : this.#open(path);
    });
  }

  /** Opens the current version as `data` of Vault's KV engine. @throws VaultError NOT_FOUND, … as get */
  getForVault(path: string): Promise<Bytes> {
    return this.#whileUnlocked(async () => (await this.#open(path, true)).response);
  }

  /** Asks the key worker about the whole secret. @throws VaultError NOT_FOUND, … as get */
  askAbout<R extends Request>(path: string, requestOf: (blob: Bytes) => R): Promise<Success<R>> {
    return this.#whileUnlocked(async () => this.#lockState.ask(requestOf(await this.#mustRead(path))));
  }

  /**
   * Replaces the secret, if there is one, by what the key worker makes of it; returns the response. Wipes the body.
   * @throws VaultError as put
   */
  replaceBy<R extends SealingRequest>(
    path: string,
    body: SharedBytes,
    permit: Permit,
    requestOf: (blob: Bytes | null, reread: boolean) => R,
  ): Promise<Bytes> {
    const replace = async () => {
      const first = await this.#cached.whole(path);
      const { result, previous } = await this.#cached.rereading(path, first, (blob, reread) =>
        this.#lockState.ask<SealingRequest>(requestOf(blob, reread)),
      );
      return (await this.#replace(path, unconditional, previous, result)).response;
    };
    return wipingAfter(body, this.#change(path, permit, replace));
  }

  /**
   * Returns the response with the current one-time code of a secret that is a TOTP seed. The seed stays in the key worker.
   * @throws VaultError NOT_FOUND, BAD_REQUEST, … as put
   */
  oneTimeCode(path: string): Promise<Bytes> {
    return this.#whileUnlocked(async () => {
      const blob = this.#cached.current(path) ?? (await this.#mustRead(path));
      return (await this.#lockState.ask({ op: "oneTimeCode", path, blob, now: this.#clock.now() })).response;
    });
  }

  /** @throws VaultError VAULT_LOCKED, NOT_FOUND, PRECONDITION_FAILED, UNAVAILABLE */
  remove(path: string, condition = unconditional, permit = always): Promise<void> {
    return this.#change(path, permit, async () => {
      const expected = isConditional(condition) ? await this.#expectedBy(condition, path) : "present";
      const { committed } = await this.#cached.commit([{ path, blob: null, expected }], []);
      if (!committed) throw expected === "present" ? notFound(path) : conflictAt(condition, path);
    });
  }

  /** Checks the body of a put that must not be carried out, without a look at storage. @throws VaultError BAD_REQUEST */
  async validatePut(path: string, body: Bytes): Promise<void> {
    const now = this.#clock.now();
    await this.#whileUnlocked(() => this.#lockState.ask({ op: "seal", path, body, previous: null, now }), body);
  }

  /** As `validatePut`, of an undo. */
  validateUndo(path: string, body: Bytes): Promise<void> {
    return this.#validateRewrite("undo", path, body);
  }

  /** As `validatePut`, of a change of the metadata. */
  validateMetadata(path: string, body: Bytes): Promise<void> {
    return this.#validateRewrite("changeMetadata", path, body);
  }

  /** Returns the response with all versions of a secret, without values. @throws VaultError NOT_FOUND, … as put */
  history(path: string): Promise<Bytes> {
    return this.#whileUnlocked(async () => {
      const blob = await this.#mustRead(path);
      return (await this.#lockState.ask({ op: "history", path, blob })).response;
    });
  }

  /** As `get`, of one version. */
  version(path: string, version: number): Promise<Bytes> {
    return this.#whileUnlocked(async () => {
      const blob = await this.#mustRead(path);
      return (await this.#lockState.ask({ op: "openVersion", path, blob, version })).response;
    });
  }

  /** Makes a version that is kept the newest. @throws VaultError NOT_FOUND, … as put */
  undo(path: string, body: Bytes, condition: Condition, permit = always): Promise<TaggedResponse> {
    return this.#rewrite("undo", path, body, condition, permit);
  }

  /** Stores the current value with other metadata. @throws VaultError NOT_FOUND, … as put */
  changeMetadata(path: string, body: Bytes, condition: Condition, permit = always): Promise<TaggedResponse> {
    return this.#rewrite("changeMetadata", path, body, condition, permit);
  }

  /** Removes all earlier versions; returns how many. @throws VaultError NOT_FOUND, … as put */
  prune(path: string, condition: Condition, permit = always): Promise<number> {
    return this.#change(path, permit, async () => {
      const previous = await this.#store.read(path);
      requireOf(condition, path, previous);
      if (previous === null) throw notFound(path);
      const { result } = await this.#cached.rereading(path, previous, (blob, reread) =>
        this.#lockState.ask({ op: "prune", path, blob, reread }),
      );
      const { blob, removed } = result;
      if (blob.length < previous.length) {
        const { committed } = await this.#cached.commit([{ path, blob, expected: expectedAs(previous) }], []);
        if (!committed) throw conflictAt(condition, path);
      }
      return removed;
    });
  }

  /**
   * Destroys versions, marks them as deleted, or removes that mark: see `VersionChange`. Numbers that are not kept are
   * ignored, unless all are.
   * @throws VaultError NOT_FOUND, BAD_REQUEST for the newest version unless `mayDestroyCurrent`, … as put
   */
  changeVersions(
    path: string,
    versions: readonly number[] | "current",
    change: VersionChange,
    { condition = unconditional, permit = always, mayDestroyCurrent = false },
  ): Promise<void> {
    return this.#change(path, permit, async () => {
      const previous = await this.#store.read(path);
      requireOf(condition, path, previous);
      if (previous === null) throw notFound(path);
      const changed = { op: "changeVersions", path, versions, change, mayDestroyCurrent } as const;
      const now = this.#clock.now();
      const { result } = await this.#cached.rereading(path, previous, (blob, reread) =>
        this.#lockState.ask({ ...changed, blob, now, reread }),
      );
      const { blob, ...sealed } = result;
      if (blob === null) return;
      const kept = "headLength" in sealed ? [{ path, blob, headLength: sealed.headLength }] : [];
      const { committed } = await this.#cached.commit([{ path, blob, expected: expectedAs(previous) }], kept);
      if (!committed) throw conflictAt(condition, path);
    });
  }

  /**
   * Carries out a batch of operations: each get by itself, or with changes all or nothing. The response holds values: wipe
   * it once it is sent.
   * @throws VaultError as put and get, with the index of the operation that is refused.
   */
  batch(body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    return this.#whileUnlocked(() => this.#batches.run(body, permit), body);
  }

  /** Binds the secret to a host, or removes the binding to one. @throws VaultError NOT_FOUND, … as put */
  setUses(path: string, add: Binding | null, removeHost: string | null, permit: Permit): Promise<void> {
    return this.#change(path, permit, async () => {
      const { result, previous } = await this.#cached.rereading(path, await this.#mustRead(path), (blob) =>
        this.#lockState.ask({ op: "setUses", path, blob, add, removeHost }),
      );
      await this.#replace(path, unconditional, previous, result);
    });
  }

  /** Returns the bindings of secrets, none for one that is missing. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  usesOf(paths: readonly string[]): Promise<readonly (readonly Binding[])[]> {
    return this.#whileUnlocked(async () => {
      const heads = await Promise.all(paths.map((path) => this.#headOrNone(path)));
      return (await this.#lockState.ask({ op: "describeUses", paths, heads })).uses;
    });
  }

  /** Returns what the body of an approval says; the body stays as it is. @throws VaultError BAD_REQUEST */
  readDecision(body: SharedBytes): Promise<ReadDecision> {
    return this.#lockState.ask({ op: "readDecision", body });
  }

  /** See `NameQuery`. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  names(query: NameQuery, limit: number): Promise<readonly string[]> {
    return this.#whileUnlocked(() => listNames(this.#store, query, limit));
  }

  /** See `checkSecrets`. */
  check(query: CheckQuery): ReturnType<typeof checkSecrets> {
    const whileUnlocked = <T>(work: () => Promise<T>) => this.#whileUnlocked(work);
    const parts = { cached: this.#cached, lockState: this.#lockState, clock: this.#clock, whileUnlocked };
    return checkSecrets(parts, query);
  }

  /** Calls `changed` with the paths of each change of secrets that this server has made or tried. */
  watch(changed: PathWatcher): void {
    this.#cached.watch(changed);
  }

  /**
   * Returns the head of a request with the secret in it: wipe it once it is sent.
   * @throws VaultError FORBIDDEN when the secret may not be used for this request, NOT_FOUND, … as put
   */
  render(path: string, request: RequestToRender): Promise<Bytes> {
    return this.#whileUnlocked(async () => {
      const blob = this.#cached.current(path) ?? (await this.#mustRead(path));
      return (await this.#lockState.ask({ op: "render", path, blob, ...request })).head;
    });
  }

  /**
   * Yields the response in parts. Between two parts a lock or a forced init need not wait: it ends the list.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    return this.#inParts(this.#lister.list(query));
  }

  async *#inParts(parts: AsyncGenerator<ListPart, void, void>): AsyncGenerator<ListPart, void, void> {
    const vaults = this.#vaults;
    for (;;) {
      const { value } = await this.#whileUnlocked(() => {
        if (this.#vaults !== vaults)
          throw new VaultError("UNAVAILABLE", "a new vault has replaced this one: list again");
        return parts.next();
      });
      if (!value) return;
      yield value;
    }
  }

  /**
   * Seals a secret again that the old master key sealed; returns false when it is damaged, also on a second read. What a
   * first read finds damaged is not written: re-sealed, it would be lost, although the disk may still have it.
   */
  reseal(path: string): Promise<boolean> {
    const reseal = async () => (await this.#resealOnce(path, false)) || this.#resealOnce(path, true);
    return this.#lock.shared(() => this.#paths.run([path], () => this.#repeatingIfShared(reseal)));
  }

  /** "" for a secret that is missing or no blob. */
  async #headOrNone(path: string): Promise<Head> {
    try {
      return (await this.#cached.head(path)) ?? "";
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return "";
      throw error;
    }
  }

  /** A put of what the secret already holds. */
  #rewrite(op: Rewrite, path: string, body: Bytes, condition: Condition, permit: Permit): Promise<TaggedResponse> {
    return this.#changeBy(body, path, permit, async (given) => {
      const first = await this.#store.read(path);
      try {
        const now = this.#clock.now();
        const { result, previous } = await this.#cached.rereading(path, first, (blob, reread) =>
          this.#lockState.ask({ op, path, body: given, blob, now, reread }),
        );
        return await this.#replace(path, condition, previous, result);
      } catch (error) {
        if (error instanceof VaultError && error.code === "NOT_FOUND") requireOf(condition, path, first);
        throw error;
      }
    });
  }

  async #validateRewrite(op: Rewrite, path: string, body: Bytes): Promise<void> {
    const now = this.#clock.now();
    try {
      await this.#whileUnlocked(() => this.#lockState.ask({ op, path, body, blob: null, now }), body);
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "NOT_FOUND") throw error;
    }
  }

  /** Wipes the body at the end, unless it was moved. */
  async #whileUnlocked<T>(work: () => Promise<T>, body: Bytes | SharedBytes | null = null): Promise<T> {
    this.#requests++;
    try {
      if (!this.#lock.tryEnter()) await this.#lock.enter();
      try {
        this.#lockState.mustBeUnlocked();
        return await work();
      } finally {
        this.#lock.leave();
      }
    } finally {
      if (body !== null && body.byteLength > 0) body.fill(0);
    }
  }

  /** Runs a change in its path's turn, if it is permitted then: a token may have been revoked while it waited. */
  #change<T>(path: string, permit: Permit, change: () => Promise<T>): Promise<T> {
    return this.#whileUnlocked(() =>
      this.#paths.run([path], async () => {
        permit();
        return this.#repeatingIfShared(change);
      }),
    );
  }

  /** As `#change`, of a change that consumes its body: each attempt gets a copy, where there may be several. */
  #changeBy<T>(body: Bytes, path: string, permit: Permit, change: (body: Bytes) => Promise<T>): Promise<T> {
    const once = () => {
      const copy = body.slice();
      return wipingAfter(copy, change(copy));
    };
    const inTurn = async () => {
      permit();
      return this.#cached.isShared ? repeating(once) : change(body);
    };
    return this.#whileUnlocked(() => this.#paths.run([path], inTurn), body);
  }

  #repeatingIfShared<T>(change: () => Promise<T>): Promise<T> {
    return this.#cached.isShared ? repeating(change) : change();
  }

  /** Opens the current version, from memory or storage. @throws VaultError NOT_FOUND, INTEGRITY */
  async #open(path: string, forVault = false): Promise<TaggedResponse> {
    const blob = this.#cached.current(path);
    if (blob === undefined) return this.#readAndOpen(path, forVault);
    const { response, etag } = await this.#lockState.ask({ op: "open", path, blob, forVault });
    return { response, tag: etag };
  }

  /** A blob that does not open is not cached: once its file is repaired, the next get finds it. */
  #readAndOpen(path: string, forVault: boolean): Promise<TaggedResponse> {
    return this.#cached.readingCurrent(async (keep) => {
      const blob = await this.#cached.mustReadCurrent(path);
      const { response, etag, currentLength } = await this.#lockState.ask({ op: "open", path, blob, forVault });
      keep(path, blob, currentLength);
      return { response, tag: etag };
    });
  }

  async #resealOnce(path: string, asItIs: boolean): Promise<boolean> {
    const before = await this.#store.read(path);
    if (before === null) return true;
    const { blob, intact, ...lengths } = await this.#lockState.ask({ op: "reseal", path, blob: before });
    if (!intact && !asItIs) return false;
    if (blob !== null) await this.#cached.commitResealed({ path, blob, ...lengths }, expectedAs(before));
    else await this.#store.flush(path); // or a power cut may bring back one that the old key sealed
    return intact;
  }

  async #replace(
    path: string,
    condition: Condition,
    previous: Bytes | Head | null,
    { blob, headLength, response, etag }: SealResult,
  ): Promise<TaggedResponse> {
    requireOf(condition, path, previous);
    const isBased = this.#cached.isShared || isConditional(condition);
    const change = { path, blob, ...(isBased && { expected: expectedAs(previous) }) };
    const { committed } = await this.#cached.commit([change], [{ path, blob, headLength }]);
    if (!committed) throw conflictAt(condition, path);
    return { response, tag: etag };
  }

  async #mustRead(path: string): Promise<Bytes> {
    const blob = await this.#store.read(path);
    if (blob === null) throw notFound(path);
    return blob;
  }

  async #expectedBy(condition: Condition, path: string): Promise<Expected> {
    const tag = tagOrNone(await this.#store.read(path, tagHeadBytes));
    requireCondition(condition, path, tag);
    return tag === null ? "present" : { tag };
  }
}

/** In memory that can be moved and wiped, which that of a short `slice` is not. */
function copyOf(bytes: Bytes): Bytes {
  const copy = new Uint8Array(new ArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}
