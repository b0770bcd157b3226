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
  if (!isUnambiguous(path)) return ambiguous;
  return paths.some((pattern) => matches(pattern, path)) ? null : "the binding does not allow this path";
}

/** Methods whose response repeats the request's head (RFC 9110, section 9.3.8), and its name in old servers of Microsoft. */
const repeating: ReadonlySet<string> = new Set(["TRACE", "TRACK"]);

/** Names of headers that all servers read alike: some take a dot, or any other character, for a dash. */
export const headerName = /^[0-9A-Za-z_-]+$/;

/** Why a binding that limits or asks does not cover a request with these headers; null when it does. */
export function overrideIn({ methods, paths, ask }: Binding, names: readonly string[]): string | null {
  if (methods === null && paths === null && ask === "never") return null;
  const found = names.find((name) => overriding.test(name.toLowerCase().replaceAll("_", "-")));
  if (found === undefined) return null;
  return `the binding limits or asks for requests, and servers may read another one from a header: leave out ${found.slice(0, 64)}`;
}

/**
 * Headers by which frameworks, gateways and proxies take a request for one with another method, target or host, with `-` for `_`,
 * as servers that pass headers on as variables (CGI, WSGI) read them.
 */
const overriding = new RegExp(
  [
    "override|rewrit", // X-HTTP-Method-Override (Rails, Express, Symfony), X-Rewrite-URL (IIS)
    "^(?:x-)?(?:[a-z0-9]+-)*(?:original|forwarded|unencoded|raw|real|actual|request|http)-" +
      "(?:method|verb|ur[il]|path|path-?info|prefix|context|query|target|host|server|port)$", // X-Original-URL, X-Envoy-Original-Path
    "^x-(?:method|verb|ur[il]|path|path-info|host|script-name|request-ur[il]|envoy-original-dst-host)$",
    "^(?:forwarded|method|verb|path|path-info|path-translated|script-name|request-ur[il]|request-method)$",
  ].join("|"),
);

const ambiguous =
  "the path is ambiguous: send it without dot segments, double slashes, semicolons, and escapes that it does not need";

const maxPathLength = 4096;

/** Whether the path has one spelling, so that no upstream takes it for another one. */
function isUnambiguous(path: string): boolean {
  if (path.length > maxPathLength || /[\\;]|%(?![0-9A-Fa-f]{2})/.test(path)) return false;
  const segments = path.slice(1).split("/");
  return segments.every((segment, i) => (segment === "" ? i === segments.length - 1 : isPlain(segment)));
}

/** Escapes of control characters, of separators, of the percent sign, and of characters that need none (RFC 3986, section 2.3). */
const otherSpelling = /%(?:[01]|7f|2[35def]|3[0-9bf]|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9ae])/i;

/**
 * Characters that some servers drop, trim, or take for a dot, a slash or a backslash; compatibility forms are found by NFKC.
 */
const unstable =
  /[\p{C}\p{Default_Ignorable_Code_Point}\u2044\u2215\u2216\u29f5\u29f8\u29f9\u00a5\u20a9\u3002]|[^\S ]/u;

/** Spaces and dots that some servers trim; `+` may stand for a space. */
const trimmed = /^ |[. ]\+*$|^[. +]+$/;

function isPlain(segment: string): boolean {
  if (/^[^%. +]+$/.test(segment)) return true;
  if (otherSpelling.test(segment)) return false;
  try {
    const text = decodeURIComponent(segment); // refuses overlong forms
    return !trimmed.test(text) && !unstable.test(text) && text.normalize("NFKC") === text;
  } catch {
    return false;
  }
}

/** `*` stands for any characters within a segment, `**` for any across. */
function matches(pattern: string, path: string): boolean {
  const start = pattern.indexOf("*");
  if (start < 0) return pattern === path;
  return hasParts(pattern.split(/\*+/), path) && accepts(automatonOf(pattern.slice(start)), path, start);
}

/** Whether the path has the pattern's parts between its stars, in order: nearly all paths that it does not cover lack one. */
function hasParts(parts: readonly string[], path: string): boolean {
  if (!path.startsWith(parts[0] ?? "") || !path.endsWith(parts.at(-1) ?? "")) return false;
  let at = 0;
  return parts.every((part) => {
    const found = path.indexOf(part, at);
    at = found + part.length;
    return found >= 0;
  });
}

/** States of a pattern that begins with a star, a bit each: state i is reached where its first i tokens are matched. */
type Automaton = {
  readonly end: number;
  /** States before a star, and before a `**`. */
  readonly star: Int32Array;
  readonly deep: Int32Array;
  /** States before each character, by its code. */
  readonly before: readonly Int32Array[];
};

function automatonOf(pattern: string): Automaton {
  const tokens = pattern.match(/\*+|[^*]/g) ?? [];
  const states = () => new Int32Array((tokens.length >> 5) + 1);
  const [star, deep, none] = [states(), states(), states()];
  const before = Array.from({ length: 128 }, () => none);
  for (const [i, token] of tokens.entries()) {
    const code = token.charCodeAt(0);
    if (token.startsWith("**")) add(deep, i);
    if (token.startsWith("*")) add(star, i);
    else {
      if (before[code] === none) before[code] = states();
      add(before[code] ?? none, i);
    }
  }
  return { end: tokens.length, star, deep, before };
}

function add(states: Int32Array, i: number): void {
  states[i >> 5] = (states[i >> 5] ?? 0) | (1 << (i & 31));
}

const slash = 0x2f;

/**
 * Follows all states at once, 32 in one step, so that the time is linear in the path's length whatever the pattern; a regular
 * expression could be made to take seconds.
 */
function accepts({ end, star, deep, before }: Automaton, path: string, start: number): boolean {
  const reached = new Int32Array(star.length);
  reached[0] = 0b11; // a star may stand for nothing
  for (let at = start; at < path.length; at++) {
    const code = path.charCodeAt(at);
    const [moving, staying] = [before[code] ?? star, code === slash ? deep : star];
    let [carry, starCarry] = [0, 0];
    for (let i = 0; i < reached.length; i++) {
      const state = reached[i] ?? 0;
      const moved = state & (moving[i] ?? 0);
      const next = (moved << 1) | carry | (state & (staying[i] ?? 0));
      const passed = next & (star[i] ?? 0); // no two stars follow each other: one pass over them is enough
      reached[i] = next | (passed << 1) | starCarry;
      carry = moved >>> 31;
      starCarry = passed >>> 31;
    }
  }
  return ((reached[end >> 5] ?? 0) & (1 << (end & 31))) !== 0;
}
