/**
 * The trash of an unlocked vault: deleted secrets with their whole history, as they were sealed, in a space of their own. A
 * secret moves there and back in one durable commit. Changes take the turn of the secret's path.
 */
import pMap from "p-map";
import type { Bytes, Head } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { KeyedMutex, ReadWriteLock } from "../locks.js";
import { tagOf } from "../storage/blob-tag.js";
import type { Change, Expected, Listed, SecretStore } from "../storage/secret-store.js";
import { readTrashed, type Trashed, trashedBlob, trashedHeadBytes, trashedTagBytes } from "../storage/trashed-blob.js";
import { type CachedStore, headBytes, headOf } from "./cache.js";
import {
  always,
  type Condition,
  conflictAt,
  expectedAs,
  notFound,
  type Permit,
  repeating,
  requireOf,
  unconditional,
} from "./conditions.js";
import { Lister, type ListPart, type ListQuery, type ListSource } from "./list.js";
import type { LockState } from "./lock-state.js";

type TrashOptions = {
  readonly store: SecretStore;
  readonly cached: CachedStore;
  readonly lockState: LockState;
  readonly lock: ReadWriteLock;
  readonly clock: Clock;
  readonly paths: KeyedMutex;
  /** Whether the master key is being rotated. */
  readonly isRotating: () => boolean;
  /** Runs a change of an unlocked vault in the path's turn, again where another server came in between. */
  readonly change: <T>(path: string, permit: Permit, change: () => Promise<T>) => Promise<T>;
  /** Yields the parts of a list while the vault is unlocked and the same. */
  readonly inParts: (parts: AsyncGenerator<ListPart, void, void>) => AsyncGenerator<ListPart, void, void>;
};

const space = "trash";

/** `sealedBytes`: what they write. */
type TrashChanges = { readonly changes: readonly Change[]; readonly sealedBytes: number };

const sweptAtOnce = 256;

/** What a sweep reports. `kept`: the time of a secret that is too young. `continues`: false ends it. */
export type Sweep = {
  readonly destroyed: (path: string) => void;
  readonly kept: (deletedAt: number) => void;
  readonly continues: () => boolean;
};

/**
 * `stored`: as it is in its space. `blob`: the secret's. `resealed`: it was under the old master key. `intact`: all versions
 * of it open.
 */
type Found = {
  readonly stored: Bytes;
  readonly blob: Bytes;
  readonly resealed: boolean;
  readonly intact: boolean;
};

export class VaultTrash {
  readonly #options: TrashOptions;
  readonly #lister: Lister;

  constructor(options: TrashOptions) {
    this.#options = options;
    this.#lister = new Lister(sourceOf(options.store), options.lockState);
  }

  /**
   * Moves a secret to the trash, in place of one that is there; returns when, in milliseconds since 1970.
   * @throws VaultError VAULT_LOCKED, NOT_FOUND, PRECONDITION_FAILED, UNAVAILABLE
   */
  move(path: string, condition = unconditional, permit = always): Promise<number> {
    const { cached, change } = this.#options;
    return change(path, permit, async () => {
      const { changes, deletedAt } = await this.changesFor(path, condition);
      const { committed } = await cached.commit(changes, []);
      if (!committed) throw conflictAt(condition, path);
      return deletedAt;
    });
  }

  /** Returns the changes that move a secret to the trash. It must be the path's turn. @throws VaultError as move */
  async changesFor(path: string, condition: Condition): Promise<TrashChanges & { readonly deletedAt: number }> {
    const found = await this.#find(path, "secrets");
    requireOf(condition, path, found?.stored ?? null);
    if (found === null) throw notFound(path);
    const deletedAt = this.#options.clock.now();
    const blob = trashedBlob({ deletedAt, blob: found.blob });
    const removed = { path, blob: null, expected: expectedAs(found.stored) };
    return { changes: [removed, { space, path, blob }], sealedBytes: blob.length, deletedAt };
  }

  /**
   * Returns the change that puts a secret in the trash which another is about to replace, and what that one must expect; null
   * where there is none. It must be the path's turn.
   */
  async changesOfReplaced(path: string): Promise<(TrashChanges & { readonly expected: Expected }) | null> {
    const found = await this.#find(path, "secrets");
    if (found === null) return null;
    const blob = trashedBlob({ deletedAt: this.#options.clock.now(), blob: found.blob });
    return { changes: [{ space, path, blob }], sealedBytes: blob.length, expected: expectedAs(found.stored) };
  }

  /** Moves a secret back. @throws VaultError ALREADY_EXISTS where there is one again, INTEGRITY, … as move */
  restore(path: string, condition = unconditional, permit = always): Promise<void> {
    const { cached, change } = this.#options;
    return change(path, permit, async () => {
      const found = await this.#find(path, space);
      requireOf(condition, path, found?.blob ?? null);
      if (found === null) throw notInTrash(path);
      const removed = { space, path, blob: null, expected: expectedAs(found.stored) } as const;
      const result = await cached.commit([removed, { path, blob: found.blob, expected: "absent" }], []);
      if (result.committed) return;
      throw result.refused === 0 ? conflictAt(condition, path) : alreadyExists(path);
    });
  }

  /** Destroys a secret in the trash. @throws VaultError as move */
  destroy(path: string, condition = unconditional, permit = always): Promise<void> {
    const { store, change } = this.#options;
    return change(path, permit, async () => {
      const head = await store.read(path, trashedTagBytes, space);
      requireOf(condition, path, head && (readTrashed(head)?.blob ?? null));
      if (head === null) throw notInTrash(path);
      const { committed } = await store.commit([{ space, path, blob: null, expected: { tag: tagOf(head) } }]);
      if (!committed) throw conflictAt(condition, path);
    });
  }

  /** As `VaultSecrets.list`, of what is in the trash. */
  list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    return this.#options.inParts(this.#lister.list(query));
  }

  /** Destroys what was moved to the trash at this time or before. Needs no key. @throws VaultError UNAVAILABLE */
  async sweep(until: number, sweep: Sweep): Promise<void> {
    for (let after: string | undefined = ""; after !== undefined && sweep.continues(); ) {
      const found: readonly Listed[] = await this.#heads(after);
      for (const { path, head } of found) {
        const { deletedAt } = readTrashed(head) ?? { deletedAt: Number.POSITIVE_INFINITY };
        if (deletedAt > until) sweep.kept(deletedAt);
        else await this.#sweepOne(path, until, sweep);
      }
      after = found.length < sweptAtOnce ? undefined : found.at(-1)?.path;
    }
  }

  /** As `VaultSecrets.reseal`. */
  reseal(path: string): Promise<boolean> {
    const { lock, paths } = this.#options;
    return lock.shared(() => paths.run([path], () => repeating(() => this.#reseal(path))));
  }

  /**
   * Reads a secret that is to be moved. One that is damaged is read again: had the disk misread it, the move would remove what
   * is still good. What stays damaged moves as it is.
   */
  async #find(path: string, from: "secrets" | "trash"): Promise<Found | null> {
    const first = await this.#findOnce(path, from);
    return first === null || first.intact ? first : this.#findOnce(path, from);
  }

  /** DANGER: what stays under the old master key of a rotation is lost, and the sweep may be past the place where it goes. */
  async #findOnce(path: string, from: "secrets" | "trash"): Promise<Found | null> {
    const { store, lockState, isRotating } = this.#options;
    const stored = await store.read(path, undefined, from);
    if (stored === null) return null;
    const blob = from === "secrets" ? stored : innerOf(path, stored);
    const intact = await this.#opens(path, blob);
    if (!isRotating()) return { stored, blob, resealed: false, intact };
    const { blob: sealed } = await lockState.ask({ op: "reseal", path, blob });
    return { stored, blob: sealed ?? blob, resealed: sealed !== null, intact };
  }

  async #opens(path: string, blob: Bytes): Promise<boolean> {
    try {
      await this.#options.lockState.ask({ op: "check", path, blob });
      return true;
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return false;
      throw error;
    }
  }

  async #reseal(path: string): Promise<boolean> {
    const { store } = this.#options;
    const found = await this.#find(path, space);
    if (found === null) return true;
    const { stored, blob, resealed, intact } = found;
    if (!resealed) {
      await store.flush(path, space); // or a power cut may bring back one that the old key sealed
      return intact;
    }
    const { deletedAt } = readTrashed(stored) ?? { deletedAt: 0 };
    const change = { space, path, blob: trashedBlob({ deletedAt, blob }), expected: expectedAs(stored) } as const;
    if (!(await store.commit([change])).committed) throw conflictAt(unconditional, path);
    return intact;
  }

  async #heads(after: string): Promise<readonly Listed[]> {
    const { store } = this.#options;
    if (store.shared !== undefined) return store.shared.listWithHeads("", after, sweptAtOnce, trashedHeadBytes, space);
    const paths = await store.list("", after, sweptAtOnce, space);
    const heads = await pMap(paths, (path) => this.#headOrNone(path), { concurrency: 4 });
    return paths.map((path, i) => ({ path, head: heads[i] ?? new Uint8Array() }));
  }

  /** What cannot be read is left alone. */
  async #headOrNone(path: string): Promise<Bytes | null> {
    try {
      return await this.#options.store.read(path, trashedHeadBytes, space);
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return null;
      throw error;
    }
  }

  /** It may have been moved back since, or there again. */
  #sweepOne(path: string, until: number, { continues, destroyed }: Sweep): Promise<void> {
    const { store, lock, paths } = this.#options;
    const sweep = async () => {
      const head = continues() ? await this.#headOrNone(path) : null;
      const trashed = head && readTrashed(head);
      if (head === null || trashed === null || trashed.deletedAt > until) return;
      const expected = { tag: tagOf(head) };
      const { committed } = await store.commit([{ space, path, blob: null, expected }]);
      if (committed) destroyed(path);
    };
    return lock.shared(() => paths.run([path], sweep));
  }
}

function sourceOf(store: SecretStore): ListSource {
  const headLength = trashedHeadBytes + headBytes;
  return {
    count: () => store.count(space),
    list: async (prefix, after, limit, heads) => {
      if (store.shared === undefined) return store.list(prefix, after, limit, space);
      const found = await store.shared.listWithHeads(prefix, after, limit, headLength, space);
      for (const { path, head } of found) heads.set(path, headOf(head, head.length));
      return found.map(({ path }) => path);
    },
    head: async (path) => {
      const head = await store.read(path, headLength, space);
      return head && headOf(head, head.length);
    },
    describe: (paths, heads) => {
      const trashed = heads.map((head) => readTrashed(new Uint8Array(Buffer.from(head, "latin1"))));
      const inner = trashed.map((one): Head => (one === null ? "" : headOf(one.blob, one.blob.length)));
      return { op: "describe", paths, heads: inner, deletedAt: trashed.map((one) => one?.deletedAt ?? 0) };
    },
    cache: null,
  };
}

/** @throws VaultError INTEGRITY */
function innerOf(path: string, stored: Bytes): Bytes {
  const trashed: Trashed | null = readTrashed(stored);
  if (trashed !== null) return trashed.blob;
  const remedy = "restore its file from a backup, or destroy it";
  throw new VaultError(
    "INTEGRITY",
    `the secret at ${path} in the trash is corrupt: ${remedy} (strongroom doctor shows more)`,
  );
}

function notInTrash(path: string): VaultError {
  return new VaultError("NOT_FOUND", `there is no secret at ${path} in the trash`);
}

function alreadyExists(path: string): VaultError {
  const remedy = "move or delete that one first";
  return new VaultError("ALREADY_EXISTS", `there is a secret at ${path} again: ${remedy}`);
}
