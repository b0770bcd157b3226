/** The key worker's body schemas as code, compiled by ajv. */
import { _, Ajv, type KeywordCxt, stringify } from "ajv";
import standalone from "ajv/dist/standalone/index.js";
import { bodySchemas, type TextRule } from "../../workers/body-schemas.js";

const head = `// @ts-nocheck ajv's own JavaScript, which \`npm run contract\` makes from the schemas in body-schemas.ts
/** Validators of request bodies, compiled ahead: a fresh key thread that loads and runs ajv takes 80 ms of CPU more. */
`;

/** The text of workers/operations/body-validators.ts. */
export function bodyValidatorsFile(): string {
  const ajv = new Ajv({ code: { source: true, esm: true }, messages: false });
  ajv.addKeyword({ keyword: "text", errors: false, code: callIsText });
  const schemas = Object.entries(bodySchemas(setting));
  for (const [name, schema] of schemas) ajv.addSchema(schema, name);
  const names = schemas.map(([name]) => name);
  const code = standalone.default(ajv, Object.fromEntries(names.map((name) => [name, name])));
  const validators = code.replace('"use strict";', "").replaceAll(/const schema\d+ = .*?;(?=function )/g, "");
  const functions = validators
    .replaceAll(/export const \w+ = \w+;/g, "")
    .replaceAll("function validate", "\nfunction validate");
  const members = [...validators.matchAll(/export const (\w+) = (\w+);/g)].map(([, name, made]) => `${name}: ${made}`);
  return `${head}export function bodyValidators(isText, maxValueBytes) {${functions}\nreturn { ${members.join(", ")} };\n}\n`;
}

/** Stands for the largest value, which is known only when the server starts. */
const setting = Number.POSITIVE_INFINITY;

function callIsText(context: KeywordCxt): void {
  const { min, max, oneOf } = context.schema as TextRule;
  const limit = max === setting ? _`maxValueBytes` : _`${max}`;
  context.pass(_`isText(${context.data}, ${min}, ${limit}, ${stringify(oneOf ?? null)})`);
}
