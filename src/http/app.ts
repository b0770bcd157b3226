/** Application: the checks of a request, in their order, its handler, and the error as a response. */
import { IncomingMessage, ServerResponse } from "node:http";
import express, { type Express, type Request, type Response } from "express";
import type { Caller } from "../access/credentials.js";
import { addressOf, createLockout, keyOfAddress, keyOfOrigin, type LockoutRules } from "../access/lockout.js";
import { requireScope } from "../access/scopes.js";
import { rootName } from "../access/token-request.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { FinishedRequest, Observers } from "../observer.js";
import { discardBody, isAfterClose } from "./body.js";
import { keepsPlaintext } from "./connections.js";
import {
  type Endpoint,
  type EndpointTable,
  parseTarget,
  type Service,
  type Target,
  takesPassphrase,
} from "./endpoint.js";
import { endpointTable } from "./endpoints.js";
import { BearerCheck, bearerOf, type GuardSettings, OriginGuard, type TokenRules } from "./guards.js";
import { beginContext, contextOf, type Report } from "./request.js";
import { type ErrorForm, nativeErrors, sendError } from "./response.js";
import { sendReviewPage } from "./review.js";

export type Handle = (req: IncomingMessage, res: ServerResponse) => void;

/** What differs between the APIs of one server. */
export type Api = TokenRules & {
  readonly table: Pick<EndpointTable, "find" | "methodsOf">;
  /** Returns the method as the table and the report have it. */
  readonly methodOf: (req: IncomingMessage) => string;
  /** Refuses what an authenticated request asks for and the API does not have. @throws VaultError BAD_REQUEST */
  readonly checkHeaders: (req: IncomingMessage) => void;
  /** Returns the error for a target that no endpoint serves; `allow`: the methods that its path has. */
  readonly noEndpoint: (target: Target, allow: readonly string[]) => VaultError;
  readonly errors: ErrorForm;
  /** Serves what is no endpoint and needs no token; returns false when it is none of that. */
  readonly sendPage: (service: Service, req: Request, res: Response) => boolean;
};

export const nativeApi: Api = {
  table: endpointTable,
  methodOf: ({ method }) => method ?? "",
  tokenOf: bearerOf,
  countsMissingToken: (found) => found !== null, // a browser asks for /favicon.ico
  checkHeaders: () => {},
  noEndpoint,
  errors: nativeErrors,
  sendPage: sendReviewPage,
};

/** `messages`: the classes of the HTTP server's requests and responses. */
export function createApp(
  api: Api,
  service: Service,
  settings: GuardSettings,
  clock: Clock,
  messages: MessageClasses,
  observers: Observers,
): Handle {
  const { log, audit } = service;
  const origin = new OriginGuard(settings);
  const checks: Checks = { api, service, origin, bearer: new BearerCheck(service, clock, api) };
  const report = reporter(audit, observers);
  const app = express().disable("x-powered-by").disable("etag");
  adoptMessageClasses(app, messages);
  app.use((req, res) => {
    try {
      serve(checks, req, res)?.catch((error: unknown) => sendError(req, res, error, log, api.errors));
    } catch (error) {
      sendError(req, res, error, log, api.errors);
    }
  });
  return (req, res) => {
    if (isAfterClose(req)) return void discardBody(req);
    const target = parseTarget(req.url ?? "");
    const method = api.methodOf(req);
    const isHead = method === "HEAD";
    req.method = isHead ? "GET" : method; // so that nothing but the sending of a body can tell HEAD from GET
    beginContext(req, { target, found: api.table.find(req.method, target), isHead }, report);
    req.url = "/"; // Express skips every middleware when it cannot parse a target
    app(req, res);
  };
}

/** The lockouts of a server, which all of its listeners share. */
export function createLockouts(
  clock: Clock,
  log: Log,
  audit: AuditLog | null,
  observers: Observers,
): Pick<Service, "tokenLockout" | "passphraseLockout"> {
  const lockoutOf = (rules: LockoutRules) =>
    createLockout(clock, log, rules, (event, address) => {
      if (event === "lockout") audit?.lockedOut(rules.credential, address);
      observers.vaultEvent({ event, credential: rules.credential, address, at: clock.now() });
    });
  return {
    tokenLockout: lockoutOf({ failures: "wrong tokens", credential: "token", keyOf: keyOfAddress }),
    passphraseLockout: lockoutOf({ failures: "wrong passphrases", credential: "passphrase", keyOf: keyOfOrigin }),
  };
}

type Checks = {
  readonly api: Api;
  readonly service: Service;
  readonly origin: OriginGuard;
  readonly bearer: BearerCheck;
};

/**
 * Checks in this order: another site 400, lockout 429, token 401, lockout of passphrases 429, unknown endpoint 404, shutting
 * down 503, token's scope 403, vault locked 403; then calls the handler. DANGER: not async. What is refused here is refused
 * before the request's body is parsed.
 */
function serve(checks: Checks, req: Request, res: Response): Promise<void> | void {
  const { api, service, origin, bearer } = checks;
  const { found } = contextOf(req);
  origin.check(req);
  if (found === null && api.sendPage(service, req, res)) return;
  if (found?.endpoint?.scope === "open") return found.endpoint.handle(service, req, res, found.parameter);
  service.tokenLockout.check(req);
  const caller = bearer.check(req, res);
  if (!(caller instanceof Promise)) return dispatch(checks, req, res, caller);
  return caller.then((known) => dispatch(checks, req, res, known));
}

/** Continues after the token's check. */
function dispatch({ api, service }: Checks, req: Request, res: Response, caller: Caller): Promise<void> | void {
  const { found, target } = contextOf(req);
  const endpoint = found?.endpoint ?? null;
  api.checkHeaders(req);
  closeAfterPassphrase(endpoint, req, res);
  if (endpoint?.guard === "passphrase") service.passphraseLockout.check(req);
  if (endpoint === null) throw api.noEndpoint(target, api.table.methodsOf(target.path));
  if (service.isShuttingDown()) throw new VaultError("UNAVAILABLE", "the server is shutting down");
  if (caller !== "root") requireScope(caller, endpoint.scope);
  const run = () => endpoint.handle(service, req, res, found?.parameter ?? "");
  if (endpoint.guard !== "unlocked" && endpoint.guard !== "background") return run();
  const { secrets } = service.vault;
  const isActivity = endpoint.guard === "unlocked";
  const mayReachAll = caller === "root" || caller.token.paths.length === 0;
  secrets.admit(isActivity && mayReachAll);
  service.audit?.mustAccept();
  return mayReachAll || !isActivity ? run() : touchingUnlessRefused(secrets, run);
}

/** Makes the response the last of its connection where the connection itself keeps a piece of the passphrase. */
function closeAfterPassphrase(endpoint: Endpoint | null, req: Request, res: Response): void {
  if (endpoint !== null && takesPassphrase(endpoint) && keepsPlaintext(req.socket))
    res.setHeader("Connection", "close");
}

/** A path that the token may not reach is no activity: it must not delay the idle lock. */
async function touchingUnlessRefused(
  secrets: Service["vault"]["secrets"],
  run: () => Promise<void> | void,
): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (error instanceof VaultError && (error.code === "FORBIDDEN" || error.code === "UNAUTHORIZED")) throw error;
    secrets.touch();
    throw error;
  }
  secrets.touch();
}

function noEndpoint(_target: Target, allow: readonly string[]): VaultError {
  if (allow.length === 0)
    return new VaultError("NOT_FOUND", "there is no such endpoint: GET /v1/openapi.json lists them");
  return new VaultError("NOT_FOUND", `this endpoint supports only ${allow.join(", ")}`, { allow });
}

/** Returns what reports a finished request to the audit log and the observers. */
function reporter(audit: AuditLog | null, observers: Observers): Report {
  return (context, req, status, etag) => {
    const { found, started, caller } = context; // no rest pattern: the copy would cost more than all else here
    const { secretPath: path, subject, key, version, prefix, count, operations, code, requestId } = context;
    const finished: FinishedRequest = {
      method: req.method,
      route: found?.route.pattern ?? "unknown",
      status,
      code,
      caller: caller && (caller === "root" ? rootName : caller.token.name),
      address: addressOf(req),
      requestId,
      path,
      etag,
      subject,
      key,
      version,
      prefix,
      count,
      operations,
      durationMs: performance.now() - started,
    };
    if (found?.endpoint) audit?.requestFinished(found.endpoint.audit, finished);
    observers.requestFinished(finished);
  };
}

export type MessageClasses = {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
};

/**
 * Returns request and response classes that already have Express's prototypes, for a server's options. Express sets the
 * prototype of every request and response, which makes V8 drop the object's hidden class; here it sets what is there already.
 * For one app only, because an app marks its prototypes as its own.
 */
export function createMessageClasses(): MessageClasses {
  class AppRequest extends IncomingMessage {}
  class AppResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {}
  Object.setPrototypeOf(AppRequest.prototype, express.request);
  Object.setPrototypeOf(AppResponse.prototype, express.response);
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}

/** Makes the app use the prototypes of these classes. */
function adoptMessageClasses(app: Express, { IncomingMessage, ServerResponse }: MessageClasses): void {
  for (const { prototype } of [IncomingMessage, ServerResponse]) {
    Object.defineProperty(prototype, "app", { value: app, configurable: true, enumerable: true, writable: true });
  }
  Object.assign(app, { request: IncomingMessage.prototype, response: ServerResponse.prototype });
}
