/**
 * Validation of request bodies and of the operations of a batch, each against its schema. The texts of a refusal are written
 * here and never repeat any input.
 */
import {
  maxCustomBytes,
  maxCustomNameBytes,
  maxDescriptionBytes,
  maxLabelBytes,
  maxPassphraseBytes,
  maxPathBytes,
  maxVersion,
  mostCustom,
  mostKeys,
  type OperationKind,
  operationKinds,
} from "../body-limits.js";
import { JsonObject, readElements, readObject } from "../json/json-reader.js";
import { decodeString, inPlace, inScratch, JsonText, type Memory, quote } from "../json/json-string.js";
import { byteLength, decodeText } from "../memory.js";
import { secretTypes } from "../names.js";
import type { Refusal } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { memberRefusal, vaultMembers } from "../vault-members.js";
import { bodyFields, bodyValidators } from "./body-validators.js";
import { isBase64 } from "./value.js";

export type InitBody = { readonly passphrase: JsonText; readonly force?: boolean };
type UnlockBody = { readonly passphrase: JsonText };
export type PassphraseBody = UnlockBody & { readonly newPassphrase: JsonText };
export type CreateKeyBody = UnlockBody & { readonly label: JsonText };
export type RotateBody = UnlockBody & { readonly keys: readonly JsonText[] };
/** Null removes a field. */
export type MetadataBody = {
  readonly type?: JsonText | null;
  readonly description?: JsonText | null;
  readonly expiresAt?: JsonText | null;
  readonly custom?: JsonObject | null;
};
export type PutBody = {
  readonly value: JsonText;
  /** base64, for a binary value. */
  readonly encoding?: JsonText;
  readonly type?: JsonText;
  readonly description?: JsonText;
  readonly expiresAt?: JsonText;
  readonly custom?: JsonObject;
};
type UndoBody = { readonly version: number };

/** An operation of a batch; a put's value is not among the fields. */
type OperationBody = {
  readonly kind: OperationKind;
  readonly path: JsonText;
  readonly to?: JsonText;
  readonly trashReplaced?: boolean;
  readonly ifMatch?: JsonText;
  readonly ifNoneMatch?: JsonText;
};

/**
 * Returns the validated fields of a body, or a refusal. A passphrase is decoded in place, other texts into scratch memory:
 * the caller wipes the body when it needs the fields no more.
 */
type Reader<T> = (body: Uint8Array) => { readonly ok: true; readonly fields: T } | Refusal;

export interface BodyReaders {
  readonly init: Reader<InitBody>;
  readonly unlock: Reader<UnlockBody>;
  /** `unlock`, by the name that Vault's clients use. */
  readonly unseal: Reader<UnlockBody>;
  readonly changePassphrase: Reader<PassphraseBody>;
  readonly createKey: Reader<CreateKeyBody>;
  readonly rotate: Reader<RotateBody>;
  readonly put: Reader<PutBody>;
  readonly changeMetadata: Reader<MetadataBody>;
  readonly undo: Reader<UndoBody>;
  readonly operation: Reader<OperationBody>;
}

/** The keyword `text` of the schemas. */
function isText(data: unknown, min: number, max: number, choices: readonly string[] | null): boolean {
  if (!(data instanceof JsonText) || !data.wellFormed) return false;
  if (data.bytes.length < min || data.bytes.length > max) return false;
  return choices === null || choices.includes(data.toString());
}

/** ajv's error for the first invalid field. */
type Fault = { readonly instancePath: string; readonly params: { readonly missingProperty?: string } };
type Validator = { (fields: unknown): boolean; readonly errors?: readonly Fault[] | null };

export function bodyReaders(maxValueBytes: number): BodyReaders {
  const validators: Validators = bodyValidators(isText, maxValueBytes);
  const path = (name: string) => `${name} must be a path: a non-empty string of at most ${maxPathBytes} bytes of UTF-8`;
  const sentences: Sentences = {
    get: path("get"),
    put: path("put"),
    delete: path("delete"),
    move: path("move"),
    copy: path("copy"),
    to: path("to"),
    ifMatch: "ifMatch must be a tag without quotes, or *",
    ifNoneMatch: "ifNoneMatch must be *",
    passphrase: `passphrase must be a non-empty string of at most ${maxPassphraseBytes} bytes of UTF-8`,
    newPassphrase: `newPassphrase must be a non-empty string of at most ${maxPassphraseBytes} bytes of UTF-8`,
    label: `label must be a non-empty string of at most ${maxLabelBytes} bytes of UTF-8`,
    keys: `keys must be an array of at most ${mostKeys} texts of keys`,
    trashReplaced: "trashReplaced must be true or false",
    force: "force must be true or false",
    value: `value must be a string of at most ${maxValueBytes} bytes of UTF-8, without lone surrogates`,
    encoding: "encoding must be base64",
    expiresAt: notATime,
    custom: notCustom,
    type: `type must be one of ${secretTypes.join(", ")}`,
    description: `description must be a string of at most ${maxDescriptionBytes} bytes of UTF-8, without lone surrogates`,
    version: `version must be a whole number from 1 to ${maxVersion}`,
  };
  const reader = <T>(name: Exclude<keyof BodyReaders, "operation" | "rotate" | "unseal">, memory: Memory): Reader<T> =>
    bodyReader(validators[name], bodyFields[name], sentences, memory);
  return {
    init: reader<InitBody>("init", inPlace),
    unlock: reader<UnlockBody>("unlock", inPlace),
    unseal: unsealReader(validators.unlock),
    changePassphrase: reader<PassphraseBody>("changePassphrase", inPlace),
    createKey: reader<CreateKeyBody>("createKey", inPlace),
    rotate: rotateReader(validators.rotate, sentences),
    put: reader<PutBody>("put", inScratch),
    changeMetadata: reader<MetadataBody>("changeMetadata", inScratch),
    undo: reader<UndoBody>("undo", inScratch),
    operation: operationReader(validators, sentences),
  };
}

type Sentences = Readonly<Record<string, string>>;
type BodyName = keyof typeof bodyFields;
type Validators = Readonly<Record<BodyName, Validator>>;

const bodySchemas = {
  get: "batchGet",
  put: "batchPut",
  delete: "batchDelete",
  trash: "batchTrash",
  move: "batchMove",
  copy: "batchCopy",
} as const satisfies Readonly<Record<OperationKind, BodyName>>;

function operationReader(validators: Validators, sentences: Sentences): Reader<OperationBody> {
  const names = new Set(operationKinds.flatMap((kind) => bodyFields[bodySchemas[kind]] as readonly string[]));
  return (body) => {
    const found = readObject(body, [...names]);
    const [kind, another] = operationKinds.filter((name) => found?.has(name));
    if (found === null || kind === undefined || another !== undefined) return badRequest(oneKind);
    const fields = Object.fromEntries(found);
    const validate = validators[bodySchemas[kind]];
    if (!validate(fields)) return badRequest(sentences[faultyField(validate.errors?.[0])] ?? "it is not valid");
    const problem = kind === "put" ? problemIn(fields) : null; // the others ignore a value
    if (problem !== null) return badRequest(problem);
    return { ok: true, fields: { ...fields, kind, path: found.get(kind) } as OperationBody };
  };
}

const oneKind = `an operation must be a JSON object with one of ${operationKinds.join(", ")}`;

function unsealReader(validate: Validator): Reader<UnlockBody> {
  const problem = `key must be the passphrase or the text of a key: a string of 1 to ${maxPassphraseBytes} bytes of UTF-8`;
  return (body) => {
    const found = readObject(body, ["key", "reset", "migrate"], inPlace);
    const problems = ["reset", "migrate"].map((name) => {
      const value = found?.get(name);
      return memberRefusal(vaultMembers.unlock, name, value instanceof JsonText ? shortText(value) : value);
    });
    const refusal = problems.find((text) => text !== null);
    if (refusal !== undefined) return badRequest(refusal);
    const passphrase = found?.get("key");
    return judged<UnlockBody>(validate, { passphrase }, { passphrase: problem });
  };
}

/** DANGER: a client may have put its passphrase anywhere, of which no string may be made. */
function shortText({ bytes }: JsonText): string {
  return bytes.length <= 5 ? decodeText(bytes) : "a long text";
}

/** Decodes in place, which destroys the body's JSON, so it finds all texts first. */
function rotateReader(validate: Validator, sentences: Sentences): Reader<RotateBody> {
  return (body) => {
    const spans = readElements(body, "keys", mostKeys);
    const found = readObject(body, ["passphrase", "keys"], inPlace);
    if (found === null) return badRequest(notAnObject);
    const keys = spans?.map(({ start, end }) => textAt(body, start, end));
    return judged(validate, { ...Object.fromEntries(found), ...(keys && { keys }) }, sentences);
  };
}

/** Null for a value that is no string. */
function textAt(body: Uint8Array, start: number, end: number): JsonText | null {
  return body[start] === quote ? decodeString(body.subarray(start + 1, end - 1), inPlace) : null;
}

function bodyReader<T>(validate: Validator, names: readonly string[], sentences: Sentences, memory: Memory): Reader<T> {
  return (body) => {
    const found = readObject(body, names, memory);
    return found === null ? badRequest(notAnObject) : judged(validate, Object.fromEntries(found), sentences);
  };
}

const notAnObject = "the body must be one JSON object in UTF-8";

function judged<T>(
  validate: Validator,
  fields: Readonly<Record<string, unknown>>,
  sentences: Sentences,
): ReturnType<Reader<T>> {
  if (validate(fields)) {
    const problem = problemIn(fields);
    return problem === null ? { ok: true, fields: fields as T } : badRequest(problem);
  }
  return badRequest(sentences[faultyField(validate.errors?.[0])] ?? "the body is not valid");
}

function faultyField(fault: Fault | undefined): string {
  return fault?.params.missingProperty ?? fault?.instancePath.split("/")[1] ?? "";
}

const notATime = "expiresAt must be an ISO 8601 time with a time zone, such as 2026-12-31T00:00:00Z";

/** Checks what the schemas say in patterns and formats, which need strings. */
function problemIn({ value, encoding, expiresAt, custom }: Readonly<Record<string, unknown>>): string | null {
  if (encoding !== undefined && value instanceof JsonText && !isBase64(value.bytes)) {
    return "value must be base64, since encoding is";
  }
  if (custom !== undefined && custom !== null && readCustom(custom) === null) return notCustom;
  return expiresAt instanceof JsonText && isoTime(expiresAt.toString()) === null ? notATime : null;
}

const notCustom = `custom must be an object of at most ${mostCustom} strings, with names of 1 to ${maxCustomNameBytes} bytes, ${maxCustomBytes} bytes of UTF-8 in all, without lone surrogates`;

/** An escaped character takes up to six bytes. */
const maxCustomJsonBytes = 8 * maxCustomBytes;

/** Returns custom metadata; null for what it must not be. */
export function readCustom(json: unknown): Readonly<Record<string, string>> | null {
  if (!(json instanceof JsonObject) || json.bytes.length > maxCustomJsonBytes) return null;
  const custom = JSON.parse(decodeText(json.bytes)) as Readonly<Record<string, unknown>>;
  if (!areTexts(custom)) return null;
  const members = Object.entries(custom);
  const isName = (name: string) => name !== "" && byteLength(name) <= maxCustomNameBytes;
  const bytes = members.flat().reduce((sum, text) => sum + byteLength(text), 0);
  const fits = members.length <= mostCustom && bytes <= maxCustomBytes;
  return fits && members.every(([name]) => isName(name)) ? custom : null;
}

/** Whether all members are strings, and these and their names are well-formed. */
function areTexts(members: Readonly<Record<string, unknown>>): members is Readonly<Record<string, string>> {
  return Object.entries(members)
    .flat()
    .every((text) => typeof text === "string" && !/\p{Surrogate}/u.test(text));
}

const timeForm = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** Returns the time in UTC with milliseconds; null when the text is no time. */
export function isoTime(text: string): string | null {
  const time = timeForm.test(text) ? new Date(text) : null;
  return time === null || Number.isNaN(time.getTime()) ? null : time.toISOString();
}
