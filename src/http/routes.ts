/** Routes: how the path and the query of a request's target find its endpoint and its parameters. */
import { VaultError } from "../errors.js";
import { percentDecode } from "../paths/secret-path.js";
import type { Endpoint, Target } from "./endpoint.js";

/** A path with its endpoints. */
type Route = {
  /** For the log and the metrics: it has the parameter's name, never its text. */
  readonly pattern: string;
  /** The path before and behind its parameter; all of a path without one. */
  readonly before: string;
  readonly behind: string;
  /** By method. Rows with a query parameter come first. */
  readonly methods: Map<string, Endpoint[]>;
};

/** `endpoint` null: the route has none for this method. */
export type Found = { readonly route: Route; readonly endpoint: Endpoint | null; readonly parameter: string };

/** The endpoints of one listener. */
export class EndpointTable {
  readonly #fixed = new Map<string, Route>();
  /** Routes with a parameter by the root of their paths, the longest first. */
  readonly #byRoot = new Map<string, Route[]>();

  constructor(rows: readonly Endpoint[]) {
    for (const row of rows) {
      const [, method = "", path = "", query] = /^(\w+) ([^?]*)(\?.*)?$/.exec(row.at) ?? [];
      const { methods } = this.#routeAt(path);
      const others = methods.get(method) ?? [];
      methods.set(method, query === undefined ? [...others, row] : [row, ...others]);
    }
  }

  get patterns(): readonly string[] {
    const routes = [...this.#fixed.values(), ...[...this.#byRoot.values()].flat()];
    return [...new Set(routes.map(({ pattern }) => pattern))];
  }

  /** Returns null for a path that no route has. */
  find(method: string, { path, query }: Target): Found | null {
    const fixed = this.#fixed.get(path);
    const route = fixed?.methods.has(method) ? fixed : (this.#withParameter(path, method) ?? fixed);
    if (route === undefined) return null;
    const endpoint = route.methods.get(method)?.find((row) => isFor(row, query)) ?? null;
    return { route, endpoint, parameter: path.slice(route.before.length, path.length - route.behind.length) };
  }

  /** Returns the methods of a path, for a client: HEAD is served wherever GET is. */
  allowedMethods(path: string): readonly string[] {
    const routes = [this.#fixed.get(path), ...this.#matching(path)];
    const methods = routes.flatMap((route) => [...(route?.methods.keys() ?? [])]);
    return [...new Set(methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : method)))];
  }

  #routeAt(path: string): Route {
    const [before = "", name, behind = ""] = path.split(/(:\w+)/);
    const found = name === undefined ? this.#fixed.get(path) : this.#withPattern(path);
    if (found !== undefined) return found;
    const route = { pattern: path.replace(/\/$/, ""), before, behind, methods: new Map<string, Endpoint[]>() };
    if (name === undefined) this.#fixed.set(path, route);
    else {
      const all = [...(this.#byRoot.get(firstSegments(path)) ?? []), route];
      this.#byRoot.set(
        firstSegments(path),
        all.sort((a, b) => b.pattern.length - a.pattern.length),
      );
    }
    return route;
  }

  #withPattern(pattern: string): Route | undefined {
    return this.#byRoot.get(firstSegments(pattern))?.find((route) => route.pattern === pattern);
  }

  #withParameter(path: string, method: string): Route | undefined {
    const routes = this.#matching(path);
    return routes.find(({ methods }) => methods.has(method)) ?? routes[0];
  }

  #matching(path: string): readonly Route[] {
    return this.#byRoot.get(firstSegments(path))?.filter((route) => matches(route, path)) ?? [];
  }
}

/** Returns the first two segments with a slash at the end; "" for a path that has no more. */
function firstSegments(path: string): string {
  return path.slice(0, path.indexOf("/", 4) + 1);
}

function matches({ before, behind }: Route, path: string): boolean {
  return path.length >= before.length + behind.length && path.startsWith(before) && path.endsWith(behind);
}

function isFor({ at }: Endpoint, query: string): boolean {
  const mark = at.indexOf("?");
  return mark < 0 || (query !== "" && hasParameter(query, at.slice(mark + 1)));
}

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

/** Returns true if `parseQuery` would return the parameter, or refuse the query because of it. */
export function hasParameter(query: string, wanted: string): boolean {
  return query.split("&").some((pair) => {
    try {
      return percentDecode(pair.replace(/=.*$/s, ""), "a parameter's name") === wanted;
    } catch {
      return false; // parseQuery refuses the whole query
    }
  });
}
