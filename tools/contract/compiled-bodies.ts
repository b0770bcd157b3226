/** The key worker's validators of request bodies: the document's schemas, compiled to code by ajv. */
import { _, Ajv, type KeywordCxt, stringify } from "ajv";
import standalone from "ajv/dist/standalone/index.js";
import type { Schema } from "./contract-files.js";

/** The bodies that the key worker reads, by its own names. The front end reads all others. */
const bodies = {
  init: "InitRequest",
  unlock: "UnlockRequest",
  changePassphrase: "PassphraseRequest",
  rotate: "RotateRequest",
  createKey: "KeyRequest",
  put: "PutRequest",
  changeMetadata: "MetadataRequest",
  undo: "UndoRequest",
  batchGet: "BatchGet",
  batchPut: "BatchPut",
  batchDelete: "BatchDelete",
  batchTrash: "BatchTrash",
  batchMove: "BatchMove",
  batchCopy: "BatchCopy",
} as const;

const head = `// @ts-nocheck ajv's own JavaScript, which \`npm run contract\` makes from the schemas in openapi.yaml
`;

const about =
  "/** Validators of request bodies, compiled ahead, so that a fresh key thread need not load and run ajv. */\n";

/** Returns the text of workers/operations/body-validators.ts. */
export function bodyValidatorsFile(schemas: Readonly<Record<string, Schema>>): string {
  const ajv = new Ajv({ code: { source: true, esm: true }, messages: false });
  ajv.addKeyword({ keyword: "text", errors: false, code: callIsText });
  const fields: string[] = [];
  for (const [name, schemaName] of Object.entries(bodies)) {
    const schema = schemas[schemaName];
    if (schema?.properties === undefined) throw new Error(`openapi.yaml has no fields of ${schemaName}`);
    fields.push(`  ${name}: ${JSON.stringify(Object.keys(schema.properties)).replaceAll(",", ", ")},\n`);
    ajv.addSchema(withTexts(schema), name);
  }
  return `${head}${about}${functions(ajv)}/** The fields of each body. */\nexport const bodyFields = {\n${fields.join("")}} as const;`;
}

function functions(ajv: Ajv): string {
  const code = standalone.default(ajv, Object.fromEntries(Object.keys(bodies).map((name) => [name, name])));
  const validators = code.replace('"use strict";', "").replaceAll(/const schema\d+ = .*?;(?=function )/g, "");
  const functions = validators
    .replaceAll(/export const \w+ = \w+;/g, "")
    .replaceAll("function validate", "\nfunction validate");
  const members = [...validators.matchAll(/export const (\w+) = (\w+);/g)].map(([, name, made]) => `${name}: ${made}`);
  return `export function bodyValidators(isText, maxValueBytes) {${functions}\nreturn { ${members.join(", ")} };\n}\n`;
}

/**
 * A keyword in place of `type: "string"`: a well-formed string with a limit in bytes of UTF-8, or one of a few. JSON Schema
 * counts characters and needs a string; the key worker has bytes and never makes one.
 */
type TextRule = { readonly min: number; readonly max: number; readonly oneOf?: readonly string[] | undefined };

/** Keywords that describe, or that the key worker checks itself: base64, times and custom metadata. */
const dropped = ["description", "examples", "if", "then", "maxProperties", "propertyNames", "additionalProperties"];

/** Converts the strings of a schema to the keyword `text`. */
function withTexts(schema: Schema): object {
  const kept = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !dropped.includes(keyword)));
  const { type, minLength = 0, maxLength, enum: values, properties, items, oneOf: choices, ...rest } = kept as Schema;
  if (choices !== undefined) return { anyOf: choices.map(withTexts) };
  if (type === "string" || (Array.isArray(type) && type.includes("string"))) {
    const oneOf = values?.filter((value) => value !== null);
    const longest = maxLength ?? Math.max(0, ...(oneOf ?? []).map((text) => text.length));
    const rule = { text: { min: minLength, max: longest, oneOf } satisfies TextRule };
    return type === "string" ? rule : { anyOf: [{ type: "null" }, rule] };
  }
  const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, withTexts(field)]);
  return {
    type,
    ...rest,
    ...(properties && { properties: Object.fromEntries(fields) }),
    ...(items && { items: withTexts(items) }),
  };
}

/** In the document, the default of a setting that is known only when the server starts. */
const maxValueBytes = 1_048_576;

function callIsText(context: KeywordCxt): void {
  const { min, max, oneOf } = context.schema as TextRule;
  const limit = max === maxValueBytes ? _`maxValueBytes` : _`${max}`;
  context.pass(_`isText(${context.data}, ${min}, ${limit}, ${stringify(oneOf ?? null)})`);
}
