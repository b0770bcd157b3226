/**
 * Genuine records of client tokens: those whose MAC is the vault's. A record that was added or edited by hand opens nothing.
 */
import type { Log } from "../log.js";
import { signedText, type TokenDocument, type TokenRecord, type UnsignedRecord } from "./token-record.js";

/** The vault's MACs of records. */
export interface RecordVault {
  /** @throws VaultError VAULT_LOCKED */
  signRecords(texts: readonly string[]): Promise<readonly string[]>;
  /** @throws VaultError VAULT_LOCKED */
  verifyRecords(texts: readonly string[], macs: readonly string[]): Promise<readonly boolean[]>;
}

export class GenuineRecords {
  readonly #vault: RecordVault;
  readonly #log: Log;
  readonly #known = new WeakSet<TokenRecord>();

  constructor(vault: RecordVault, log: Log) {
    this.#vault = vault;
    this.#log = log;
  }

  /** Whether the record's MAC was checked, or made here. */
  has(record: TokenRecord): boolean {
    return this.#known.has(record);
  }

  /** @throws VaultError VAULT_LOCKED */
  async sign(unsigned: UnsignedRecord): Promise<TokenRecord> {
    const [mac = ""] = await this.#vault.signRecords([signedText(unsigned)]);
    return this.#noted({ ...unsigned, mac });
  }

  /** Returns the document with new MACs, without records that were not checked. @throws VaultError VAULT_LOCKED */
  async resigned(document: TokenDocument): Promise<TokenDocument> {
    const genuine = document.tokens.filter((record) => this.#known.has(record));
    const macs = await this.#vault.signRecords(genuine.map(signedText));
    const tokens = genuine.map((record, i) => this.#noted({ ...record, mac: macs[i] ?? "" }));
    return { ...document, tokens };
  }

  /** Checks the records not yet known, and moves the forged ones to `refused`. @throws VaultError VAULT_LOCKED */
  async withoutForged(document: TokenDocument, lastUsed: TokenDocument["lastUsed"]): Promise<TokenDocument> {
    const unknown = document.tokens.filter((record) => !this.#known.has(record));
    const macs = unknown.map(({ mac }) => mac);
    const valid = await this.#vault.verifyRecords(unknown.map(signedText), macs);
    for (const [i, record] of unknown.entries()) if (valid[i]) this.#noted(record);
    const forged = unknown.filter((_, i) => !valid[i]);
    const refused = [
      ...document.refused,
      ...forged.map((one) => ({ ...one, lastUsedAt: lastUsed.get(one.name) ?? null })),
    ];
    if (refused.length > 0) this.#log.warn({ event: "tokens-refused", count: refused.length, hint: refusedHint });
    return { ...document, refused, tokens: document.tokens.filter((record) => this.#known.has(record)) };
  }

  #noted(record: TokenRecord): TokenRecord {
    this.#known.add(record);
    return record;
  }
}

const refusedHint = "added or changed outside of the server, they open nothing: strongroom doctor --open names them";
