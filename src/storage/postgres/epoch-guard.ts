/**
 * Queries whose answers must come from the expected epoch of the vault: every answer carries its epoch, and any other one is
 * refused.
 */
import { randomUUID } from "node:crypto";
import type { Bytes } from "../../../workers/protocol.js";
import { VaultError } from "../../errors.js";
import type { Database, Row, Value } from "./database.js";
import { decodeBytea } from "./statement-values.js";
import { type Statement, statements } from "./statements.js";

export class EpochGuard {
  onReplaced: () => void = () => {};
  readonly #database: Database;
  #epoch = "";
  #generation: string | null = null;
  /** The epoch that a running change of this server will set. */
  #nextEpoch: string | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  get generation(): string | null {
    return this.#generation;
  }

  /** Returns the current header, or null before the first init, and expects its epoch from now on. */
  async readHeader(): Promise<Bytes | null> {
    const [row] = await this.#database.query(statements.header, []);
    const [epoch = null, generation = null, header = null] = row ?? [];
    this.#epoch = epoch ?? "";
    this.#generation = generation;
    return header === null || epoch === null ? null : decodeBytea(header);
  }

  /**
   * Returns the first row without its epoch. A change is given the expected epoch before its other values.
   * @throws VaultError VAULT_LOCKED for another epoch, after `onReplaced`; UNAVAILABLE where the row with the epoch is missing
   */
  async ask(statement: Statement, values: readonly Value[], extraMs?: number): Promise<Row> {
    const asked = this.#epoch;
    const isChange = statement.isChange === true;
    const [row] = await this.#database.query(statement, isChange ? [asked, ...values] : values, extraMs);
    const [epoch = null, ...rest] = row ?? [];
    if (epoch === null)
      throw new VaultError("UNAVAILABLE", "the database names no current vault: run strongroom doctor");
    if (epoch === this.#nextEpoch) this.#epoch = epoch;
    if (epoch === this.#epoch) return rest;
    // The database answered before this server's own change, which has ended by now.
    if (epoch === asked && !isChange) return this.ask(statement, values, extraMs);
    this.onReplaced();
    const problem = "another server has replaced the vault or changed its keys";
    throw new VaultError("VAULT_LOCKED", `${problem}: unlock it again, with its current passphrase`);
  }

  /** Returns the number of the vault that was current; null when there was none. `documents`: see `documentsParameters`. */
  async startVault(header: Bytes, documents: readonly Value[]): Promise<string | null> {
    const [kept = null, made = null] = await this.#changeEpoch((next) =>
      this.ask(statements.startVault, [next, header, ...documents]),
    );
    this.#generation = made;
    return kept;
  }

  /** `document`: its name, bytes, tag and expected tag. Returns null, and changes nothing, when it has another tag. */
  async replaceHeader(header: Bytes, before: Bytes, document: readonly Value[] | null): Promise<boolean | null> {
    const statement = document === null ? statements.replaceHeader : statements.replaceHeaderWith;
    const values = [header, before, ...(document ?? [])];
    try {
      const [replaced = null] = await this.#changeEpoch((next) => this.ask(statement, [next, ...values]));
      return replaced === null ? null : replaced === "t";
    } catch (error) {
      if (error instanceof VaultError && error.code === "VAULT_LOCKED") return false;
      throw error;
    }
  }

  /**
   * Expects the new epoch once the change is committed, even when another query's answer is the first to carry it.
   * DANGER: after a failure the old one is expected again, or the old key would seal secrets for the new vault.
   */
  async #changeEpoch(change: (next: string) => Promise<Row>): Promise<Row> {
    const [before, next] = [this.#epoch, randomUUID()];
    this.#nextEpoch = next;
    try {
      return await change(next);
    } catch (error) {
      if (this.#epoch === next) this.#epoch = before;
      throw error;
    } finally {
      this.#nextEpoch = null;
    }
  }
}
