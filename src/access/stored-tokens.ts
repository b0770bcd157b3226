/** Stored document of the client tokens, which other servers may change, too. */
import { VaultError } from "../errors.js";
import { documentName, readDocument, type TokenDocument, writeDocument } from "./token-record.js";

/** The vault's documents. */
export interface DocumentVault {
  documentTag(name: string): Promise<string | null>;
  readDocument(name: string): Promise<{ readonly bytes: Uint8Array; readonly tag: string } | null>;
  /** Returns the new tag, or null unless the present one is `expected`. */
  writeDocument(name: string, bytes: Uint8Array<ArrayBuffer>, expected: string | null): Promise<string | null>;
}

export const noTokens: TokenDocument = { tokens: [], ended: [], refused: [], lastUsed: new Map() };

/** The limit of a vault's document. */
const maxBytes = 4 * 2 ** 20;

export class StoredTokens {
  readonly #vault: DocumentVault;
  #tag: string | null = null;
  #isStale = true;

  constructor(vault: DocumentVault) {
    this.#vault = vault;
  }

  /** Whether the stored document may differ from the one that was read or written last: read it before the next change. */
  get isStale(): boolean {
    return this.#isStale;
  }

  async hasChanged(): Promise<boolean> {
    return this.#isStale || (await this.#vault.documentTag(documentName)) !== this.#tag;
  }

  /** @throws VaultError INTEGRITY for a damaged document, UNAVAILABLE */
  async read(): Promise<TokenDocument> {
    const stored = await this.#vault.readDocument(documentName);
    const document = stored === null ? noTokens : readDocument(stored.bytes);
    if (document === null) throw new VaultError("INTEGRITY", damaged);
    this.#tag = stored?.tag ?? null;
    this.#isStale = false;
    return document;
  }

  /**
   * Returns false when another program has changed the document.
   * @throws VaultError BAD_REQUEST for too many tokens, UNAVAILABLE
   */
  async write(document: TokenDocument): Promise<boolean> {
    const bytes = writeDocument(document);
    if (bytes.length > maxBytes) throw new VaultError("BAD_REQUEST", "there are too many tokens: revoke some");
    this.#isStale = true;
    this.#tag = await this.#vault.writeDocument(documentName, bytes, this.#tag);
    this.#isStale = this.#tag === null;
    return !this.#isStale;
  }

  /** Forgets the document: another vault, which has none yet, has replaced its vault. */
  forget(): void {
    this.#tag = null;
    this.#isStale = false;
  }
}

const damaged = "the document of the client tokens is damaged: strongroom doctor shows where it is; move it away";
