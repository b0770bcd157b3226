/** Secret as callers get it: printing it, logging it or converting it to JSON never shows its value. */
import type { Metadata, Secret as SecretResponse } from "./api-types.js";

export class Secret {
  readonly path: string;
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly version: number;
  /** Names this state of the secret, for `ifMatch`. */
  readonly etag: string;
  readonly #value: string;

  constructor({ path, value, metadata, createdAt, updatedAt, version, etag }: SecretResponse) {
    this.path = path;
    this.metadata = metadata;
    this.createdAt = createdAt;
    this.updatedAt = updatedAt;
    this.version = version;
    this.etag = etag;
    this.#value = value;
  }

  /** Returns the value. A method, not a property: inspection and serialization never call it. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return `Secret(${this.path})`;
  }

  toJSON(): object {
    const { path, metadata, createdAt, updatedAt, version, etag } = this;
    return { path, metadata, createdAt, updatedAt, version, etag };
  }
}
