/** Owns the order in which a request is judged; each step is a middleware that answers, refuses or lets pass. */
import type { IncomingMessage, ServerResponse } from "node:http";
import express, { type Request } from "express";
import { createLockout } from "../access/lockout.js";
import type { Clock } from "../clock.js";
import { requireBearer } from "./bearer.js";
import { adoptMessageClasses, type MessageClasses } from "./express-prototypes.js";
import { type GuardSettings, guardOrigin } from "./host-guard.js";
import { discardBody } from "./plaintext-hygiene.js";
import { contextOf } from "./request-context.js";
import { answerErrors, cameTooLate, logRequests } from "./responses.js";
import { answerStatus, dispatch, isUnlock, routeOf, type Service } from "./routes.js";

export type AppSettings = GuardSettings & {
  /** SHA-256 of the bearer token. */
  readonly tokenDigest: Uint8Array;
};

export type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** `messages` are the classes that the server makes requests and responses of. */
export function createApp(
  service: Omit<Service, "passphraseLockout">,
  settings: AppSettings,
  clock: Clock,
  messages: MessageClasses,
): Handler {
  const tokenLockout = createLockout(
    clock,
    "too many wrong tokens from this address: wait before you try again",
    () => true,
  );
  const passphraseLockout = createLockout(clock, "too many wrong passphrases: wait before you try again", isUnlock);
  const full = { ...service, passphraseLockout };
  const app = express();
  adoptMessageClasses(app, messages);
  app.disable("x-powered-by").disable("etag");
  if (service.log.writes("debug")) app.use(logRequests(service.log, routeOf));
  app.use(guardOrigin(settings));
  app.use(answerStatus(full));
  app.use(tokenLockout.gate);
  app.use(requireBearer(settings.tokenDigest, tokenLockout, service.log));
  app.use(passphraseLockout.gate);
  app.use(dispatch(full));
  app.use(answerErrors(service.log, routeOf));
  return (req, res) => {
    if (cameTooLate(req)) return void discardBody(req);
    contextOf(req as Request);
    req.url = "/"; // Express skips every middleware when it cannot parse a target: it gets none to parse
    app(req, res);
  };
}
