/**
 * Queries whose answers must come from the expected epoch of the vault: every answer carries its epoch, and any other one is
 * refused.
 */
import { randomUUID } from "node:crypto";
import type { Bytes } from "../../../workers/protocol.js";
import { VaultError } from "../../errors.js";
import type { Database, Row, Value } from "./database.js";
import { bytesOf } from "./statement-values.js";
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

  /** The epoch that answers must come from. */
  get epoch(): string {
    return this.#epoch;
  }

  get generation(): string | null {
    return this.#generation;
  }

  /** Returns the current header, or null before the first init, and expects its epoch from now on. */
  async readHeader(): Promise<Bytes | null> {
    const [row] = await this.#database.query(statements.header, []);
    const [epoch, generation = null, header = null] = row ?? [];
    this.#epoch = epoch ?? "";
    this.#generation = generation;
    return header === null ? null : bytesOf(header);
  }

  /** Returns the first row without its epoch. @throws VaultError VAULT_LOCKED for another epoch, after `onReplaced` */
  async ask(statement: Statement, values: readonly Value[], extraMs?: number): Promise<Row> {
    const asked = this.#epoch;
    const [row] = await this.#database.query(statement, values, extraMs);
    const [epoch = null, ...rest] = row ?? [];
    if (epoch !== null && epoch === this.#nextEpoch) this.#epoch = epoch;
    if (epoch === this.#epoch) return rest;
    if (epoch === asked && statement.isChange !== true) return this.ask(statement, values, extraMs); // overtaken by a change of this server
    this.onReplaced();
    const problem = "another server has replaced the vault or changed its keys";
    throw new VaultError("VAULT_LOCKED", `${problem}: unlock it again, with its current passphrase`);
  }

  /** Returns the number of the vault that was current; null when there was none. */
  async startVault(header: Bytes): Promise<string | null> {
    const [kept = null, made = null] = await this.#changeEpoch((next) =>
      this.ask(statements.startVault, [this.#epoch, next, header]),
    );
    this.#generation = made;
    return kept;
  }

  async replaceHeader(header: Bytes, before: Bytes): Promise<boolean> {
    try {
      const [replaced] = await this.#changeEpoch((next) =>
        this.ask(statements.replaceHeader, [this.#epoch, next, header, before]),
      );
      return replaced === "t";
    } catch (error) {
      if (error instanceof VaultError && error.code === "VAULT_LOCKED") return false;
      throw error;
    }
  }

  /** Expects the new epoch once the change is committed, even when another query's answer is the first to carry it. */
  async #changeEpoch(change: (next: string) => Promise<Row>): Promise<Row> {
    const next = randomUUID();
    this.#nextEpoch = next;
    try {
      return await change(next);
    } finally {
      this.#nextEpoch = null;
    }
  }
}
