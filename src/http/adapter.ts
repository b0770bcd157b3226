/**
 * The one way in and out of an endpoint, at every port: the checks of a request in their order (docs/reference/http-api.md, Order of
 * checks), its handler, and its response. Handlers see neither a request nor a response.
 *
 * Each check is a function in one of the lists below, and nothing else refuses a request. Tests leave out each in turn.
 */
import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import { authorizePath, reachesAll } from "../access/rights.js";
import { requireScope } from "../access/scopes.js";
import { VaultError } from "../errors.js";
import type { Condition, Permit, Tags } from "../vault/conditions.js";
import { readBody } from "./body.js";
import { keepsPlaintext } from "./connections.js";
import {
  type BasicCall,
  type Endpoint,
  type Lines,
  none,
  type Outcome,
  type Page,
  type Parts,
  type Service,
  type Target,
  type Whole,
} from "./endpoint.js";
import type { BearerCheck, OriginGuard, TokenRules } from "./guards.js";
import { type RequestContext, reportFinished, requestCondition, requestContext, unlessTagged } from "./request.js";
import { type ErrorForm, sendError, sendLines, sendPage, sendParts, sendWhole } from "./response.js";
import type { EndpointTable } from "./routes.js";

/** Differences between the APIs of one server. */
export type Api = TokenRules & {
  readonly table: Pick<EndpointTable, "find" | "allowedMethods">;
  /** Returns the method as the table and the report have it. */
  readonly requestMethod: (req: IncomingMessage) => string;
  /** Refuses what an authenticated request asks for and the API does not have. @throws VaultError BAD_REQUEST */
  readonly checkHeaders: (req: IncomingMessage) => void;
  /** Returns the error for a target that no endpoint serves; `allow`: the methods that its path has. */
  readonly noEndpoint: (target: Target, allow: readonly string[]) => VaultError;
  readonly errors: ErrorForm;
  /** Returns what is no endpoint and needs no token; null when it is none of that. */
  readonly page: (service: Service, method: string, path: string) => Page | null;
};

/** Collaborators that check the requests of one port. */
type Port = {
  readonly api: Api;
  readonly service: Service;
  readonly origin: OriginGuard;
  readonly bearer: BearerCheck;
};

/** A request on its way. */
export class Exchange {
  readonly port: Port;
  readonly req: Request;
  readonly res: Response;
  readonly context: RequestContext;
  readonly endpoint: Endpoint;
  given: object = {};
  condition: Condition | null = null;
  unless: Tags | null = null;
  query: unknown = null;
  body: Uint8Array | null = null;
  /** True once a file of the review page was sent, for which there is no endpoint. */
  isPage = false;
  /** True if the request counts as activity unless it is refused: see `requireUnlocked`. */
  touchesAtEnd = false;

  constructor(port: Port, req: Request, res: Response) {
    this.port = port;
    this.req = req;
    this.res = res;
    this.context = requestContext(req);
    this.endpoint = this.context.found?.endpoint ?? missing;
  }
}

/** Stands for what no row serves: it needs a token, like nearly all others. */
const missing: Endpoint = {
  ...{ operation: "", at: "GET /v1/", scope: "any", guard: "none", audit: null, subject: none, body: null },
  ...{ conditional: false, reads: false },
  handle: () => {
    throw new Error("there is no such endpoint");
  },
};

type Step = (exchange: Exchange) => Promise<void> | void;

/** The steps before the handler. DANGER: what is refused before `readRequestBody` is refused before a byte of the body is read. */
export const arrival: readonly Step[] = [
  refuseOtherSites,
  servePage,
  refuseLockedOut,
  authenticate,
  refuseHeaders,
  closeAfterPassphrase,
  refuseLockedOutOfPassphrases,
  requireEndpoint,
  refuseWhileStopping,
  requireScopes,
  requireUnlocked,
  requireAuditLog,
  readSubject,
  authorizeSubject,
  readConditions,
  readQuery,
  readRequestBody,
  checkTokenAfterBody,
];

/** The checks of a change in its turn, and of a long read between its parts: a token may have ended while it waited. */
export const turn: readonly ((exchange: Exchange) => void)[] = [checkTokenInTurn, refuseFurtherAttempts];

/** The checks of a response before it leaves. */
export const departure: readonly ((exchange: Exchange, outcome: Whole) => void)[] = [checkTokenBeforeRead];

/** The counters of a refusal. Each returns the error for the client. */
export const refusal: readonly ((exchange: Exchange, error: unknown) => unknown)[] = [countLogin, countPassphrase];

/** Once the response is sent or lost. `etag`: of the secret that was read or written. */
export const conclusion: readonly ((exchange: Exchange, status: number, etag: string | null) => void)[] = [
  record,
  wipeBody,
  delayIdleLock,
];

/** DANGER: not async: a request that waits for nothing, such as status, has its response at once. */
export function serve(port: Port, req: Request, res: Response): void {
  const exchange = new Exchange(port, req, res);
  try {
    const rest = advance(exchange, 0);
    if (rest instanceof Promise) rest.catch((error: unknown) => fail(exchange, error));
  } catch (error) {
    fail(exchange, error);
  }
}

/** Takes the steps from one on, then calls the handler. */
function advance(exchange: Exchange, from: number): Promise<void> | void {
  for (let at = from; at < arrival.length; at++) {
    const step = arrival[at]?.(exchange);
    if (exchange.isPage) return;
    if (step instanceof Promise) return step.then(() => advance(exchange, at + 1));
  }
  const outcome = exchange.endpoint.handle(Object.assign(new Call(exchange), exchange.given));
  return outcome instanceof Promise ? outcome.then((made) => leave(exchange, made)) : leave(exchange, outcome);
}

/** A class, because a literal with a spread costs the hot path ten times as much. Handlers' types show what their rows declare. */
class Call implements BasicCall {
  readonly service: Service;
  readonly vault: Service["vault"];
  readonly recorded: RequestContext;
  readonly caller: RequestContext["caller"];
  readonly presented: string | null;
  readonly condition: Condition | null;
  readonly unless: Tags | null;
  readonly query: unknown;
  readonly body: Uint8Array | null;
  readonly permit: Permit;

  constructor(exchange: Exchange) {
    const { port, context } = exchange;
    this.service = port.service;
    this.vault = port.service.vault;
    this.recorded = context;
    this.caller = context.caller;
    this.presented = context.presented;
    this.condition = exchange.condition;
    this.unless = exchange.unless;
    this.query = exchange.query;
    this.body = exchange.body;
    this.permit = () => {
      for (const check of turn) check(exchange);
    };
  }
}

function leave(exchange: Exchange, outcome: Outcome): Promise<void> | void {
  if ("parts" in outcome) return leaveInParts(exchange, outcome);
  if ("lines" in outcome) return leaveInLines(exchange, outcome);
  for (const check of departure) check(exchange, outcome);
  sendWhole(exchange.res, outcome);
  conclude(exchange, outcome.status, outcome.etag ?? null);
  outcome.after?.();
}

async function leaveInParts(exchange: Exchange, { parts }: Parts): Promise<void> {
  try {
    await sendChecked(exchange, parts);
  } finally {
    await parts.return();
  }
}

/** Checks each part before it leaves, and counts its secrets for the report. */
async function sendChecked(exchange: Exchange, parts: Parts["parts"]): Promise<void> {
  const { context, res } = exchange;
  const { pieces, last, count } = (await parts.next()).value ?? { pieces: [], last: true, count: 0 };
  context.count = count;
  const first: Whole = { status: 200, pieces };
  if (last) return void leave(exchange, first);
  for (const check of departure) check(exchange, first);
  await sendParts(res, pieces, async () => {
    const { value } = await parts.next();
    if (value === undefined) return null;
    for (const check of departure) check(exchange, { status: 200, pieces: value.pieces });
    context.count = (context.count ?? 0) + value.count;
    return value.pieces;
  });
  conclude(exchange, 200, null);
}

function leaveInLines(exchange: Exchange, outcome: Lines): void {
  const mayFollow = () => {
    try {
      for (const check of departure) check(exchange, { status: 200, pieces: [] });
      return !exchange.port.service.stopSignal.aborted;
    } catch {
      return false;
    }
  };
  sendLines(exchange.res, outcome, mayFollow);
  conclude(exchange, 200, null);
}

function fail(exchange: Exchange, error: unknown): void {
  const { port, req, res } = exchange;
  const told = refusal.reduce((problem, count) => count(exchange, problem), error);
  const status = sendError(req, res, told, port.service.log, port.api.errors);
  conclude(exchange, status, null);
}

function conclude(exchange: Exchange, status: number, etag: string | null): void {
  for (const end of conclusion) end(exchange, status, etag);
}

function isTokenless({ scope }: Endpoint): boolean {
  return scope === "open" || scope === "login";
}

// The steps before the handler.

function refuseOtherSites({ port, req }: Exchange): void {
  port.origin.check(req);
}

function servePage(exchange: Exchange): void {
  const { port, context, req, res } = exchange;
  const page = context.found === null ? port.api.page(port.service, req.method, context.target.path) : null;
  if (page === null) return;
  exchange.isPage = true;
  sendPage(res, page);
  conclude(exchange, 200, null);
}

/** Open endpoints tell only the state and check no credential: locked-out clients may call them. */
function refuseLockedOut({ port, endpoint, req }: Exchange): void {
  if (endpoint.scope !== "open") port.service.tokenLockout.check(req);
}

function authenticate({ port, endpoint, req, res }: Exchange): Promise<void> | void {
  if (isTokenless(endpoint)) return;
  return port.bearer.check(req, res);
}

function refuseHeaders({ port, endpoint, req }: Exchange): void {
  if (!isTokenless(endpoint)) port.api.checkHeaders(req);
}

/** Makes the response the last of its connection where the connection itself keeps a piece of the passphrase. */
function closeAfterPassphrase({ endpoint, req, res }: Exchange): void {
  if (endpoint.body?.called === "passphrase" && keepsPlaintext(req.socket)) res.setHeader("Connection", "close");
}

function refuseLockedOutOfPassphrases({ port, endpoint, req }: Exchange): void {
  if (endpoint.guard === "passphrase") port.service.passphraseLockout.check(req);
}

function requireEndpoint({ port, endpoint, context }: Exchange): void {
  const { api } = port;
  if (endpoint === missing) throw api.noEndpoint(context.target, api.table.allowedMethods(context.target.path));
}

function refuseWhileStopping({ port, endpoint }: Exchange): void {
  if (endpoint.scope !== "open" && port.service.stopSignal.aborted)
    throw new VaultError("UNAVAILABLE", "the server is shutting down");
}

function requireScopes({ endpoint, context: { caller } }: Exchange): void {
  if (caller !== null && caller !== "root") requireScope(caller, endpoint.scope);
}

/** A path that the token may not reach is no activity: of a token with limited paths, only what was not refused is. */
function requireUnlocked(exchange: Exchange): void {
  const { endpoint, context, port } = exchange;
  const { vault, tokens } = port.service;
  const { caller } = context;
  const { guard } = endpoint;
  if (guard === "key") vault.mustBeUnlocked();
  if (guard === "genuine" && caller !== null && caller !== "root" && !caller.session) tokens.mustBeGenuine(caller);
  if (guard !== "unlocked" && guard !== "background") return;
  const isActivity = guard === "unlocked" && caller !== null;
  const touches = isActivity && reachesAll(caller);
  vault.secrets.admit(touches);
  exchange.touchesAtEnd = isActivity && !touches;
}

function requireAuditLog({ endpoint: { guard }, port }: Exchange): void {
  if (guard === "unlocked" || guard === "background") port.service.audit?.mustAccept();
}

function readSubject(exchange: Exchange): void {
  const { endpoint, context } = exchange;
  exchange.given = endpoint.subject.read(context.found?.parameter ?? "", context.target);
  context.secretPath = endpoint.subject.auditPath(exchange.given);
}

function authorizeSubject({ context: { caller, secretPath } }: Exchange): void {
  if (caller !== null && secretPath !== null) authorizePath(caller, secretPath);
}

function readConditions(exchange: Exchange): void {
  const { conditional } = exchange.endpoint;
  if (conditional === "change") exchange.condition = requestCondition(exchange.req);
  if (conditional === "read") exchange.unless = unlessTagged(exchange.req);
}

function readQuery(exchange: Exchange): void {
  const { endpoint, context } = exchange;
  exchange.query = endpoint.query?.(context.target.query);
}

function readRequestBody(exchange: Exchange): Promise<void> | void {
  const { endpoint, req, res, port, context } = exchange;
  if (endpoint.body === null) return;
  const limit = endpoint.body.limit(port.service, context.caller);
  return readBody(req, res, limit, endpoint.body.memory).then((body) => {
    exchange.body = body;
  });
}

/** A request that was begun with a stolen token could otherwise make a new one after the owner has replaced it. */
function checkTokenAfterBody({ endpoint, context }: Exchange): void {
  if (endpoint.body !== null) context.requireValid?.();
}

// The checks of a change in its turn.

function checkTokenInTurn({ context }: Exchange): void {
  context.requireValid?.();
}

/** Attempts at the same time pass the first check before one has failed: after the tenth failure all others are refused. */
function refuseFurtherAttempts({ endpoint, port, req }: Exchange): void {
  if (endpoint.scope === "login") port.service.tokenLockout.check(req);
  if (endpoint.guard === "passphrase") port.service.passphraseLockout.check(req);
}

// The checks of a response before it leaves.

function checkTokenBeforeRead({ endpoint, context }: Exchange, { pieces, isDone = false }: Whole): void {
  if (!endpoint.reads || isDone) return;
  try {
    context.requireValid?.();
  } catch (error) {
    for (const piece of pieces) piece.fill(0);
    throw error;
  }
}

// The end of a request.

function record({ req }: Exchange, status: number, etag: string | null): void {
  reportFinished(req, status, etag);
}

/** Wipes the body unless it was moved to the key worker. */
function wipeBody({ body }: Exchange): void {
  if (body !== null && body.byteLength > 0) body.fill(0);
}

function delayIdleLock({ touchesAtEnd, context: { code }, port }: Exchange): void {
  if (touchesAtEnd && code !== "FORBIDDEN" && code !== "UNAUTHORIZED") port.service.vault.secrets.touch();
}

// The counters of a refusal.

function countLogin({ endpoint, port, req }: Exchange, error: unknown): unknown {
  if (endpoint.scope === "login" && isWrongCredential(error)) port.service.tokenLockout.fail(req);
  return error;
}

function countPassphrase({ endpoint, port, req }: Exchange, error: unknown): unknown {
  if (endpoint.guard !== "passphrase" || !isWrongCredential(error)) return error;
  const { passphraseLockout } = port.service;
  try {
    passphraseLockout.check(req);
  } catch (lockedOut) {
    return lockedOut;
  }
  passphraseLockout.fail(req);
  return new VaultError("UNAUTHORIZED", error.message, { credential: "passphrase" });
}

/** Returns true for a wrong credential in the body: a wrong token sets `credential`, and an ended one (`reason`) is no guess. */
function isWrongCredential(error: unknown): error is VaultError {
  if (!(error instanceof VaultError) || error.code !== "UNAUTHORIZED") return false;
  return error.credential === undefined && error.reason === undefined;
}
