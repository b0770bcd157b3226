/** Operations on the secrets of an unlocked vault, each a sequence of calls of their space and of the key worker. */
import type {
  Binding,
  Bytes,
  LoginProblem,
  RequestToRender,
  ResultOf,
  SharedBytes,
  VersionChange,
  Write,
} from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { Batches } from "./batch.js";
import type { BatchPermit } from "./batch-plan.js";
import { type CachedBlob, type CachedStore, type CacheStats, currentBytes, type PathWatcher } from "./cache.js";
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
  requireCondition,
  type TaggedResponse,
  type Tags,
  tagOrNone,
  unconditional,
} from "./conditions.js";
import { wipingAfter } from "./key-worker.js";
import type { ListPart, ListQuery, NameQuery } from "./list.js";
import type { LockState } from "./lock-state.js";
import { headBytes, SealedSpace, type SpaceKind, type SpaceParts, type Written } from "./space.js";
import { VaultTrash } from "./trash.js";

export type ReadDecision = Exclude<ResultOf<"readDecision">, { readonly ok: false }>;

/** A binding of a secret, by its host. */
export type UsePlace = { readonly path: string; readonly host: string; readonly port: number };

export type Rendered = Exclude<ResultOf<"render">, { readonly ok: false }>;
export type StartedExchange = Exclude<ResultOf<"startExchange">, { readonly ok: false }>;

/** How long a server waits for another one's exchange: longer than it may take. */
const mostTriesAlone = 150;
const betweenTriesMs = 100;

export type SecretsOptions = SpaceParts & {
  readonly clock: Clock;
  readonly log: Log;
  readonly maxBatchBytes: number;
  /** Whether the master key is being rotated. */
  readonly isRotating: () => boolean;
};

const kind: SpaceKind = {
  space: "secrets",
  notFound,
  conflict: conflictAt,
  headBytes,
  listed: "entries",
  describe: (paths, heads) => ({ op: "describe", paths, heads }),
};

export class VaultSecrets {
  readonly trash: VaultTrash;
  readonly space: SealedSpace;
  readonly #cached: CachedStore;
  readonly #lockState: LockState;
  readonly #clock: Clock;
  readonly #batches: Batches;

  constructor(options: SecretsOptions) {
    this.space = new SealedSpace(kind, options);
    this.trash = new VaultTrash(this.space, options);
    this.#cached = options.cached;
    this.#lockState = options.lockState;
    this.#clock = options.clock;
    this.#batches = new Batches({ ...options, space: this.space, trash: this.trash });
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

  /** See `CachedStore.changes`. */
  get changes(): number | null {
    return this.#cached.changes;
  }

  get cacheStats(): CacheStats {
    return this.#cached.blobs.stats;
  }

  /**
   * The body is checked before the condition.
   * @throws VaultError VAULT_LOCKED, BAD_REQUEST, PRECONDITION_FAILED, INTEGRITY, UNAVAILABLE
   */
  put(path: string, body: Bytes, condition = unconditional, permit = always): Promise<TaggedResponse> {
    return this.write(path, { kind: "put", body }, condition, permit);
  }

  /**
   * Stores what the key worker makes of the secret, if there is one. The body, if the write has one, is wiped.
   * @throws VaultError NOT_FOUND, … as put
   */
  write(path: string, write: Write, condition = unconditional, permit = always): Promise<Written> {
    const body = "body" in write ? write.body : null;
    return this.space.change(path, permit, () => this.space.write(path, write, condition), body);
  }

  /**
   * The response holds the value: wipe it once it is sent. It is null when the secret still has one of the etags.
   * @throws VaultError NOT_FOUND, … as put
   */
  get(path: string, unlessTagged: Tags | null = null): Promise<MaybeResponse> {
    if (unlessTagged === null) return this.space.whileUnlocked(() => this.space.open(path));
    return this.space.whileUnlocked(async () => {
      const tag = tagOrNone(await this.space.head(path));
      return tag !== null && includesTag(unlessTagged, tag) ? { response: null, tag } : this.space.open(path);
    });
  }

  /** Opens the current version as `data` of Vault's KV engine. @throws VaultError NOT_FOUND, … as get */
  getForVault(path: string): Promise<Bytes> {
    return this.space.whileUnlocked(async () => (await this.space.open(path, true)).response);
  }

  /**
   * Returns the response with the current one-time code of a secret that is a TOTP seed. The seed stays in the key worker.
   * @throws VaultError NOT_FOUND, BAD_REQUEST, … as put
   */
  async oneTimeCode(path: string): Promise<Bytes> {
    const request = (found: CachedBlob) =>
      ({ op: "oneTimeCode", path, blob: currentBytes(found), now: this.#clock.now() }) as const;
    return (await this.space.askAbout(path, request)).response;
  }

  /**
   * Returns the head of a request with the secret in it: wipe it once it is sent. Null: a token is lacking.
   * @throws VaultError FORBIDDEN when the secret may not be used for this request, NOT_FOUND, … as put
   */
  render(path: string, request: RequestToRender): Promise<Rendered> {
    const asked = (found: CachedBlob) => ({ op: "render", path, blob: currentBytes(found), ...request }) as const;
    return this.space.askAbout(path, asked);
  }

  /**
   * Returns the request for a token, which holds credentials: it is wiped where it is sent.
   * @throws VaultError as render
   */
  startExchange({ path, ...place }: UsePlace): Promise<StartedExchange> {
    const op = "startExchange";
    return this.space.askAbout(path, (found) => ({ op, path, blob: currentBytes(found), ...place }) as const);
  }

  /**
   * Takes a token from an endpoint's response, which is wiped. Returns once a rotated refresh token is stored, or with the reason
   * why there is no token. @throws VaultError as render; UNAVAILABLE where the refresh token is not stored
   */
  takeResponse(
    kind: "takeToken" | "takeLogin",
    { path, ...place }: UsePlace,
    response: { readonly etag: string; readonly status: number; readonly body: Bytes },
    permit = always,
  ): Promise<LoginProblem | null> {
    return this.space.change(
      path,
      permit,
      async () => {
        const { result, previous } = await this.space.make(path, { kind, ...place, ...response });
        if (result.blob !== null) await this.space.replace(path, result, expectedAs(previous));
        return result.problem ?? null;
      },
      response.body,
    );
  }

  /**
   * Returns the request for a first refresh token. Its body is wiped, and has a code of a login, or of a device.
   * @throws VaultError BAD_REQUEST where the binding is no client of OAuth, or the body has no code; … as startExchange
   */
  startLogin({ path, ...place }: UsePlace, body: SharedBytes): Promise<Extract<ResultOf<"startLogin">, { ok: true }>> {
    const op = "startLogin";
    const asked = (found: CachedBlob) => ({ op, path, blob: currentBytes(found), ...place, body }) as const;
    return wipingAfter(body, this.space.askAbout(path, asked));
  }

  /** Stores the refresh token that the key worker holds, where the vault has not got it. @throws VaultError as takeResponse */
  async storeRefreshToken(path: string): Promise<void> {
    await this.write(path, { kind: "storeRefreshToken" });
  }

  /** Ends the tokens of a secret that has changed. @throws VaultError VAULT_LOCKED */
  async reviewTokens(path: string): Promise<void> {
    await this.space.change(path, always, async () =>
      this.space.ask({ op: "reviewTokens", path, blob: await this.space.whole(path) }),
    );
  }

  /** Runs work that one server at a time may run for this path, once no other one does. @throws VaultError UNAVAILABLE */
  async alone(path: string, work: () => Promise<void>): Promise<void> {
    const { shared } = this.#cached.store;
    if (shared === undefined) return work();
    for (let tries = 0; tries < mostTriesAlone; tries++) {
      if (await shared.alone(work, path)) return;
      await new Promise<void>((resolve) => this.#clock.after(betweenTriesMs, resolve));
    }
    throw new VaultError("UNAVAILABLE", `another server is getting a token for ${path}: try again`);
  }

  /** Returns the etag of the current version; null when there is none. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  etag(path: string): Promise<string | null> {
    return this.space.whileUnlocked(async () => tagOrNone(await this.space.head(path)));
  }

  /** @throws VaultError VAULT_LOCKED, NOT_FOUND, PRECONDITION_FAILED, UNAVAILABLE */
  remove(path: string, condition = unconditional, permit = always): Promise<void> {
    return this.space.change(path, permit, async () => {
      const tag = isConditional(condition) ? tagOrNone(await this.space.head(path)) : null;
      requireCondition(condition, path, tag);
      const change = { path, blob: null, expected: tag === null ? ("present" as const) : { tag } };
      const { committed } = await this.space.commit([change]);
      if (!committed) throw tag === null ? notFound(path) : conflictAt(condition, path);
    });
  }

  /** Returns the response with all versions of a secret, without values. @throws VaultError NOT_FOUND, … as put */
  async history(path: string): Promise<Bytes> {
    return (await this.space.askAbout(path, ({ blob }) => ({ op: "history", path, blob }))).response;
  }

  /** Like `get`, for one version. */
  async version(path: string, version: number): Promise<Bytes> {
    return (await this.space.askAbout(path, ({ blob }) => ({ op: "openVersion", path, blob, version }))).response;
  }

  /** Makes a version that is kept the newest. @throws VaultError NOT_FOUND, … as put */
  undo(path: string, body: Bytes, condition: Condition, permit = always): Promise<TaggedResponse> {
    return this.write(path, { kind: "undo", body }, condition, permit);
  }

  /** Stores the current value with other metadata. @throws VaultError NOT_FOUND, … as put */
  changeMetadata(path: string, body: Bytes, condition: Condition, permit = always): Promise<TaggedResponse> {
    return this.write(path, { kind: "changeMetadata", body }, condition, permit);
  }

  /** Removes all earlier versions; returns how many. @throws VaultError NOT_FOUND, … as put */
  async prune(path: string, condition: Condition, permit = always): Promise<number> {
    return (await this.write(path, { kind: "prune" }, condition, permit)).removed;
  }

  /**
   * Destroys versions, marks them as deleted, or removes that mark. Numbers that are not kept are ignored, unless all are.
   * @throws VaultError NOT_FOUND, BAD_REQUEST for the newest version unless `mayDestroyCurrent`, … as put
   */
  async changeVersions(
    path: string,
    versions: readonly number[] | "current",
    change: VersionChange,
    { condition = unconditional, permit = always, mayDestroyCurrent = false },
  ): Promise<void> {
    await this.write(path, { kind: "changeVersions", versions, change, mayDestroyCurrent }, condition, permit);
  }

  /**
   * Carries out a batch of operations: each get by itself, or with changes all or nothing. The response holds values: wipe
   * it once it is sent.
   * @throws VaultError as put and get, with the index of the operation that is refused.
   */
  batch(body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    return this.space.whileUnlocked(() => this.#batches.run(body, permit), body);
  }

  /** Binds the secret to a host, or removes the binding to one. @throws VaultError NOT_FOUND, … as put */
  async setUses(path: string, add: Binding | null, removeHost: string | null, permit: Permit): Promise<void> {
    await this.write(path, { kind: "setUses", add, removeHost }, unconditional, permit);
  }

  /** Returns the bindings of secrets, none for a missing secret. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  readUses(paths: readonly string[]): Promise<readonly (readonly Binding[])[]> {
    return this.space.whileUnlocked(async () => {
      const heads = await Promise.all(paths.map((path) => this.space.headOrNone(path)));
      return (await this.space.ask({ op: "describeUses", paths, heads })).uses;
    });
  }

  /** Returns what the body of an approval says; the body stays as it is. @throws VaultError BAD_REQUEST */
  readDecision(body: SharedBytes): Promise<ReadDecision> {
    return this.space.ask({ op: "readDecision", body });
  }

  /** Returns the numbers of versions in a body, which is wiped. @throws VaultError BAD_REQUEST */
  async versionsIn(body: SharedBytes): Promise<readonly number[]> {
    return (await wipingAfter(body, this.space.ask({ op: "kvVersions", body }))).versions;
  }

  /** See `NameQuery`. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  names(query: NameQuery, limit: number): Promise<readonly string[]> {
    return this.space.whileUnlocked(() => this.space.names(query, limit));
  }

  /** See `checkSecrets`. */
  check(query: CheckQuery): ReturnType<typeof checkSecrets> {
    return checkSecrets(this.space, this.#clock, query);
  }

  /** Calls `changed` with the paths of each change of secrets that this server has made or tried. */
  watch(changed: PathWatcher): void {
    this.#cached.watch(changed);
  }

  /** Yields the response in parts: see `SealedSpace.list`. */
  list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    return this.space.list(query);
  }
}
