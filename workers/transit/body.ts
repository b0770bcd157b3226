/**
 * Bodies of requests to transit keys: fields by name, each checked where it is read. Binary fields are base64, decoded into
 * scratch memory.
 */
import { type JsonValue, readElements, readObject } from "../json/json-reader.js";
import { JsonText } from "../json/json-string.js";
import { utf8 } from "../memory.js";
import type { Refusal } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { fromBase64 } from "./base64.js";

export const mostInputs = 1000;

/** Why a request is invalid. The text is for the client and never repeats any input. */
export class Invalid extends Error {
  get refusal(): Refusal {
    return badRequest(this.message);
  }
}

/** Options of Vault that would change the meaning of a request: refused where they ask for something. */
const refused = ["derived", "convergent_encryption", "context", "nonce", "associated_data"] as const;

const names = [
  ...["plaintext", "ciphertext", "aad", "input", "signature", "hmac", "prehashed", "hash", "marshaling"],
  ...["signatureAlgorithm", "bits", "bytes", "type", "exportable", "key", "minDecryptionVersion", "deletionAllowed"],
  ...["keyVersion", "batch", ...refused],
];

const emptyObject = utf8("{}");

export class Fields {
  readonly #fields: ReadonlyMap<string, JsonValue>;
  readonly #maxBytes: number;

  private constructor(fields: ReadonlyMap<string, JsonValue>, maxBytes: number) {
    this.#fields = fields;
    this.#maxBytes = maxBytes;
  }

  /** An empty body has no fields. @throws Invalid */
  static read(body: Uint8Array, maxBytes: number): Fields {
    const found = readObject(body.length === 0 ? emptyObject : body, names);
    if (found === null) throw new Invalid("the body must be one JSON object in UTF-8");
    for (const name of refused) {
      const value = found.get(name);
      const isEmpty = value instanceof JsonText && value.bytes.length === 0;
      if (value === undefined || value === null || value === false || isEmpty) continue;
      throw new Invalid(`${name} is not supported: leave it out`);
    }
    return new Fields(found, maxBytes);
  }

  has(name: string): boolean {
    return this.#fields.has(name);
  }

  /** Decodes base64; undefined where the field is missing. @throws Invalid */
  optionalBytes(name: string): Uint8Array | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#fields.get(name);
    const bytes = value instanceof JsonText ? fromBase64(value.bytes) : null;
    if (bytes === null) throw new Invalid(`${name} must be a string in base64`);
    if (bytes.length > this.#maxBytes) throw new Invalid(`${name} must have at most ${this.#maxBytes} bytes`);
    return bytes;
  }

  /** @throws Invalid */
  bytes(name: string): Uint8Array {
    const bytes = this.optionalBytes(name);
    if (bytes === undefined) throw new Invalid(`${name} is missing: it must be a string in base64`);
    return bytes;
  }

  /** The bytes of a string. @throws Invalid */
  text(name: string): Uint8Array {
    const value = this.#fields.get(name);
    if (!(value instanceof JsonText)) throw new Invalid(`${name} must be a string`);
    return value.bytes;
  }

  /** @throws Invalid */
  choice<T extends string>(name: string, choices: readonly T[], absent: T): T {
    if (!this.has(name)) return absent;
    const value = this.#fields.get(name);
    const chosen = value instanceof JsonText ? choices.find((choice) => choice === value.toString()) : undefined;
    if (chosen === undefined) throw new Invalid(`${name} must be one of ${choices.join(", ")}`);
    return chosen;
  }

  /** @throws Invalid */
  flag(name: string, absent: boolean): boolean {
    const value = this.#fields.get(name);
    if (value === undefined) return absent;
    if (typeof value !== "boolean") throw new Invalid(`${name} must be true or false`);
    return value;
  }

  /** @throws Invalid */
  whole(name: string, least: number, most: number, absent: number): number {
    const value = this.#fields.get(name);
    if (value === undefined) return absent;
    if (typeof value !== "number" || value < least || value > most)
      throw new Invalid(`${name} must be a whole number from ${least} to ${most}`);
    return value;
  }
}

/**
 * Returns the inputs of a body: those of its batch, or the body itself.
 * @throws Invalid
 */
export function inputsOf(body: Uint8Array): { readonly inputs: readonly Uint8Array[]; readonly isBatch: boolean } {
  const found = readObject(body.length === 0 ? emptyObject : body, ["batch"]);
  if (found === null) throw new Invalid("the body must be one JSON object in UTF-8");
  if (!found.has("batch")) return { inputs: [body], isBatch: false };
  const spans = readElements(body, "batch", mostInputs);
  if (spans === null) throw new Invalid(`batch must be an array of at most ${mostInputs} objects`);
  return { inputs: spans.map(({ start, end }) => body.subarray(start, end)), isBatch: true };
}
