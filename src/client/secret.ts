/** Owns a secret in the caller's hands: printing it, logging it or making JSON of it never shows its value. */
import type { Metadata, Secret as SecretAnswer } from "./api-types.js";

export class Secret {
  readonly path: string;
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly #value: string;

  constructor({ path, value, metadata, createdAt, updatedAt }: SecretAnswer) {
    this.path = path;
    this.metadata = metadata;
    this.createdAt = createdAt;
    this.updatedAt = updatedAt;
    this.#value = value;
  }

  /** The value. A method, and not a property: nothing that walks through objects ever calls it. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return `Secret(${this.path})`;
  }

  toJSON(): object {
    const { path, metadata, createdAt, updatedAt } = this;
    return { path, metadata, createdAt, updatedAt };
  }
}
