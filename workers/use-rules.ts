/** Which requests a binding covers: decided in the key worker, and looked up with the same rules before it is asked. */
import type { Binding, RequestToRender } from "./protocol.js";

/** Judges one request by bindings. However many there are, and whatever their patterns: all of it takes a bounded time. */
export class JudgedRequest {
  readonly #method: string;
  readonly #path: string;
  readonly #isValid: boolean;
  #isUnambiguous: boolean | null = null;
  readonly #steps = new Steps();

  constructor({ method, target }: Pick<RequestToRender, "method" | "target">) {
    [this.#method, this.#path] = [method, target.split("?")[0] ?? ""];
    this.#isValid = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/.test(method) && /^\/[!"$-~]*$/.test(target);
  }

  /** Whether the time did not suffice to tell whether a binding covers the request. */
  get isUndecided(): boolean {
    return this.#steps.areSpent;
  }

  /** Why the binding does not cover the request; null when it does. */
  whyNot({ methods, paths }: Binding): string | null {
    if (!this.#isValid) return "the request line is invalid";
    const method = this.#method;
    if (repeating.has(method.toUpperCase())) return `${method} makes a server repeat the credential`;
    if (methods !== null && !methods.includes(method)) return `the binding does not allow ${method}`;
    if (paths === null) return null;
    this.#isUnambiguous ??= isUnambiguous(this.#path);
    if (!this.#isUnambiguous) return ambiguous;
    if (paths.some((pattern) => matches(pattern, this.#path, this.#steps))) return null;
    return this.isUndecided ? tooLong : "the binding does not allow this path";
  }
}

export const tooLong =
  "the path is too long for this many stars in the bindings' paths: shorten it, or bind fewer paths";

/** Limit of steps per request: 32 short patterns and the longest path need fewer. They take less than a millisecond. */
const maxSteps = 150_000;

/** Characters of a path in which the parts of a pattern are searched for in one step. */
const searchedPerStep = 16;

class Steps {
  #left = maxSteps;

  get areSpent(): boolean {
    return this.#left < 0;
  }

  spend(steps: number): void {
    this.#left -= steps;
  }
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

/** `*` stands for any characters within a segment, `**` for any across. False also once all steps are spent. */
function matches(pattern: string, path: string, steps: Steps): boolean {
  const start = pattern.indexOf("*");
  if (start < 0) return pattern === path;
  steps.spend(pattern.length + Math.ceil(path.length / searchedPerStep));
  if (steps.areSpent || !hasParts(pattern, path)) return false;
  steps.spend(pattern.length);
  return accepts(compilePattern(pattern, start), path, start, steps);
}

/** Whether the path has the pattern's parts between its stars, in order: nearly all paths that it does not cover lack one. */
function hasParts(pattern: string, path: string): boolean {
  const [first, last] = [pattern.indexOf("*"), pattern.lastIndexOf("*")];
  if (!path.startsWith(pattern.slice(0, first)) || !path.endsWith(pattern.slice(last + 1))) return false;
  let at = first;
  for (let star = first; star < last; ) {
    const next = pattern.indexOf("*", star + 1);
    const part = pattern.slice(star + 1, next);
    at = path.indexOf(part, at) + part.length;
    if (at < part.length) return false;
    star = next;
  }
  return true;
}

/** States of a pattern that begins with a star, a bit each: state i is reached where its first i tokens are matched. */
type Automaton = {
  readonly end: number;
  /** Words of 32 states. */
  readonly words: number;
  /** States before a star, and before a `**`. */
  readonly star: Int32Array;
  readonly deep: Int32Array;
  /** States before each character of the pattern: a row of words each, and the row's start by the character's code. */
  readonly rows: Int32Array;
  readonly row: Uint16Array;
};

const asterisk = 0x2a;

function compilePattern(pattern: string, from: number): Automaton {
  const words = ((pattern.length - from) >> 5) + 1;
  const [star, deep] = [new Int32Array(words), new Int32Array(words)];
  const codes = new Set<number>();
  for (let at = from; at < pattern.length; at++) codes.add(pattern.charCodeAt(at));
  const [rows, row] = [new Int32Array((codes.size + 1) * words), new Uint16Array(128)];
  [...codes].forEach((code, i) => {
    row[code] = (i + 1) * words;
  });
  let end = 0;
  for (let at = from; at < pattern.length; end++) {
    const first = at;
    while (pattern.charCodeAt(at) === asterisk) at++;
    if (at - first > 1) add(deep, 0, end);
    if (at > first) add(star, 0, end);
    else add(rows, row[pattern.charCodeAt(at++)] ?? 0, end);
  }
  return { end, words, star, deep, rows, row };
}

function add(states: Int32Array, from: number, i: number): void {
  const at = from + (i >> 5);
  states[at] = (states[at] ?? 0) | (1 << (i & 31));
}

const slash = 0x2f;

/**
 * Follows all states at once, 32 in one step, so that the time is linear in the path's length whatever the pattern; a regular
 * expression could be made to take seconds. Words in which no state is reached yet take no time.
 */
function accepts(automaton: Automaton, path: string, start: number, steps: Steps): boolean {
  const { end, words } = automaton;
  const reached = new Int32Array(words);
  reached[0] = 0b11; // a star may stand for nothing
  let last = Math.min(1, words - 1); // a character moves no state farther than by two
  for (let at = start; at < path.length && !steps.areSpent; at++) {
    follow(automaton, reached, path.charCodeAt(at), last);
    steps.spend(last + 1);
    if (reached[last] !== 0) last = Math.min(last + 1, words - 1);
  }
  return !steps.areSpent && ((reached[end >> 5] ?? 0) & (1 << (end & 31))) !== 0;
}

function follow({ star, deep, rows, row }: Automaton, reached: Int32Array, code: number, last: number): void {
  const [moving, staying] = [row[code] ?? 0, code === slash ? deep : star];
  let [carry, starCarry] = [0, 0];
  for (let i = 0; i <= last; i++) {
    const state = reached[i] ?? 0;
    const moved = state & (rows[moving + i] ?? 0);
    const next = (moved << 1) | carry | (state & (staying[i] ?? 0));
    const passed = next & (star[i] ?? 0); // no two stars follow each other: one pass over them is enough
    reached[i] = next | (passed << 1) | starCarry;
    carry = moved >>> 31;
    starCarry = passed >>> 31;
  }
}
