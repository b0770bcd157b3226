/**
 * Generator of the files that follow from openapi.yaml: names, operations, the client's types and the key worker's validators.
 * `npm run contract` writes them; a test compares them with what would be written. The build makes the document in JSON.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { bodyValidatorsFile } from "./compiled-bodies.js";

export type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly (string | null)[];
  readonly const?: unknown;
  readonly default?: readonly string[];
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: string;
  readonly examples?: readonly unknown[];
};

type Operation = {
  readonly operationId: string;
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
};

type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  readonly "x-audit-events": {
    readonly changes: readonly (readonly string[])[];
    readonly reads: readonly (readonly string[])[];
    /** Events with the members of their records. */
    readonly server: Readonly<Record<string, readonly string[]>>;
  };
};

function readDocument(): Document {
  return parse(readFileSync("openapi.yaml", "utf8"), { merge: true }) as Document;
}

/** Returns the OpenAPI document in JSON, which the build leaves in dist. */
export function openApiJson(): string {
  return `${JSON.stringify(readDocument(), null, 2)}\n`;
}

/** Returns each file's text by its path from the repository's root. */
export function contractFiles(): ReadonlyMap<string, string> {
  const document = readDocument();
  return new Map([
    ["src/contract/operations.ts", operationsSource(document)],
    ["src/contract/names.ts", namesFile(document.components.schemas)],
    ["src/contract/audit-events.ts", auditEventsFile(document)],
    ["src/client/api-types.ts", typesSource(document.components.schemas)],
    ["src/client/shapes.ts", shapesSource(document)],
    ["workers/names.ts", `${namesHead}${typeNamesSource(document.components.schemas)}`],
    ["workers/operations/body-validators.ts", bodyValidatorsFile(document.components.schemas)],
  ]);
}

function operationsSource({ paths }: Document): string {
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId }]) => `  ${operationId}: { method: "${method.toUpperCase()}", path: "${path}" },\n`,
    ),
  );
  return `/** Operations of the HTTP API, generated from openapi.yaml by \`npm run contract\`. */

export const operations = {
${rows.join("")}} as const;

export type OperationId = keyof typeof operations;
`;
}

const namesHead = "/** Names of the HTTP API, generated from openapi.yaml by `npm run contract`. */\n\n";

/** Names that several parts of the program share. */
function namesFile(schemas: Document["components"]["schemas"]): string {
  const can = schemas["TokenRequest"]?.properties?.["can"];
  return `${namesHead}${typeNamesSource(schemas)}
/** Operations that a client token can allow. */
export const scopes = ${listSource(can?.items?.enum)} as const;

export const defaultScopes = ${listSource(can?.default)} as const;
`;
}

function typeNamesSource(schemas: Document["components"]["schemas"]): string {
  const typesIn = (schema: string) => listSource(schemas[schema]?.properties?.["type"]?.enum);
  return `export const secretTypes = ${typesIn("PutRequest")} as const;

export const transitKeyTypes = ${typesIn("TransitKeyRequest")} as const;
`;
}

function listSource(values: Schema["enum"]): string {
  if (values === undefined) throw new Error("openapi.yaml does not list what a generated file needs");
  const list = JSON.stringify(values).replaceAll(",", ", ");
  return list.length <= 80 ? list : `[\n${values.map((value) => `  ${JSON.stringify(value)},\n`).join("")}]`;
}

/** Types of the events of the audit log, and of the server's own records. */
function auditEventsFile({ components: { schemas }, "x-audit-events": { changes, reads, server } }: Document): string {
  const members: Readonly<Record<string, Schema>> = schemas["AuditRecord"]?.properties ?? {};
  const union = (lines: readonly (readonly string[])[]) =>
    lines.map((line) => `\n  | ${line.map((event) => JSON.stringify(event)).join(" | ")}`).join("");
  const memberSource = (named: string) => {
    const name = named.replace(/\?$/, "");
    const schema = members[name];
    if (schema === undefined) throw new Error(`AuditRecord in openapi.yaml has no ${name}`);
    return `; readonly ${named}: ${typeSource(schema)}`;
  };
  const records = Object.entries(server).map(
    ([event, names]) => `\n  | { readonly event: ${JSON.stringify(event)}${names.map(memberSource).join("")} }`,
  );
  return `/** Events of the audit log, generated from openapi.yaml by \`npm run contract\`. */

/** Event of a request that changes something, which every log has. */
// biome-ignore format: the generator writes one group or record a line
export type ChangeEvent =${union(changes)};

/** Event of a request that only reads, which a log of mode \`all\` has. */
// biome-ignore format: the generator writes one group or record a line
export type ReadEvent =${union(reads)};

/** Record of the server's own. */
// biome-ignore format: the generator writes one group or record a line
export type ServerRecord =${records.join("")};
`;
}

function typesSource(schemas: Readonly<Record<string, Schema>>): string {
  const interfaces = Object.entries(schemas).map(([name, schema]) => interfaceSource(name, schema));
  return `/** Types of the HTTP API, generated from openapi.yaml by \`npm run contract\`. */\n\n${interfaces.join("\n")}`;
}

function interfaceSource(name: string, { description, properties = {}, required = [] }: Schema): string {
  const members = Object.entries(properties).map(([member, schema]) => {
    const mark = required.includes(member) ? "" : "?";
    const about = docComment(schema);
    const comment = about === "" ? "" : `  /** ${about} */\n`;
    return `${comment}${wrapped(`  readonly ${member}${mark}:`, typeSource(schema))}\n`;
  });
  return `/** ${description} */\nexport interface ${name} {\n${members.join("")}}\n`;
}

/** The description, with the unit of a limit and of a time. */
function docComment({ description = "", maxLength, format }: Schema): string {
  const isTime = format === "date-time";
  const limit =
    maxLength === undefined || isTime || description.includes("bytes") ? "" : ` At most ${maxLength} bytes of UTF-8.`;
  const time = isTime && !description.includes("ISO 8601") ? " ISO 8601, UTC, with milliseconds." : "";
  return `${description}${limit}${time}`.trim();
}

/** A union that is too long for its line has a line for each member. */
function wrapped(name: string, type: string): string {
  const line = `${name} ${type};`;
  const members = /^readonly \((.*)\)\[\]$/.exec(type)?.[1];
  if (line.length > 120 && members !== undefined)
    return `${name} readonly (\n    | ${members.replaceAll(" | ", "\n    | ")}\n  )[];`;
  return line.length <= 120 ? line : `${name}\n    | ${type.replaceAll(" | ", "\n    | ")};`;
}

function inBrackets(items: Schema): string {
  return items.enum || items.oneOf ? `(${typeSource(items)})` : typeSource(items);
}

function typeSource({ $ref, type, enum: values, const: only, items, oneOf, additionalProperties }: Schema): string {
  if (oneOf !== undefined) return oneOf.map(typeSource).join(" | ");
  if ($ref !== undefined) return $ref.split("/").at(-1) ?? "";
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (only !== undefined) return JSON.stringify(only);
  if (items !== undefined) return `readonly ${inBrackets(items)}[]`;
  if (additionalProperties !== undefined) return `Readonly<Record<string, ${typeSource(additionalProperties)}>>`;
  if (typeof type === "object") return type.join(" | ");
  return type === "integer" ? "number" : (type ?? "unknown");
}

/** The shapes of all responses in JSON, and of what they contain, in the notation of `src/client/shape-check.ts`. */
function shapesSource({ paths, components: { schemas } }: Document): string {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const responses = operations.map(({ responses }) => responses["200"]?.content?.["application/json"]?.schema ?? {});
  const names = [...new Set(responses.flatMap(namesIn))].sort((a, b) => a.localeCompare(b, "en"));
  const contained = new Set(names);
  for (const name of contained) for (const inner of namesIn(schemas[name])) contained.add(inner);
  const codes = ["Refusal", "Failure"].flatMap((name) => schemas[name]?.properties?.["code"]?.enum ?? []);
  const rows = [...contained].sort().map((name) => `  ${name}: ${shapeMembers(schemas[name])},\n`);
  return `/** Shapes of the API's responses and its error codes, generated from openapi.yaml by \`npm run contract\`. */
import type {
${names.map((name) => `  ${name},\n`).join("")}} from "./api-types.js";

/** The responses by the names of their shapes. */
export type Responses = {
${names.map((name) => `  readonly ${name}: ${name};\n`).join("")}};

/** A question mark stands behind the names of members that may be missing. */
export const shapes = {
${rows.join("")}};

export const errorCodes: readonly string[] = [
${codes.map((code) => `  ${JSON.stringify(code)},\n`).join("")}];
`;
}

/** The names of the schemas that a schema refers to. */
function namesIn(schema: Schema = {}): string[] {
  const { $ref, items, additionalProperties, oneOf = [], anyOf = [], properties = {} } = schema;
  const inner = [items, additionalProperties, ...oneOf, ...anyOf, ...Object.values(properties)];
  const own = $ref === undefined ? [] : [$ref.split("/").at(-1) ?? ""];
  return [...own, ...inner.filter((each) => each !== undefined).flatMap(namesIn)];
}

function shapeMembers({ properties = {}, required = [] }: Schema = {}): string {
  const members = Object.entries(properties).map(([name, schema]) => {
    const member = required.includes(name) ? name : `"${name}?"`;
    return `    ${member}: ${JSON.stringify(shapeText(schema))},\n`;
  });
  return `{\n${members.join("")}  }`;
}

function shapeText({ $ref, type, format, items, oneOf, anyOf = oneOf, additionalProperties }: Schema): string {
  if (anyOf !== undefined) return anyOf.map(shapeText).join("|");
  if ($ref !== undefined) return $ref.split("/").at(-1) ?? "";
  if (items !== undefined) return `[]${shapeText(items)}`;
  if (additionalProperties !== undefined) return `{}${shapeText(additionalProperties)}`;
  const kinds = typeof type === "object" ? type : [type];
  return kinds.map((kind) => (kind === "string" && format === "date-time" ? "time" : (kind ?? "unknown"))).join("|");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, text] of contractFiles()) writeFileSync(file, text);
}
