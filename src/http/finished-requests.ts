/** Reports of finished requests to the audit log and the observers, from what the request's context has gathered. */
import type { IncomingMessage } from "node:http";
import type { Request } from "express";
import type { Caller } from "../access/credentials.js";
import { addressOf } from "../access/lockout.js";
import { rootName } from "../access/token-request.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { Log } from "../log.js";
import type { FinishedRequest, Observer, Observers } from "../observer.js";
import { contextOf, type RequestContext } from "./request-context.js";

/** For a context's `report`. `routeOf` returns the route pattern of a path. */
export function reporter(
  audit: AuditLog | null,
  observers: Observers,
  routeOf: (path: string) => string,
): RequestContext["report"] {
  return (req, status, etag) => {
    const context = contextOf(req); // no rest pattern: the copy would cost more than all else here
    const { target, started, caller, secretPath: path, subject, version } = context;
    const { prefix, count, operations, code, requestId } = context;
    const finished: FinishedRequest = {
      method: req.method,
      route: routeOf(target.path),
      status,
      code,
      caller: caller && nameOf(caller),
      address: addressOf(req),
      requestId,
      path,
      etag,
      subject,
      version,
      prefix,
      count,
      operations,
      durationMs: performance.now() - started,
    };
    audit?.requestFinished(finished);
    observers.requestFinished(finished);
  };
}

function nameOf(caller: Caller): string {
  return caller === "root" ? rootName : caller.token.name;
}

/** Reports the request, at most once. `tag`: of the secret that was read or written. */
export function reportFinished(req: IncomingMessage, status: number, tag: string | null = null): void {
  const context = contextOf(req as Request);
  const { report } = context;
  context.report = null;
  report?.(req as Request, status, tag);
}

/** Writes one debug line for each finished request. DANGER: never its path. */
export function requestLog(log: Log): Observer {
  return {
    requestFinished({ method, route, status, durationMs }) {
      log.debug({ event: "request", method, route, status, durationMs: Math.round(durationMs) });
    },
  };
}
