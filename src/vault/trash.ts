/**
 * The trash of an unlocked vault: deleted secrets with their whole history, as they were sealed, in a space of their own. A
 * secret moves there and back in one durable commit. Changes take the turn of the secret's path.
 */
import type { Bytes, Head } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import { blobTag } from "../storage/blob-tag.js";
import { type Change, type Expected, readPages } from "../storage/secret-store.js";
import { readTrashed, type Trashed, trashedBlob, trashedHeadBytes, trashedTagBytes } from "../storage/trashed-blob.js";
import { blobHead } from "./cache.js";
import {
  always,
  type Condition,
  conflictAt,
  expectedAs,
  notFound,
  requireCurrent,
  unconditional,
} from "./conditions.js";
import type { Heads, ListPart, ListQuery } from "./list.js";
import { headBytes, SealedSpace, type SpaceKind, type SpaceParts } from "./space.js";

type TrashOptions = SpaceParts & {
  readonly clock: Clock;
  /** Whether the master key is being rotated. */
  readonly isRotating: () => boolean;
};

const space = "trash";

const kind: SpaceKind = {
  space,
  notFound: notInTrash,
  conflict: conflictAt,
  headBytes: trashedHeadBytes + headBytes,
  listed: "entries",
  describe: (paths, heads) => {
    const trashed = heads.map((head) => readTrashed(decodeHead(head)));
    const inner = trashed.map((one): Head => (one === null ? "" : blobHead(one.blob)));
    return { op: "describe", paths, heads: inner, deletedAt: trashed.map((one) => one?.deletedAt ?? 0) };
  },
  wrapper: {
    bytes: trashedHeadBytes,
    unwrap: readInnerBlob,
    wrap: (stored, blob) => trashedBlob({ deletedAt: readTrashed(stored)?.deletedAt ?? 0, blob }),
  },
};

/** `sealedBytes`: what they write. */
type TrashChanges = { readonly changes: readonly Change[]; readonly sealedBytes: number };

const sweptAtOnce = 256;

/** Callbacks of a sweep. `kept`: the time of a secret that is too young. `continues`: false ends it. */
type Sweep = {
  readonly destroyed: (path: string) => void;
  readonly kept: (deletedAt: number) => void;
  readonly continues: () => boolean;
};

/** `stored`: as it is in its space. `blob`: the secret's, under the current master key. `intact`: all versions of it open. */
type Found = { readonly stored: Bytes; readonly blob: Bytes; readonly intact: boolean };

export class VaultTrash {
  readonly space: SealedSpace;
  readonly #secrets: SealedSpace;
  readonly #options: TrashOptions;

  constructor(secrets: SealedSpace, options: TrashOptions) {
    this.space = new SealedSpace(kind, options, secrets.turns);
    this.#secrets = secrets;
    this.#options = options;
  }

  /**
   * Moves a secret to the trash, where it replaces an earlier one; returns when, in milliseconds since 1970.
   * @throws VaultError VAULT_LOCKED, NOT_FOUND, PRECONDITION_FAILED, UNAVAILABLE
   */
  move(path: string, condition = unconditional, permit = always): Promise<number> {
    return this.space.change(path, permit, async () => {
      const { changes, deletedAt } = await this.changesFor(path, condition);
      const { committed } = await this.space.commit(changes);
      if (!committed) throw conflictAt(condition, path);
      return deletedAt;
    });
  }

  /** Returns the changes that move a secret to the trash. It must be the path's turn. @throws VaultError as move */
  async changesFor(path: string, condition: Condition): Promise<TrashChanges & { readonly deletedAt: number }> {
    const found = await this.#find(path, this.#secrets);
    requireCurrent(condition, path, found?.stored ?? null);
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
    const found = await this.#find(path, this.#secrets);
    if (found === null) return null;
    const blob = trashedBlob({ deletedAt: this.#options.clock.now(), blob: found.blob });
    return { changes: [{ space, path, blob }], sealedBytes: blob.length, expected: expectedAs(found.stored) };
  }

  /** Moves a secret back. @throws VaultError ALREADY_EXISTS where there is one again, INTEGRITY, … as move */
  restore(path: string, condition = unconditional, permit = always): Promise<void> {
    return this.space.change(path, permit, async () => {
      const found = await this.#find(path, this.space);
      requireCurrent(condition, path, found?.blob ?? null);
      if (found === null) throw notInTrash(path);
      const removed = { space, path, blob: null, expected: expectedAs(found.stored) } as const;
      const result = await this.space.commit([removed, { path, blob: found.blob, expected: "absent" }]);
      if (result.committed) return;
      throw result.refused === 0 ? conflictAt(condition, path) : alreadyExists(path);
    });
  }

  /** Destroys a secret in the trash. @throws VaultError as move */
  destroy(path: string, condition = unconditional, permit = always): Promise<void> {
    return this.space.change(path, permit, async () => {
      const found = await this.space.stored(path, trashedTagBytes);
      requireCurrent(condition, path, found && (readTrashed(found)?.blob ?? null));
      const head = this.space.must(path, found);
      await this.space.replace(path, null, { tag: blobTag(head) }, condition);
    });
  }

  /** Like `VaultSecrets.list`, of what is in the trash. */
  list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    return this.space.list(query);
  }

  /** Destroys what was moved to the trash at this time or before. Needs no key. @throws VaultError UNAVAILABLE */
  async sweep(until: number, sweep: Sweep): Promise<void> {
    const heads: Heads = new Map();
    const list = (after: string) => this.space.namesWithHeads("", after, sweptAtOnce, heads);
    for await (const paths of readPages(list, sweptAtOnce)) {
      for (const path of paths) {
        if (!sweep.continues()) return;
        const deletedAt = await this.#deletedAt(path, heads);
        if (deletedAt > until) sweep.kept(deletedAt);
        else await this.#sweepOne(path, until, sweep);
      }
      heads.clear();
    }
  }

  /**
   * Reads a secret that is to be moved. A damaged secret is read again: had the disk misread it, the move would remove
   * an intact one. A secret that stays damaged moves as it is.
   */
  async #find(path: string, from: SealedSpace): Promise<Found | null> {
    const first = await this.#findOnce(path, from);
    return first === null || first.intact ? first : this.#findOnce(path, from);
  }

  /** DANGER: what stays under the old master key of a rotation is lost, and the sweep may be past the place where it goes. */
  async #findOnce(path: string, from: SealedSpace): Promise<Found | null> {
    const stored = await from.stored(path);
    if (stored === null) return null;
    const blob = from === this.space ? readInnerBlob(path, stored) : stored;
    const intact = await this.#opens(path, blob);
    if (!this.#options.isRotating()) return { stored, blob, intact };
    const { blob: sealed } = await this.space.ask({ op: "reseal", path, blob });
    return { stored, blob: sealed ?? blob, intact };
  }

  async #opens(path: string, blob: Bytes): Promise<boolean> {
    try {
      await this.space.ask({ op: "check", path, blob });
      return true;
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return false;
      throw error;
    }
  }

  /** Returns when a secret was moved to the trash; what is damaged is left alone, as if that had been at the end of time. */
  async #deletedAt(path: string, listed: Heads): Promise<number> {
    const known = listed.get(path);
    const head = known === undefined ? await this.space.storedOrDamaged(path, trashedHeadBytes) : decodeHead(known);
    return head === null ? 0 : (readTrashed(head)?.deletedAt ?? Number.POSITIVE_INFINITY);
  }

  /** It may have been moved back since, or there again. */
  #sweepOne(path: string, until: number, { continues, destroyed }: Sweep): Promise<void> {
    return this.space.aside(path, async () => {
      const head = continues() ? await this.space.storedOrDamaged(path, trashedHeadBytes) : null;
      const trashed = head && readTrashed(head);
      if (head === null || trashed === null || trashed.deletedAt > until) return;
      const { committed } = await this.space.commit([{ space, path, blob: null, expected: { tag: blobTag(head) } }]);
      if (committed) destroyed(path);
    });
  }
}

function decodeHead(head: Head): Bytes {
  return new Uint8Array(Buffer.from(head, "latin1"));
}

/** @throws VaultError INTEGRITY */
function readInnerBlob(path: string, stored: Bytes): Bytes {
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
