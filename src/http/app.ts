/** Application of a port: its requests' way from Node to the adapter, and their reports. */
import { IncomingMessage, ServerResponse } from "node:http";
import express from "express";
import { clientAddress, createLockout, keyOfAddress, keyOfOrigin, type LockoutRules } from "../access/lockout.js";
import { rootName } from "../access/token-request.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { FinishedRequest, Observers } from "../observer.js";
import { type Api, serve } from "./adapter.js";
import { discardBody, isAfterClose } from "./connections.js";
import type { Service, Target } from "./endpoint.js";
import { endpointTable } from "./endpoints.js";
import { BearerCheck, bearerToken, type GuardSettings, OriginGuard } from "./guards.js";
import { beginContext, type Report } from "./request.js";
import { nativeErrors } from "./response.js";
import { reviewPage } from "./review.js";
import { parseTarget } from "./routes.js";

export type Handle = (req: IncomingMessage, res: ServerResponse) => void;

export const nativeApi: Api = {
  table: endpointTable,
  requestMethod: ({ method }) => method ?? "",
  readToken: bearerToken,
  countsMissingToken: (found) => found !== null, // a browser asks for /favicon.ico
  checkHeaders: () => {},
  noEndpoint,
  errors: nativeErrors,
  page: reviewPage,
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
  const port = { api, service, origin: new OriginGuard(settings), bearer: new BearerCheck(service, clock, api) };
  const report = reporter(service.audit, observers);
  const app = express().disable("x-powered-by").disable("etag");
  const [request, response] = [messages.IncomingMessage.prototype, messages.ServerResponse.prototype];
  for (const prototype of [request, response]) {
    Object.defineProperty(prototype, "app", { value: app, configurable: true, enumerable: true, writable: true });
  }
  Object.assign(app, { request, response });
  app.use((req, res) => serve(port, req, res));
  return (req, res) => {
    if (isAfterClose(req)) return void discardBody(req);
    const target = parseTarget(req.url ?? "");
    const method = api.requestMethod(req);
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
  const lockoutFor = (rules: LockoutRules) =>
    createLockout(clock, log, rules, (event, address) => {
      if (event === "lockout") audit?.lockedOut(rules.credential, address);
      observers.vaultEvent({ event, credential: rules.credential, address, at: clock.now() });
    });
  return {
    tokenLockout: lockoutFor({ failures: "wrong tokens", credential: "token", addressKey: keyOfAddress }),
    passphraseLockout: lockoutFor({ failures: "wrong passphrases", credential: "passphrase", addressKey: keyOfOrigin }),
  };
}

function noEndpoint(_target: Target, allow: readonly string[]): VaultError {
  if (allow.length === 0)
    return new VaultError("NOT_FOUND", "there is no such endpoint: GET /v1/openapi.json lists them");
  return new VaultError("NOT_FOUND", `this endpoint supports only ${allow.join(", ")}`, { allow });
}

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
      address: clientAddress(req),
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
