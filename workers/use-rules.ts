/** Which requests a binding covers: decided in the key worker, and looked up with the same rules before it is asked. */
import type { Binding, RequestToRender } from "./protocol.js";

/** Why the binding does not cover a request; null when it does. */
export function whyNot(
  { methods, paths }: Binding,
  { method, target }: Pick<RequestToRender, "method" | "target">,
): string | null {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/.test(method) || !/^\/[!"$-~]*$/.test(target))
    return "the request line is invalid";
  if (repeating.has(method.toUpperCase())) return `${method} makes a server repeat the credential`;
  if (methods !== null && !methods.includes(method)) return `the binding does not allow ${method}`;
  if (paths === null) return null;
  const [path = ""] = target.split("?");
  if (isAmbiguous(path))
    return "the path is ambiguous: send it without dot segments, double slashes and encoded separators";
  return paths.some((pattern) => matches(pattern, path)) ? null : "the binding does not allow this path";
}

/** Methods whose response repeats the request's head (RFC 9110, section 9.3.8), and its name in old servers of Microsoft. */
const repeating: ReadonlySet<string> = new Set(["TRACE", "TRACK"]);

/**
 * Headers by which some servers take a request for one with another method or path, in lower case. Servers that pass
 * headers on as variables (CGI, WSGI) read `_` as `-`.
 */
export const overridingHeaders = [
  "x-http-method-override",
  "x-http-method",
  "x-method-override",
  "x-original-method",
  "x-forwarded-method",
  "x-original-url",
  "x-original-uri",
  "x-rewrite-url",
  "x-override-url",
  "x-forwarded-uri",
  "x-forwarded-path",
] as const;

/** Whether the upstream could take the path for another one. */
function isAmbiguous(path: string): boolean {
  return path.length > 4096 || /%(?:2e|2f|5c|25|00)|[\\;]|\/\/|\/\.{1,2}(?:\/|$)/i.test(path);
}

/**
 * `*` stands for any characters within a segment, `**` for any across. Takes time of both lengths multiplied, whatever the
 * pattern: a regular expression could be made to take the key worker's time.
 */
function matches(pattern: string, path: string): boolean {
  const start = [...`${path} `].map((_, at) => at === 0);
  const tokens = pattern.match(/\*\*|\*|[^*]/g) ?? [];
  const reached = tokens.reduce(
    (from, token) => (token.startsWith("*") ? across(from, path, token) : past(from, path, token)),
    start,
  );
  return reached[path.length] === true;
}

/** Whether a pattern's beginning can end at each place of the path; one character further. */
function past(from: readonly boolean[], path: string, character: string): boolean[] {
  return from.map((_, at) => path[at - 1] === character && from[at - 1] === true);
}

/** As `past`, any number of characters further. */
function across(from: readonly boolean[], path: string, star: string): boolean[] {
  let continues = false;
  return from.map((reached, at) => {
    continues = reached || (continues && (star === "**" || path[at - 1] !== "/"));
    return continues;
  });
}
