/** Request target (RFC 9112, section 3.2), parsed raw, before any library normalizes it. */
import { VaultError } from "../errors.js";
import { percentDecode } from "../paths/secret-path.js";

/** `authority` is set only in absolute form (`GET https://host/path`), where it replaces `Host`. */
export type Target = { readonly path: string; readonly query: string; readonly authority: string | null };

const absoluteForm = /^https?:\/\/([^/?#]*)(.*)$/i;

export function parseTarget(raw: string): Target {
  const [, authority = null, origin = raw] = absoluteForm.exec(raw) ?? [];
  const mark = origin.indexOf("?");
  const path = mark < 0 ? origin : origin.slice(0, mark);
  return { path: path === "" ? "/" : path, query: mark < 0 ? "" : origin.slice(mark + 1), authority };
}

/**
 * Returns the named parameters, percent-decoded once; ignores others.
 * @throws VaultError BAD_REQUEST for a repeated or malformed parameter.
 */
export function parseQuery(query: string, names: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    const name = percentDecode(equals < 0 ? pair : pair.slice(0, equals), "a parameter's name");
    if (!names.includes(name)) continue;
    if (found.has(name))
      throw new VaultError("BAD_REQUEST", `the parameter ${name} is given more than once: give it once`);
    found.set(name, percentDecode(equals < 0 ? "" : pair.slice(equals + 1), `the parameter ${name}`));
  }
  return found;
}

/** Whether `parseQuery` would return the parameter, or refuse the query because of it. */
export function hasParameter(query: string, wanted: string): boolean {
  return query.split("&").some((pair) => {
    try {
      return percentDecode(pair.replace(/=.*$/s, ""), "a parameter's name") === wanted;
    } catch {
      return false; // parseQuery refuses the whole query
    }
  });
}
