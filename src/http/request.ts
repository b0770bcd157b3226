/** A request's context, which its checks and its handler share, and its headers. */
import type { IncomingMessage } from "node:http";
import type { Request } from "express";
import { type ErrorCode, VaultError } from "../errors.js";
import type { Condition, Tags } from "../vault/conditions.js";
import type { Recorded, Target } from "./endpoint.js";
import type { Found } from "./routes.js";

export interface RequestContext extends Recorded {
  readonly target: Target;
  readonly started: number;
  /** Null: no endpoint has this path. */
  readonly found: Found | null;
  /** Whether the response must have no body. The request's method is then GET, which it is served as. */
  readonly isHead: boolean;
  /** The text of its token. */
  presented: string | null;
  /** Throws UNAUTHORIZED once the caller's token has ended; null where none was presented. */
  requireValid: (() => void) | null;
  /** Reports the finished request; null once that is done. See `reportFinished`. */
  report: Report | null;
  /** Called before that, when the handler has done its work. */
  bodyDone: (() => void) | null;
  // Other facts in the report.
  secretPath: string | null;
  code: ErrorCode | null;
  requestId: string | null;
}

export type Report = (context: RequestContext, req: Request, status: number, etag: string | null) => void;

const key = Symbol("context");
type WithContext = IncomingMessage & { [key]?: RequestContext };

/** Call it once for each request, before its checks. */
export function beginContext(
  req: WithContext,
  { target, found, isHead }: Pick<RequestContext, "target" | "found" | "isHead">,
  report: Report,
): void {
  // A property, because a WeakMap entry per request is expensive to collect.
  req[key] = {
    target,
    started: performance.now(),
    found,
    isHead,
    caller: null,
    presented: null,
    requireValid: null,
    report,
    bodyDone: null,
    secretPath: null,
    subject: null,
    key: null,
    version: null,
    prefix: null,
    count: null,
    operations: null,
    code: null,
    requestId: null,
  };
}

export function requestContext(req: WithContext): RequestContext {
  if (req[key] === undefined) throw new Error("the request has no context yet");
  return req[key];
}

/** Returns true if the response must have no body. */
export function isHeadRequest(req: WithContext): boolean {
  return req[key]?.isHead === true;
}

/** Returns true if the request has presented a valid token. */
export function isAuthenticatedRequest(req: WithContext): boolean {
  return req[key] !== undefined && req[key].caller !== null;
}

/** Reports the request, at most once. `etag`: of the secret that was read or written. */
export function reportFinished(req: WithContext, status: number, etag: string | null = null): void {
  const { [key]: context } = req;
  if (!context?.report) return;
  const { report, bodyDone } = context;
  context.report = null;
  bodyDone?.();
  report(context, req as Request, status, etag);
}

/** Returns the value of a header that may occur once; null when it is missing or repeated. */
export function onlyHeader(rawHeaders: readonly string[], name: string): string | null {
  let value: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== name) continue;
    if (value !== null) return null;
    value = rawHeaders[i + 1] ?? null;
  }
  return value;
}

/** Returns the condition of a change. @throws VaultError BAD_REQUEST for a malformed header */
export function requestCondition({ headers }: IncomingMessage): Condition {
  return { ifMatch: ifMatch(headers["if-match"]), ifNoneMatch: ifNoneMatch(headers["if-none-match"]) };
}

/** Returns the If-None-Match of a read. @throws VaultError BAD_REQUEST for a malformed header */
export function unlessTagged({ headers }: IncomingMessage): Tags | null {
  return ifNoneMatch(headers["if-none-match"]);
}

/** Compares strongly: a weak etag matches nothing. */
function ifMatch(header: string | undefined): Tags | null {
  const etags = header === undefined ? null : entityTags(header, "If-Match");
  return etags === null || etags === "*" ? etags : etags.filter((etag) => etag.startsWith('"')).map(unquoted);
}

/** Compares weakly. */
function ifNoneMatch(header: string | undefined): Tags | null {
  const etags = header === undefined ? null : entityTags(header, "If-None-Match");
  return etags === null || etags === "*" ? etags : etags.map(unquoted);
}

/** A list may have empty elements (RFC 9110, section 5.6.1.2). An etag may contain commas. */
const list = /^[ \t]*(?:,[ \t]*)*(?:W\/)?"[!#-~\x80-\xff]*"(?:[ \t]*,(?:[ \t]*(?:W\/)?"[!#-~\x80-\xff]*")?)*[ \t]*$/;
const entityTag = /(?:W\/)?"[^"]*"/g;

function entityTags(header: string, name: string): Tags {
  if (header.trim() === "*") return "*";
  if (!list.test(header))
    throw new VaultError("BAD_REQUEST", `${name} must be * or etags in quotes, separated by commas`);
  return header.match(entityTag) ?? [];
}

function unquoted(etag: string): string {
  return etag.slice(etag.indexOf('"') + 1, -1);
}
