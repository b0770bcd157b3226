/**
 * Interface between the vault and its storage engine, which sees names and opaque bytes only.
 *
 * A vault has several spaces of sealed blobs, each a tree of paths of its own: the same path may exist in each. Where a call
 * takes a space, it is `secrets` unless another one is given. One commit may change several spaces at once.
 *
 * Calls may run concurrently. The caller serialises the changes of each path, and runs `startNewVault` and `replaceHeader`
 * alone.
 */
import type { Bytes } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";

/** `secrets`: what lists and counts show; `trash`: deleted secrets; `keys`: named keys that never leave the key worker. */
export const spaces = ["secrets", "trash", "keys"] as const;
export type Space = (typeof spaces)[number];

export type StoredSnapshot = { readonly directory: string; readonly count: number };

/** The process that reads a frozen vault. */
export type BackupProcess = { readonly pid: number; readonly started: string };

/**
 * State of a path that a change requires: a secret, none, or the blob with this tag (see `blobTag`). A change that is made of
 * the `whole` blob also requires its earlier versions, which a store that only this server changes need not compare.
 */
export type Expected = "present" | "absent" | { readonly tag: string; readonly whole?: Bytes };

/** `blob` null removes. Without `expected`, any state will do. */
export type Change = {
  readonly space?: Space;
  readonly path: string;
  readonly blob: Bytes | null;
  readonly expected?: Expected;
};

/** `refused`: index of a change whose expectation did not hold; nothing has changed. */
export type CommitResult = { readonly committed: true } | { readonly committed: false; readonly refused: number };

export type NamedDocument = { readonly name: string; readonly bytes: Bytes };

/** A document to write over the one with the expected tag (null: there is none). */
export type DocumentChange = NamedDocument & { readonly expected: string | null };

/** `tag` changes with the bytes. */
export type StoredDocument = { readonly bytes: Bytes; readonly tag: string };

/** A blob that a change is based on, by its tag. */
export type ReadVersion = { readonly space?: Space; readonly path: string; readonly tag: string };

/** A path and the first bytes of its blob. */
export type Listed = { readonly path: string; readonly head: Bytes };

/** Something wrong with the store itself, and what to do. */
export type StoreProblem = { readonly message: string; readonly remedy: string };

/**
 * Members of a store that other servers also change. All that such a store returns belongs to the vault, and the
 * header, that `header` returned last or that this server has made since.
 */
export interface SharedStore {
  /** Identifies the vault whose header was returned last; null before the first init. */
  readonly generation: string | null;

  /**
   * Calls back when another server has replaced the vault or its header. Until `header` is called, every other call throws
   * VAULT_LOCKED.
   */
  onReplaced(listener: () => void): void;

  /** Checks whether another server has. @throws VaultError VAULT_LOCKED after calling back, UNAVAILABLE */
  confirm(): Promise<void>;

  /** Returns how many connections the vault's servers have. @throws VaultError UNAVAILABLE */
  serverConnections(): Promise<number>;

  /**
   * Names the database and its current run. Another one, after a restart, a failover or a restore, may have lost the last commits.
   * @throws VaultError UNAVAILABLE, VAULT_LOCKED
   */
  currentRun(): Promise<string>;

  /**
   * Runs work that one server at a time may run, of those for a path where one is given; returns false, without running it, while
   * another server does.
   */
  alone(work: () => Promise<void>, path?: string): Promise<boolean>;

  /**
   * Like `commit` if no basis has changed; `refused` numbers the bases after the changes. No path is both changed and
   * a basis.
   */
  commitOn(changes: readonly Change[], bases: readonly ReadVersion[]): Promise<CommitResult>;

  /** Returns the tags of small documents at one moment; null for a missing document. @throws VaultError UNAVAILABLE */
  documentTags(names: readonly string[]): Promise<readonly (string | null)[]>;

  /** For doctor: an untrusted role owns tables, and could run code with a server's rights; null when none does. */
  readonly foreignOwner: StoreProblem | null;

  /** Says which rows no server has written, for doctor. @throws VaultError UNAVAILABLE */
  foreignRows(): Promise<readonly string[]>;

  /** Like `list`, with each blob's head, up to the end of its metadata, but at most `first` bytes. */
  listWithHeads(prefix: string, after: string, limit: number, first: number, space?: Space): Promise<readonly Listed[]>;
}

/** Storage of one vault, whatever the engine. */
export interface SecretStore {
  /** Undefined where only this server changes the vault. */
  readonly shared?: SharedStore;

  /** The absolute path of the whole vault, or host and name of its database, for people to read. */
  readonly vaultPath: string;

  /** Returns the current vault's header; null before the first init. @throws VaultError UNAVAILABLE */
  header(): Promise<Bytes | null>;

  /** Returns the number of blobs in a space; needs no key. @throws VaultError UNAVAILABLE */
  count(space?: Space): Promise<number>;

  /**
   * Returns at most `limit` canonical paths that start with `prefix` and sort after `after`, ascending by UTF-8 bytes.
   * @throws VaultError UNAVAILABLE
   */
  list(prefix: string, after: string, limit: number, space?: Space): Promise<readonly string[]>;

  /**
   * Returns the blob at a path, or its first bytes; null when there is none.
   * @throws VaultError INTEGRITY when it is not a plain file, UNAVAILABLE when it cannot be read.
   */
  read(path: string, first?: number, space?: Space): Promise<Bytes | null>;

  /**
   * Makes all changes, of distinct paths in each space, or none; once resolved, they survive a power cut. A reader never sees a part.
   * @throws VaultError UNAVAILABLE; then all changes have been made, or none has.
   */
  commit(changes: readonly Change[]): Promise<CommitResult>;

  /**
   * Makes what `read` returns of a path survive a power cut, also where the commit that wrote it failed or its process was
   * killed. As during a commit, the caller changes the path in no other way at the same time.
   * @throws VaultError UNAVAILABLE
   */
  flush(path: string, space?: Space): Promise<void>;

  /**
   * Atomically switches to a new vault without secrets, which has these documents; returns where the old one is kept, or null
   * when there was none.
   * @throws VaultError UNAVAILABLE; the old vault is then untouched.
   */
  startNewVault(header: Bytes, documents?: readonly NamedDocument[]): Promise<string | null>;

  /**
   * Atomically replaces the current vault's header; returns false, and changes nothing, unless it is `before`. A document is
   * written durably before it, or in the same step.
   * @throws VaultError UNAVAILABLE; `header` then returns the old one or the new one, as the next start may. Also when the
   * document's tag is not the expected one: nothing has changed.
   */
  replaceHeader(header: Bytes, before: Bytes, document?: DocumentChange | null): Promise<boolean>;

  /** Returns a small document of the current vault; null when there is none. @throws VaultError UNAVAILABLE */
  readDocument(name: string): Promise<StoredDocument | null>;

  /**
   * Creates or atomically replaces a small document, at most `maxDocumentBytes`, that no snapshot contains. Returns its new
   * tag; or null, and changes nothing, unless its tag is `expected` (null: there is none).
   * @throws VaultError UNAVAILABLE; it then holds the old bytes or the new ones.
   */
  writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null>;

  /**
   * Writes a point-in-time copy of the vault to a new directory (layout: see `Snapshot`) while writes continue; the
   * caller removes it.
   * @throws VaultError UNAVAILABLE; nothing of the snapshot is left then.
   */
  snapshot(): Promise<StoredSnapshot>;

  /**
   * For a disk that takes no snapshot: returns the directory of the vault itself, and refuses all changes while `reader`
   * lives. No other call may run at the same time.
   * @throws VaultError UNAVAILABLE when `reader` cannot be found, or another one is reading.
   */
  freeze(reader: BackupProcess): Promise<StoredSnapshot>;

  /** Releases the claim on the vault. */
  close(): Promise<void>;
}

/** Yields names in pages, until one is not full. `list` returns at most `size` of those after a name. */
export async function* readPages(
  list: (after: string) => Promise<readonly string[]>,
  size: number,
  after = "",
): AsyncGenerator<readonly string[], void, void> {
  for (let last = after; ; ) {
    const found = await list(last);
    yield found;
    if (found.length < size) return;
    last = found.at(-1) ?? "";
  }
}

/** Another program has changed a document that a header was to be replaced with. */
export function documentChanged(): VaultError {
  return new VaultError("UNAVAILABLE", "another program changed the vault's documents at the same time: try again");
}

/** Names of documents: lower-case letters and dashes. */
export const documentName = /^[a-z][a-z-]{0,31}$/;

export const maxDocumentBytes = 4 * 2 ** 20;
