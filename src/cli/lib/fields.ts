/**
 * Values of secrets as text: of a JSON object, also one field of it. Numbers are taken as they are written in the value, not
 * as JavaScript would round them.
 */
import type { Secret } from "../../client/client.js";
import { suggestion } from "./args.js";
import { CommandFailure } from "./errors.js";
import { printable } from "./output.js";

/** A secret, or a field of its value. */
export type Reference = { readonly path: string; readonly field: string | null };

/** @throws CommandFailure usage, for a binary value */
export function textOf(secret: Secret): string {
  if (secret.encoding === undefined) return secret.reveal();
  const shown = printable(secret.path);
  throw new CommandFailure(
    "usage",
    `${shown} is a binary value: write it to a file with  strongroom get ${shown} -o FILE`,
  );
}

/** @throws CommandFailure usage, for a binary value; notFound, without such a field */
export function revealReference(secret: Secret, { field }: Reference): string {
  return field === null ? textOf(secret) : fieldOf(secret, field);
}

/**
 * Returns the text of a field: of a string, the string itself; of anything else, its JSON. `user.name` is the member `name`
 * of the object `user`, or else the member `user.name`; `hosts.0` is the first element of a list.
 * @throws CommandFailure usage, for a binary value; notFound, without such a field
 */
export function fieldOf(secret: Secret, field: string): string {
  const shown = printable(secret.path);
  const value = markedJson(textOf(secret));
  if (typeof value !== "object" || value === null) {
    throw new CommandFailure("notFound", `${shown} has no field ${printable(field)}: its value is not a JSON object`);
  }
  const found = memberAt(value, field);
  if (found !== undefined) return typeof found === "string" ? found.slice(1) : jsonOf(found);
  const near = suggestion(field, fieldNames(value));
  const fields = near || `: it has ${fieldNames(value).map(printable).join(", ") || "none"}`;
  throw new CommandFailure("notFound", `${shown} has no field ${printable(field)}${fields}`);
}

/** Parsed JSON in which a string begins with `s`, a number is a string that begins with `n`, and names begin with `s`. */
type Marked = string | boolean | null | readonly Marked[] | { readonly [name: string]: Marked };

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/gs;

/** Returns null for a text that is no JSON. */
function markedJson(text: string): Marked {
  try {
    JSON.parse(text);
    const marked = text.replace(tokens, (token) => (token.startsWith('"') ? `"s${token.slice(1)}` : `"n${token}"`));
    return JSON.parse(marked) as Marked;
  } catch {
    return null;
  }
}

function memberAt(value: Marked, field: string): Marked | undefined {
  const whole = memberOf(value, field);
  if (whole !== undefined) return whole;
  for (let dot = field.indexOf("."); dot >= 0; dot = field.indexOf(".", dot + 1)) {
    const outer = memberOf(value, field.slice(0, dot));
    const inner = outer === undefined ? undefined : memberAt(outer, field.slice(dot + 1));
    if (inner !== undefined) return inner;
  }
  return undefined;
}

function memberOf(value: Marked, name: string): Marked | undefined {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  const object = value as { readonly [name: string]: Marked };
  return Object.hasOwn(object, `s${name}`) ? object[`s${name}`] : undefined;
}

function fieldNames(value: object): string[] {
  return Array.isArray(value) ? value.map((_, i) => String(i)) : Object.keys(value).map((name) => name.slice(1));
}

function jsonOf(value: Marked): string {
  if (typeof value === "string") return value.startsWith("n") ? value.slice(1) : JSON.stringify(value.slice(1));
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(",")}]`;
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name.slice(1))}:${jsonOf(member)}`);
  return `{${members.join(",")}}`;
}
