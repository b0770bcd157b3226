/**
 * Fields of values that are JSON objects. Numbers are taken as they are written in the value, not as JavaScript would round
 * them.
 */

/** A field as text, or the names that there are instead; null: the value is not a JSON object. */
export type FoundField = { readonly text: string } | { readonly names: readonly string[] } | null;

/**
 * Finds a field: of a string, the string itself is its text; of anything else, its JSON. `user.name` is the member `name` of
 * the object `user`, or else the member `user.name`; `hosts.0` is the first element of a list.
 */
export function findField(value: string, field: string): FoundField {
  const json = markedJson(value);
  if (typeof json !== "object" || json === null) return null;
  const found = memberAt(json, field);
  if (found === undefined) return { names: namesNear(json, field) };
  return { text: typeof found === "string" ? found.slice(1) : formatJson(found) };
}

/** Parsed JSON in which a string begins with `s`, a number is a string that begins with `n`, and names begin with `s`. */
type Marked = string | boolean | null | readonly Marked[] | { readonly [name: string]: Marked };

/** Not one pattern for a whole string: V8 overflows its stack after some millions of escapes. */
const tokens = /\\.|"|-?\d[\d.eE+-]*/gs;

/** Returns null for a text that is no JSON. */
function markedJson(text: string): Marked {
  try {
    JSON.parse(text);
    let isInString = false;
    const marked = text.replace(tokens, (token) => {
      if (token === '"') isInString = !isInString;
      if (isInString) return token === '"' ? '"s' : token;
      return token === '"' ? token : `"n${token}"`;
    });
    return JSON.parse(marked) as Marked;
  } catch {
    return null;
  }
}

function memberAt(value: Marked, field: string): Marked | undefined {
  const whole = findMember(value, field);
  if (whole !== undefined) return whole;
  for (let dot = field.indexOf("."); dot >= 0; dot = field.indexOf(".", dot + 1)) {
    const outer = findMember(value, field.slice(0, dot));
    const inner = outer === undefined ? undefined : memberAt(outer, field.slice(dot + 1));
    if (inner !== undefined) return inner;
  }
  return undefined;
}

function findMember(value: Marked, name: string): Marked | undefined {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  const object = value as { readonly [name: string]: Marked };
  return Object.hasOwn(object, `s${name}`) ? object[`s${name}`] : undefined;
}

/** Returns what there is where a field is missing: the members of the innermost object on its way, with that way. */
function namesNear(value: Marked, field: string, way = ""): string[] {
  const dot = field.indexOf(".");
  const inner = dot < 0 ? undefined : findMember(value, field.slice(0, dot));
  if (typeof inner === "object" && inner !== null)
    return namesNear(inner, field.slice(dot + 1), `${way}${field.slice(0, dot)}.`);
  return typeof value === "object" && value !== null ? namesIn(value).map((name) => `${way}${name}`) : [];
}

function namesIn(value: object): string[] {
  return Array.isArray(value) ? value.map((_, i) => String(i)) : Object.keys(value).map((name) => name.slice(1));
}

function formatJson(value: Marked): string {
  if (typeof value === "string") return value.startsWith("n") ? value.slice(1) : JSON.stringify(value.slice(1));
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(formatJson).join(",")}]`;
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name.slice(1))}:${formatJson(member)}`,
  );
  return `{${members.join(",")}}`;
}
