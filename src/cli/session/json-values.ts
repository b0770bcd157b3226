/** Type guards for JSON of unknown shape. */

export type UnknownObject = { readonly [name: string]: unknown };

export function isObject(value: unknown): value is UnknownObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectsIn(value: unknown): UnknownObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns a non-empty string, or null. */
export function textIn(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
