/**
 * Bodies of requests to transit keys: fields by name, each checked where it is read. Binary fields are base64, decoded into
 * scratch memory.
 */

import { goFlag } from "../go-values.js";
import { FoundFields, type JsonValue, type ListElement, readObjectWithList } from "../json/json-reader.js";
import { JsonText } from "../json/json-string.js";
import { utf8 } from "../memory.js";
import type { Refusal } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { fromBase64, fromGoBase64 } from "./base64.js";

const mostInputs = 1000;

/** Why a request is invalid. The text is for the client and never repeats any input; `forVault`: to one of Vault's clients. */
export class Invalid extends Error {
  readonly forVault: string;

  constructor(message: string, forVault = message) {
    super(message);
    this.forVault = forVault;
  }

  refusal(isForVault: boolean): Refusal {
    return badRequest(isForVault ? this.forVault : this.message);
  }
}

/** Options of Vault that would change the meaning of a request: refused where they ask for something. */
const refused = ["derived", "convergent_encryption", "context", "nonce", "associated_data"] as const;

const fieldNames = [
  ...["plaintext", "ciphertext", "aad", "input", "signature", "hmac", "prehashed", "hash", "marshaling"],
  ...["signatureAlgorithm", "bits", "bytes", "type", "exportable", "key", "minDecryptionVersion", "deletionAllowed"],
  ...["keyVersion", "share", "wrapped", "batch", ...refused],
];

const emptyObject = utf8("{}");

/** How fields are called, and how missing ones are reported, where it is not the native API. */
export type FieldLabels = {
  readonly names: Readonly<Record<string, string>>;
  readonly missing: Readonly<Record<string, string>>;
};

/** Fields by their native names. */
type FieldSource = Pick<ReadonlyMap<string, JsonValue>, "has" | "get">;

export class Fields {
  readonly #fields: FieldSource;
  readonly #maxBytes: number;
  /** Null: the native ones. */
  readonly #labels: FieldLabels | null;

  /** With labels, also takes numbers and truth values that are written as strings. */
  constructor(fields: FieldSource, maxBytes: number, labels: FieldLabels | null = null) {
    this.#fields = fields;
    this.#maxBytes = maxBytes;
    this.#labels = labels;
  }

  get isForVault(): boolean {
    return this.#labels !== null;
  }

  /** Returns the fields of a body, or of an input of a batch. @throws Invalid */
  static of(input: ListElement, maxBytes: number): Fields {
    if (!(input instanceof FoundFields)) throw new Invalid(noObject);
    for (const name of refused) {
      const value = input.get(name);
      const isEmpty = value instanceof JsonText && value.bytes.length === 0;
      if (value === undefined || value === null || value === false || isEmpty) continue;
      throw new Invalid(`${name} is not supported: leave it out`);
    }
    return new Fields(input, maxBytes);
  }

  has(name: string): boolean {
    return this.#fields.has(name);
  }

  /** Decodes base64; undefined where the field is missing. @throws Invalid */
  optionalBytes(name: string): Uint8Array | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#fields.get(name);
    const decode = this.isForVault ? fromGoBase64 : fromBase64;
    const bytes = value instanceof JsonText ? decode(value.bytes) : null;
    if (bytes === null) throw new Invalid(`${this.#called(name)} must be a string in base64`);
    if (bytes.length > this.#maxBytes)
      throw new Invalid(`${this.#called(name)} must have at most ${this.#maxBytes} bytes`);
    return bytes;
  }

  /** @throws Invalid */
  bytes(name: string): Uint8Array {
    const bytes = this.optionalBytes(name);
    if (bytes === undefined)
      throw this.#missing(name, `${this.#called(name)} is missing: it must be a string in base64`);
    return bytes;
  }

  /** The bytes of a string. @throws Invalid */
  text(name: string): Uint8Array {
    const value = this.#fields.get(name);
    if (!(value instanceof JsonText)) throw this.#missing(name, `${this.#called(name)} must be a string`);
    return value.bytes;
  }

  /** @throws Invalid */
  choice<T extends string>(name: string, choices: readonly T[], absent: T): T {
    if (!this.has(name)) return absent;
    const value = this.#fields.get(name);
    const chosen = value instanceof JsonText ? choices.find((choice) => choice === value.toString()) : undefined;
    if (chosen === undefined) throw new Invalid(`${this.#called(name)} must be one of ${choices.join(", ")}`);
    return chosen;
  }

  /** @throws Invalid */
  flag(name: string, absent: boolean): boolean {
    const value = this.#fields.get(name);
    if (value === undefined) return absent;
    const flag = this.#labels === null ? value : goFlag(value instanceof JsonText ? value.toString() : value);
    if (typeof flag !== "boolean") throw new Invalid(`${this.#called(name)} must be true or false`);
    return flag;
  }

  /** @throws Invalid */
  whole(name: string, least: number, most: number, absent: number): number {
    const value = this.#fields.get(name);
    if (value === undefined) return absent;
    const number = this.#labels !== null && value instanceof JsonText ? writtenNumber(value) : value;
    if (typeof number !== "number" || number < least || number > most)
      throw new Invalid(`${this.#called(name)} must be a whole number from ${least} to ${most}`);
    return number;
  }

  #called(name: string): string {
    return this.#labels?.names[name] ?? name;
  }

  #missing(name: string, problem: string): Invalid {
    return new Invalid((!this.has(name) && this.#labels?.missing[name]) || problem);
  }
}

function writtenNumber(text: JsonText): number | null {
  return text.bytes.length <= mostDigits && /^[0-9]+$/.test(text.toString()) ? Number(text.toString()) : null;
}

const mostDigits = 15;

const noObject = "the body must be one JSON object in UTF-8";

/** A request's body, of which everything was found in one pass. */
export type ParsedBody = {
  readonly fields: FoundFields;
  /** Null: the body itself is the input. @throws Invalid where the batch is no list of objects */
  readonly inputs: () => readonly ListElement[] | null;
};

/** An empty body has no fields. @throws Invalid */
export function parseBody(body: Uint8Array, names: readonly string[] = fieldNames, batch = "batch"): ParsedBody {
  const list = { name: batch, most: mostInputs };
  const found = readObjectWithList(body.length === 0 ? emptyObject : body, names, list);
  if (found === null) throw new Invalid(noObject, "failed to parse JSON input");
  const { fields, elements } = found;
  const inputs = () => {
    const value = fields.get(batch);
    const isEmpty = value === null || (value instanceof JsonText && value.bytes.length === 0);
    if (value === undefined || (batch !== "batch" && isEmpty)) return null; // to Vault's clients that is the default
    if (elements === null) throw new Invalid(`${batch} must be an array of at most ${mostInputs} objects`);
    return elements;
  };
  return { fields, inputs };
}
