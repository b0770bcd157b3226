/** JSON Schema builders for the contract, and members that many schemas have. */
import type { TextRule } from "../../workers/body-schemas.js";

export type Schema = { readonly [keyword: string]: unknown };

export const ok: Schema = {
  type: "boolean",
  const: true,
  description: "Always true; a failure has an error and a code instead.",
};

/** Properties are required unless listed as optional. Later versions may add fields. */
export function object(description: string, properties: Schema, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", description, properties, required };
}

export function text(description: string, example: string, more: Schema = {}): Schema {
  return { type: "string", ...more, description, examples: [example] };
}

export const message = text("What was done, for people.", "the vault is unlocked");

export function list(description: string, items: Schema): Schema {
  return { type: "array", items, description };
}

export function time(description = ""): Schema {
  return text(`${description} ISO 8601, UTC, with milliseconds.`.trimStart(), "2026-03-01T12:00:00.000Z", {
    format: "date-time",
  });
}

export function timeOrNull(description: string): Schema {
  return { ...time(description), type: ["string", "null"] };
}

export function count(description: string): Schema {
  return { type: "integer", minimum: 0, description, examples: [6] };
}

export function schemaNamed(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/**
 * Converts a schema of the key worker to plain JSON Schema. The keyword `text` counts bytes and JSON Schema counts
 * characters, so the limit in bytes goes into the description.
 */
export function published(schema: Schema): Schema {
  return Object.fromEntries(
    Object.entries(schema).flatMap(([keyword, value]) => publishedKeyword(keyword, value, schema)),
  );
}

function publishedKeyword(keyword: string, value: unknown, { text, description }: Schema): [string, unknown][] {
  if (keyword === "properties") {
    const properties = Object.entries(value as Readonly<Record<string, Schema>>);
    return [[keyword, Object.fromEntries(properties.map(([name, property]) => [name, published(property)]))]];
  }
  if (keyword === "items") return [[keyword, published(value as Schema)]];
  if (keyword === "text") return Object.entries(publishedText(value as TextRule));
  if (keyword !== "description" || text === undefined) return [[keyword, value]];
  return [[keyword, `${String(description)} ${boundsOf(text as TextRule)}`]];
}

function publishedText({ min, max, oneOf }: TextRule): Schema {
  if (oneOf !== undefined) return { type: "string", enum: oneOf };
  return { type: "string", ...(min > 0 && { minLength: min }), maxLength: max };
}

function boundsOf({ max, oneOf }: TextRule): string {
  return oneOf === undefined ? `At most ${max} bytes of UTF-8, without lone surrogates.` : "One of the values listed.";
}
