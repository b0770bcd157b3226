/**
 * Storage of a vault's client tokens in two documents: the tokens' document and, once that is too long to be written for each
 * change, a document of the changes since it was written.
 *
 * Read the changes first: a server closes them before it replaces the tokens' document, so a tokens' document that is read
 * later contains them. Every write expects the tag of the document that it replaces, and so fails if another server has
 * written it.
 */
import { randomBytes } from "node:crypto";
import { VaultError } from "../errors.js";
import { changesName, changesText, closedText, readChanges, withChanges, writeChanges } from "./token-changes.js";
import {
  documentName,
  noTokens,
  readDocument,
  type TokenDocument,
  type TokenRecord,
  writeDocument,
} from "./token-record.js";

/** The vault's documents. */
export interface DocumentVault {
  /** Whether other servers also change the documents. */
  readonly isShared: boolean;
  /** Returns null for a missing document, and an empty list for a vault that is not shared. */
  documentTags(names: readonly string[]): Promise<readonly (string | null)[]>;
  readDocument(name: string): Promise<{ readonly bytes: Uint8Array; readonly tag: string } | null>;
  /** Returns the new tag, or null unless the current one is `expected`. */
  writeDocument(name: string, bytes: Uint8Array<ArrayBuffer>, expected: string | null): Promise<string | null>;
}

/** A document to write in place of the one with the expected tag; null: there must be none. */
export type DocumentChange = {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly expected: string | null;
};

/** Limit of each document. */
const maxBytes = 4 * 2 ** 20;

export const tokenDocuments: readonly string[] = [documentName, changesName];

/** Returns the tokens of both documents, each null if it is missing; null when this program did not write one of them. */
export function readTokens(bytes: Uint8Array | null, changesBytes: Uint8Array | null): TokenDocument | null {
  const document = bytes === null ? { ...noTokens, id: null } : readDocument(bytes);
  const changes = changesBytes && readChanges(changesBytes);
  if (document === null || (changesBytes !== null && changes === null)) return null;
  return changes?.after === document.id && changes !== null ? withChanges(document, changes) : document;
}

/** The tokens' document is not written for each change from this size on. Also the limit of the changes. */
const longBytes = 16 * 1024;

/** The tokens' document as last read or written. `id` null: no changes may follow it. */
type Whole = {
  readonly document: TokenDocument;
  readonly id: string | null;
  readonly tag: string | null;
  readonly bytes: number;
};

/** The changes as last read or written. `text` null: the current tokens' document has none. */
type Changes = { readonly text: string | null; readonly isClosed: boolean; readonly tag: string | null };

const noDocument: Whole = { document: noTokens, id: null, tag: null, bytes: 0 };
const noChanges: Changes = { text: null, isClosed: false, tag: null };

type MakeRoom = (document: TokenDocument) => TokenDocument;
type MapRecords = (records: readonly TokenRecord[]) => readonly TokenRecord[];

export class StoredTokens {
  readonly #vault: DocumentVault;
  #whole = noDocument;
  #changes = noChanges;
  #isStale = true;
  /** Tag of the tokens' document at the last `hasChanged`. */
  #seen: string | null = null;

  constructor(vault: DocumentVault) {
    this.#vault = vault;
  }

  /** Whether the stored documents may differ from those last read or written: read them before the next change. */
  get isStale(): boolean {
    return this.#isStale;
  }

  async hasChanged(): Promise<boolean> {
    if (!this.#vault.isShared) return this.#isStale;
    const [tokens = null, changes = null] = await this.#vault.documentTags([documentName, changesName]);
    this.#seen = tokens;
    return this.#isStale || tokens !== this.#whole.tag || changes !== this.#changes.tag;
  }

  /**
   * Reads the documents that have changed.
   * @param recognized returns known records in place of their copies
   * @throws VaultError INTEGRITY for a damaged document, UNAVAILABLE
   */
  async read(recognized: MapRecords): Promise<TokenDocument> {
    const stored = await this.#vault.readDocument(changesName);
    const changes = stored && readChanges(stored.bytes);
    if (stored !== null && changes === null) throw new VaultError("INTEGRITY", damaged);
    const isKnown = !this.#isStale && this.#seen === this.#whole.tag && changes?.after === this.#whole.id;
    if (!isKnown) this.#whole = await this.#readWhole(recognized);
    const isCurrent = changes !== null && changes.after === this.#whole.id;
    const text = isCurrent ? new TextDecoder().decode(stored?.bytes) : null;
    this.#changes = { text, isClosed: isCurrent && changes.isClosed, tag: stored?.tag ?? null };
    this.#isStale = false;
    const { document } = this.#whole;
    return isCurrent ? withChanges(document, changes) : document;
  }

  /**
   * Writes the changes; returns false when another program has changed a document.
   * @param makeRoom returns a smaller document to write in place of one that is too large
   * @throws VaultError BAD_REQUEST for too many tokens, UNAVAILABLE
   */
  async write(document: TokenDocument, makeRoom: MakeRoom): Promise<boolean> {
    const text = this.#changesTo(document);
    return text === null ? this.writeWhole(document, makeRoom) : this.#writeChanges(text, false);
  }

  /** Like `write`, with the last uses of all tokens. */
  async writeWhole(document: TokenDocument, makeRoom: MakeRoom): Promise<boolean> {
    if (this.#whole.tag === null && isEmpty(document)) return true; // no document is needed
    const [whole, bytes] = storedForm(document, makeRoom);
    if (!(await this.#close())) return false;
    const tag = await this.#put(documentName, bytes, this.#whole.tag);
    if (tag === null) return false;
    this.#whole = { ...whole, tag };
    this.#changes = { ...noChanges, tag: this.#changes.tag };
    return true;
  }

  /**
   * Returns the change that a rotation makes, or null when there is none to make. Whether the rotation succeeds or not, the
   * documents must be read again.
   * @throws VaultError UNAVAILABLE
   */
  async change(document: TokenDocument): Promise<DocumentChange | null> {
    if (document.tokens.length === 0) return null;
    const isClosed = await this.#close();
    this.#isStale = true;
    if (!isClosed)
      throw new VaultError("UNAVAILABLE", "another program changed the tokens at the same time: try again");
    const [, bytes] = storedForm(document, (whole) => whole);
    return { name: documentName, bytes, expected: this.#whole.tag };
  }

  /** Forgets the documents: another vault has replaced their vault. */
  forget(): void {
    this.#whole = noDocument;
    this.#changes = noChanges;
    this.#isStale = true;
  }

  async #readWhole(recognized: MapRecords): Promise<Whole> {
    const stored = await this.#vault.readDocument(documentName);
    if (stored === null) return noDocument;
    const whole = readDocument(stored.bytes);
    if (whole === null) throw new VaultError("INTEGRITY", damaged);
    const document = { ...whole, tokens: recognized(whole.tokens) };
    return { document, id: whole.id, tag: stored.tag, bytes: stored.bytes.length };
  }

  /** Returns the text of the changes from the stored document to this one; null: write it whole. */
  #changesTo(document: TokenDocument): string | null {
    const { id, bytes } = this.#whole;
    if (id === null || this.#changes.isClosed) return null;
    const members = changesText(this.#whole.document, document);
    const text = members && writeChanges(members, id);
    const length = text === null ? Number.POSITIVE_INFINITY : Buffer.byteLength(text);
    return length <= longBytes && length + bytes <= maxBytes ? text : null;
  }

  /** Returns false when another program has written changes. */
  async #writeChanges(text: string, isClosed: boolean): Promise<boolean> {
    const tag = await this.#put(changesName, new TextEncoder().encode(text), this.#changes.tag);
    if (tag !== null) this.#changes = { text, isClosed, tag };
    return tag !== null;
  }

  /**
   * Keeps other servers from adding changes to the document that is about to be replaced: they would be lost. Returns false
   * when another server has added some.
   */
  async #close(): Promise<boolean> {
    const { id, document } = this.#whole;
    if (!this.#vault.isShared || id === null || this.#changes.isClosed) return true;
    const text = this.#changes.text ?? writeChanges(changesText(document, document) ?? "", id);
    return this.#writeChanges(closedText(text), true);
  }

  /** Returns the new tag; null when another program has changed the document. After an error, either may be stored. */
  async #put(name: string, bytes: Uint8Array<ArrayBuffer>, expected: string | null): Promise<string | null> {
    this.#isStale = true;
    const tag = await this.#vault.writeDocument(name, bytes, expected);
    this.#isStale = tag === null;
    return tag;
  }
}

const damaged = "the document of the client tokens is damaged: strongroom doctor shows where it is; move it away";

/** @throws VaultError BAD_REQUEST for too many tokens */
function storedForm(
  document: TokenDocument,
  makeRoom: MakeRoom,
): readonly [Omit<Whole, "tag">, Uint8Array<ArrayBuffer>] {
  const id = randomBytes(16).toString("base64url");
  const all = writeDocument(document, id);
  if (all.length < longBytes) return [{ document, id: null, bytes: all.length }, writeDocument(document)];
  if (all.length <= maxBytes) return [{ document, id, bytes: all.length }, all];
  const kept = makeRoom(document);
  const bytes = writeDocument(kept, id);
  if (bytes.length > maxBytes) throw new VaultError("BAD_REQUEST", "there are too many tokens: revoke some");
  return [{ document: kept, id, bytes: bytes.length }, bytes];
}

function isEmpty({ tokens, ended, refused }: TokenDocument): boolean {
  return tokens.length === 0 && ended.length === 0 && refused.length === 0;
}
