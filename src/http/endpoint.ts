/** What an endpoint is, what all of them work with, and how a request's target finds its own. */
import type { Request, Response } from "express";
import type { Credentials } from "../access/credentials.js";
import type { Lockout } from "../access/lockout.js";
import type { ReviewAccess } from "../access/review.js";
import type { RootRotation } from "../access/root-token.js";
import type { Need } from "../access/scopes.js";
import type { ClientTokens } from "../access/tokens.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { AuditVerdict } from "../audit/check.js";
import type { AuditedEvent } from "../audit/record.js";
import type { Broker } from "../broker/broker.js";
import { VaultError } from "../errors.js";
import type { LastProve } from "../last-prove.js";
import type { Log } from "../log.js";
import { percentDecode } from "../paths/secret-path.js";
import type { Vault } from "../vault/vault.js";
import type { Vitals } from "../vitals.js";

export type Service = {
  readonly vault: Vault;
  readonly log: Log;
  readonly credentials: Credentials;
  readonly tokens: ClientTokens;
  /** Null: there is none. */
  readonly audit: AuditLog | null;
  readonly rootRotation: RootRotation;
  readonly tokenLockout: Lockout;
  readonly passphraseLockout: Lockout;
  /** Null: it is off. */
  readonly broker: Broker | null;
  readonly approveWith: "token" | "passphrase";
  readonly maxBodyBytes: number;
  readonly maxBatchBytes: number;
  /** The OpenAPI document. */
  readonly contract: () => string;
  /** Returns the metrics in Prometheus' text format. */
  readonly scrape: () => Promise<string>;
  /** The program's. */
  readonly version: string;
  /** The listening port. */
  readonly port: number;
  /** Of the API for Vault's clients. Null: it is off. */
  readonly vaultPort: number | null;
  /** Null: the review page is off. */
  readonly review: ReviewAccess | null;
  readonly vitals: Vitals;
  /** What `strongroom prove` left in the home; null before its first run. */
  readonly lastProve: () => Promise<LastProve | null>;
  /** Checks the audit log; null when it is off, empty, unreadable, or too long to be checked while the server works. */
  readonly checkAuditLog: () => Promise<AuditVerdict | null>;
  readonly isShuttingDown: () => boolean;
  /** Begins the shutdown, after the response was sent. */
  readonly shutDown: () => void;
};

/** `parameter`: the raw text in the place of the path's parameter; "" for a path without one. */
export type Handler = (service: Service, req: Request, res: Response, parameter: string) => Promise<void> | void;

/** A row of GET serves HEAD too. */
type Method = "GET" | "LIST" | "PUT" | "POST" | "PATCH" | "DELETE";

/** Everything that is decided for an endpoint: what is forgotten does not compile. */
export type Endpoint<Operation extends string = string> = {
  /** Its name; of the native API, the operation in openapi.json. */
  readonly operation: Operation;
  /**
   * Method and path. The path may have one parameter (`:name`), which may contain slashes. A query (`?version`) gives the
   * requests with this parameter a row of their own.
   */
  readonly at: `${Method} /v1/${string}`;
  /** What the caller's token must be able to do. */
  readonly scope: Need;
  /**
   * `unlocked`: works on secrets or keys, so it is refused while the vault is locked or the audit log must not miss it, and
   * counts as activity. `background`: the same, but no activity. `passphrase`: its body has a passphrase that is checked, so
   * wrong ones count towards the lockout.
   */
  readonly guard: "unlocked" | "background" | "passphrase" | "none";
  /** Its record in the audit log; null: it is not recorded. */
  readonly audit: AuditedEvent | null;
  readonly handle: Handler;
};

/** Whether its body has a passphrase. */
export function takesPassphrase({ guard, operation }: Endpoint): boolean {
  return guard === "passphrase" || operation === "init";
}

/** A path with its endpoints. */
export type Route = {
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

  /** The patterns of all routes, each once. */
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
  methodsOf(path: string): readonly string[] {
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
      const all = [...(this.#byRoot.get(rootOf(path)) ?? []), route];
      this.#byRoot.set(
        rootOf(path),
        all.sort((a, b) => b.pattern.length - a.pattern.length),
      );
    }
    return route;
  }

  #withPattern(pattern: string): Route | undefined {
    return this.#byRoot.get(rootOf(pattern))?.find((route) => route.pattern === pattern);
  }

  #withParameter(path: string, method: string): Route | undefined {
    const routes = this.#matching(path);
    return routes.find(({ methods }) => methods.has(method)) ?? routes[0];
  }

  #matching(path: string): readonly Route[] {
    return this.#byRoot.get(rootOf(path))?.filter((route) => matches(route, path)) ?? [];
  }
}

/** Returns the first two segments with a slash at the end; "" for a path that has no more. */
function rootOf(path: string): string {
  return path.slice(0, path.indexOf("/", 4) + 1);
}

function matches({ before, behind }: Route, path: string): boolean {
  return path.length >= before.length + behind.length && path.startsWith(before) && path.endsWith(behind);
}

function isFor({ at }: Endpoint, query: string): boolean {
  const mark = at.indexOf("?");
  return mark < 0 || (query !== "" && hasParameter(query, at.slice(mark + 1)));
}

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
