/**
 * Generator of the files that are made from the contract: the OpenAPI document with the default limits, the client's
 * types and the key worker's validators. `npm run contract` writes them; a test compares them with what would be written.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bodyValidatorsFile } from "./compiled-schemas.js";
import { contract } from "./contract-judge.js";

type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
};

/** Returns each file's text by its path from the repository's root. */
export function contractFiles(): ReadonlyMap<string, string> {
  return new Map([
    ["openapi.json", `${JSON.stringify(contract, null, 2)}\n`],
    ["src/client/api-types.ts", typesOf((contract["components"] as { schemas: Record<string, Schema> }).schemas)],
    ["workers/operations/body-validators.ts", bodyValidatorsFile()],
  ]);
}

function typesOf(schemas: Readonly<Record<string, Schema>>): string {
  const interfaces = Object.entries(schemas).map(([name, schema]) => interfaceOf(name, schema));
  return `/** Types of the HTTP API, generated from its schemas by \`npm run contract\`. */\n\n${interfaces.join("\n")}`;
}

function interfaceOf(name: string, { description, properties = {}, required = [] }: Schema): string {
  const members = Object.entries(properties).map(([member, schema]) => {
    const mark = required.includes(member) ? "" : "?";
    const comment = schema.description === undefined ? "" : `  /** ${schema.description} */\n`;
    return `${comment}${wrapped(`  readonly ${member}${mark}:`, typeOf(schema))}\n`;
  });
  return `/** ${description} */\nexport interface ${name} {\n${members.join("")}}\n`;
}

/** A union that is too long for its line has a line for each member. */
function wrapped(name: string, type: string): string {
  const line = `${name} ${type};`;
  return line.length <= 120 ? line : `${name}\n    | ${type.replaceAll(" | ", "\n    | ")};`;
}

function typeOf({ $ref, type, enum: values, const: only, items, oneOf }: Schema): string {
  if (oneOf !== undefined) return `(${oneOf.map(typeOf).join(" | ")})`;
  if ($ref !== undefined) return $ref.split("/").at(-1) ?? "";
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (only !== undefined) return JSON.stringify(only);
  if (items !== undefined) return `readonly ${items.enum ? `(${typeOf(items)})` : typeOf(items)}[]`;
  if (typeof type === "object") return type.join(" | ");
  return type === "integer" ? "number" : (type ?? "unknown");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, text] of contractFiles()) writeFileSync(file, text);
}
