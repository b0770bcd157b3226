/**
 * Owns the check of the bodies of init, unlock and put by ajv, each against its schema. The texts of a refusal are
 * written here and never repeat any input.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { bodySchemas, maxDescriptionBytes, maxPassphraseBytes, secretTypes, type TextRule } from "./body-schemas.js";
import { type JsonValue, readObject, wipeFields } from "./json/json-reader.js";
import { JsonText, type Memory } from "./json/json-string.js";
import { allocateVanishing, scratch, wipe } from "./memory.js";
import type { Bytes, Refusal } from "./protocol.js";

export type InitBody = { readonly passphrase: JsonText; readonly force?: boolean };
export type UnlockBody = { readonly passphrase: JsonText };
export type PutBody = { readonly value: JsonText; readonly type?: JsonText; readonly description?: JsonText };

/** Reads and wipes a body: its checked fields, or why not. The caller wipes the texts in the fields. */
type Reader<T> = (body: Bytes) => { readonly ok: true; readonly fields: T } | Refusal;

export interface BodyReaders {
  readonly init: Reader<InitBody>;
  readonly unlock: Reader<UnlockBody>;
  readonly put: Reader<PutBody>;
}

function isText(rule: TextRule, data: unknown): boolean {
  if (!(data instanceof JsonText) || !data.wellFormed) return false;
  if (data.bytes.length < rule.min || data.bytes.length > rule.max) return false;
  return rule.oneOf === undefined || rule.oneOf.includes(data.toString());
}

export function bodyReaders(maxValueBytes: number): BodyReaders {
  const ajv = new Ajv({ allErrors: false }).addKeyword({ keyword: "text", validate: isText, errors: false });
  const schemas = bodySchemas(maxValueBytes);
  const sentences: Sentences = {
    passphrase: `passphrase must be a non-empty string of at most ${maxPassphraseBytes} bytes of UTF-8`,
    force: "force must be true or false",
    value: `value must be a string of at most ${maxValueBytes} bytes of UTF-8, without lone surrogates`,
    type: `type must be one of ${secretTypes.join(", ")}`,
    description: `description must be a string of at most ${maxDescriptionBytes} bytes of UTF-8, without lone surrogates`,
  };
  const reader = <T>(schema: BodySchema, memory: Memory): Reader<T> =>
    bodyReader(ajv.compile<T>(schema), Object.keys(schema.properties), sentences, memory);
  return {
    init: reader<InitBody>(schemas.init, allocateVanishing),
    unlock: reader<UnlockBody>(schemas.unlock, allocateVanishing),
    put: reader<PutBody>(schemas.put, scratch),
  };
}

type BodySchema = { readonly properties: object };
type Sentences = Readonly<Record<string, string>>;

function bodyReader<T>(
  validate: ValidateFunction<T>,
  names: readonly string[],
  sentences: Sentences,
  memory: Memory,
): Reader<T> {
  return (body) => {
    let found: Map<string, JsonValue> | null;
    try {
      found = readObject(body, names, memory);
    } finally {
      wipe(body);
    }
    if (found === null) return badRequest("the body must be one JSON object in UTF-8");
    const fields: unknown = Object.fromEntries(found);
    if (validate(fields)) return { ok: true, fields };
    wipeFields(found);
    return badRequest(sentences[faultyField(validate.errors?.[0])] ?? "the body is not valid");
  };
}

function faultyField(error: ErrorObject | undefined): string {
  return error?.keyword === "required" ? String(error.params["missingProperty"]) : (error?.instancePath.slice(1) ?? "");
}

function badRequest(detail: string): Refusal {
  return { ok: false, code: "BAD_REQUEST", detail };
}
