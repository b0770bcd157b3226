/** A secret whose value never becomes a string. */
import type { Metadata, Secret as SecretResponse } from "./api-types.js";
import type { Bytes } from "./json-body.js";

/** Like `Secret`, with a value that the caller wipes. */
export class SecretBytes {
  readonly path: string;
  /** Set for a binary value. */
  readonly encoding: "base64" | undefined;
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly version: number;
  /** Names this state of the secret, for `ifMatch`. */
  readonly etag: string;
  readonly #value: Bytes;

  constructor(value: Bytes, described: Omit<SecretResponse, "value">) {
    this.path = described.path;
    this.encoding = described.encoding;
    this.metadata = described.metadata;
    this.createdAt = described.createdAt;
    this.updatedAt = described.updatedAt;
    this.version = described.version;
    this.etag = described.etag;
    this.#value = value;
  }

  /** Returns the value's bytes: of a text, in UTF-8. */
  reveal(): Bytes {
    return this.#value;
  }

  /** Overwrites the value's bytes. */
  wipe(): void {
    this.#value.fill(0);
  }
}
