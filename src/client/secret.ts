/** Secret as callers get it: printing it, logging it or converting it to JSON never shows its value. */
import type { Metadata, Secret as SecretResponse } from "./api-types.js";
import { StrongroomError } from "./errors.js";
import { findField } from "./fields.js";

export class Secret {
  readonly path: string;
  /** Set for a binary value. */
  readonly encoding: "base64" | undefined;
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly version: number;
  /** Names this state of the secret, for `ifMatch`. */
  readonly etag: string;
  readonly #value: string;

  constructor({ path, value, encoding, metadata, createdAt, updatedAt, version, etag }: SecretResponse) {
    this.path = path;
    this.encoding = encoding;
    this.metadata = metadata;
    this.createdAt = createdAt;
    this.updatedAt = updatedAt;
    this.version = version;
    this.etag = etag;
    this.#value = value;
  }

  /** Returns the value, in base64 if it is binary. A method, not a property: inspection and serialization never call it. */
  reveal(): string {
    return this.#value;
  }

  /** Returns the value's bytes: of a text, in UTF-8. They are the caller's to wipe. */
  revealBytes(): Uint8Array {
    if (this.encoding === undefined) return new TextEncoder().encode(this.#value);
    return new Uint8Array(Buffer.from(this.#value, "base64"));
  }

  /**
   * Returns a field of a value that is a JSON object: the text of a string, the JSON of anything else.
   * @param name Such as `user.name` for the member `name` of the member `user`, or `hosts.0` for an element of a list.
   * @throws StrongroomError NOT_FOUND without such a field; BAD_REQUEST for a binary value
   */
  field(name: string): string {
    if (this.encoding !== undefined) throw new StrongroomError("BAD_REQUEST", `${this.path} is a binary value`);
    const found = findField(this.#value, name);
    if (found !== null && "text" in found) return found.text;
    const problem = found === null ? ": its value is not a JSON object" : `: it has ${found.names.join(", ")}`;
    throw new StrongroomError("NOT_FOUND", `${this.path} has no field ${name}${problem}`);
  }

  toString(): string {
    return `Secret(${this.path})`;
  }

  toJSON(): object {
    const { path, encoding, metadata, createdAt, updatedAt, version, etag } = this;
    return { path, ...(encoding && { encoding }), metadata, createdAt, updatedAt, version, etag };
  }
}
