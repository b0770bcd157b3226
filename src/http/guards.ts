/** Checks of a request that hold state: where it comes from, and whose token it has. */
import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import type { Caller, ClientCaller, Credentials } from "../access/credentials.js";
import { isLoopback, type Lockout } from "../access/lockout.js";
import { isDamagedValue, prefixes } from "../access/token-value.js";
import type { ClientTokens } from "../access/tokens.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import { markAuthenticated } from "./connections.js";
import type { Service } from "./endpoint.js";
import { onlyHeader, requestContext } from "./request.js";
import type { Found } from "./routes.js";

export type GuardSettings = {
  /** The listening address, as the system reports it. */
  readonly address: string;
  /** The `host` setting: an address or a name. */
  readonly host: string;
  /** Additional host names of the server. */
  readonly serverNames: readonly string[];
};

/**
 * Guard against other web sites: neither a host name that points at this machine (DNS rebinding) nor a cross-origin
 * request reaches the vault. It comes before authentication, and a refusal is no failed authentication.
 */
export class OriginGuard {
  readonly #names: ReadonlySet<string>;
  readonly #allowsAnyName: boolean;

  constructor({ address, host, serverNames }: GuardSettings) {
    const own = [address, host, ...serverNames].map(bracketed);
    this.#names = new Set(["localhost", "127.0.0.1", "[::1]", ...own]);
    this.#allowsAnyName = !isLoopback(address);
  }

  /** @throws VaultError BAD_REQUEST */
  check(req: Request): void {
    const authority = requestContext(req).target.authority ?? onlyHeader(req.rawHeaders, "host") ?? "";
    if (authority === "" || !(this.#allowsAnyName || this.#names.has(nameIn(authority))))
      throw new VaultError(
        "BAD_REQUEST",
        "the Host header does not name this server: use localhost, or add the name with --server-names",
      );
    const { origin, "sec-fetch-site": site = "none", "transfer-encoding": encoding } = req.headers;
    if (encoding !== undefined && req.httpVersion !== "1.1")
      // a proxy in between may read another end of the body
      throw new VaultError("BAD_REQUEST", "Transfer-Encoding needs HTTP/1.1: send it with that version, or a length");
    if (origin !== undefined && origin.toLowerCase() !== `https://${authority.toLowerCase()}`)
      throw new VaultError(
        "BAD_REQUEST",
        "the Origin header names another site: only this server's own origin is allowed",
      );
    // A browser sends it with every request of a page, also without `Origin`.
    if (site !== "none" && site !== "same-origin")
      throw new VaultError(
        "BAD_REQUEST",
        "the Sec-Fetch-Site header shows a request of another site: only this server's own pages may call it",
      );
  }
}

/** Returns the host of an authority in lower case, without its port. */
function nameIn(authority: string): string {
  return authority.toLowerCase().replace(/:\d*$/, "");
}

function bracketed(name: string): string {
  return name.includes(":") ? `[${name.toLowerCase()}]` : name.toLowerCase();
}

const credential = /^bearer +([^\s,]+)$/i;

type TokenReader = (req: IncomingMessage) => string | undefined;

/** How an API is told who sends a request. */
export type TokenRules = {
  readonly readToken: TokenReader;
  /** Whether a request without any token for this path counts towards the lockout. */
  readonly countsMissingToken: (found: Found | null) => boolean;
};

export const bearerToken: TokenReader = ({ rawHeaders }) => {
  return credential.exec(onlyHeader(rawHeaders, "authorization") ?? "")?.[1];
};

/** Milliseconds before its end from which a token's responses say when it ends. */
const warningMs = 7 * 24 * 3600 * 1000;

/** Bearer token check (RFC 6750), constant time. */
export class BearerCheck {
  readonly #credentials: Credentials;
  readonly #tokens: ClientTokens;
  readonly #lockout: Lockout;
  readonly #clock: Clock;
  readonly #api: TokenRules;

  constructor(
    { credentials, tokens, tokenLockout }: Pick<Service, "credentials" | "tokens" | "tokenLockout">,
    clock: Clock,
    api: TokenRules,
  ) {
    this.#credentials = credentials;
    this.#tokens = tokens;
    this.#lockout = tokenLockout;
    this.#clock = clock;
    this.#api = api;
  }

  /**
   * Finds the caller; a promise only where other servers may have changed the token.
   * @throws VaultError UNAUTHORIZED, UNAVAILABLE, RATE_LIMITED
   */
  check(req: Request, res: Response): Promise<void> | void {
    const presented = this.#api.readToken(req);
    const caller = this.#authenticate(req, presented);
    // Another server may have revoked or created it. No other text leads to a question: a guess of the root token counts.
    const refreshed = presented?.startsWith(prefixes.client) ? this.#tokens.refresh() : undefined;
    if (refreshed === undefined) return this.#admit(req, res, presented, caller);
    return refreshed
      .then(
        () => null,
        (error: unknown) => error,
      )
      .then((problem) => {
        this.#lockout.check(req); // others may have failed since
        const current = this.#authenticate(req, presented);
        if (problem !== null && current !== "root" && (current === null || !isLock(req)))
          throw unavailableIfDamaged(problem);
        this.#admit(req, res, presented, current);
      });
  }

  #authenticate(req: Request, presented: string | undefined): Caller | null {
    try {
      return presented === undefined ? null : this.#credentials.authenticate(presented);
    } catch (error) {
      markAuthenticated(req.socket, false); // the token has ended
      throw error;
    }
  }

  /** A token that has ended is no guess: `authenticate` throws, and it does not count as a failure. */
  #admit(req: Request, res: Response, presented: string | undefined, caller: Caller | null): void {
    if (caller === null) {
      markAuthenticated(req.socket, false);
      if (presented !== undefined || this.#api.countsMissingToken(requestContext(req).found)) this.#lockout.fail(req);
      const isDamaged = presented !== undefined && isDamagedValue(presented);
      const problem = isDamaged ? "damaged (its checksum does not match)" : "missing or wrong";
      throw new VaultError("UNAUTHORIZED", `the bearer token is ${problem}`, { credential: "token" });
    }
    const context = requestContext(req);
    context.caller = caller;
    context.presented = presented ?? null;
    context.requireValid = () => this.#credentials.requireValid(caller, caller === "root" ? presented : null);
    markAuthenticated(req.socket, true);
    if (caller === "root" || caller.session) return;
    this.#tokens.touch(caller);
    warnOfEnd(res, caller, this.#clock.now());
  }
}

/** A lock must work while the database does not answer: what is known of the token here counts then. */
function isLock(req: Request): boolean {
  return requestContext(req).found?.endpoint?.operation === "lock";
}

function warnOfEnd(res: Response, { until }: ClientCaller, now: number): void {
  if (until === null || until - now > warningMs) return;
  res.setHeader("Strongroom-Token-Expires", new Date(until).toISOString());
}

/** A damaged document of the tokens is no fault of what the request asks for: no operation can tell whether it may run. */
function unavailableIfDamaged(problem: unknown): unknown {
  if (!(problem instanceof VaultError) || problem.code !== "INTEGRITY") return problem;
  return new VaultError("UNAVAILABLE", problem.message, { cause: problem });
}
