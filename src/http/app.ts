/** The order of checks on a request, as a chain of Express middleware. */
import type { IncomingMessage, ServerResponse } from "node:http";
import express, { type Request } from "express";
import { keyOfAddress, keyOfOrigin } from "../access/address.js";
import { createLockout, type LockoutRules } from "../access/lockout.js";
import type { Clock } from "../clock.js";
import type { Observers } from "../observer.js";
import { requireBearer } from "./bearer.js";
import type { Service } from "./endpoint.js";
import { sendErrors } from "./error-responses.js";
import { adoptMessageClasses, type MessageClasses } from "./express-prototypes.js";
import { reporter, requestLog } from "./finished-requests.js";
import { type GuardSettings, guardOrigin } from "./host-guard.js";
import { discardBody } from "./plaintext-hygiene.js";
import { isAfterClose } from "./request-body.js";
import { contextOf } from "./request-context.js";
import { dispatch, routeOf, serveStatus, takesPassphrase } from "./routes.js";

export type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** `messages`: the classes of the HTTP server's requests and responses. */
export function createApp(
  service: Omit<Service, "passphraseLockout">,
  settings: GuardSettings,
  clock: Clock,
  messages: MessageClasses,
  observers: Observers,
): Handler {
  const { log } = service;
  const token = { failures: "wrong tokens", credential: "token", keyOf: keyOfAddress, applies: () => true } as const;
  const passphrase = {
    failures: "wrong passphrases",
    credential: "passphrase",
    keyOf: keyOfOrigin,
    applies: takesPassphrase,
  } as const;
  const lockoutOf = (rules: LockoutRules) =>
    createLockout(clock, log, rules, (event, address) => {
      if (event === "lockout") service.audit?.lockedOut(rules.credential, address);
      observers.vaultEvent({ event, credential: rules.credential, address, at: clock.now() });
    });
  const [tokenLockout, passphraseLockout] = [lockoutOf(token), lockoutOf(passphrase)];
  const full = { ...service, passphraseLockout };
  if (log.writes("debug")) observers.add(requestLog(log));
  const report = reporter(service.audit, observers, routeOf);
  const app = express();
  adoptMessageClasses(app, messages);
  app.disable("x-powered-by").disable("etag");
  app.use(guardOrigin(settings));
  app.use(serveStatus(full));
  app.use(tokenLockout.gate);
  app.use(requireBearer(service.credentials, service.tokens, tokenLockout, clock));
  app.use(passphraseLockout.gate);
  app.use(dispatch(full));
  app.use(sendErrors(service.log, routeOf));
  return (req, res) => {
    if (isAfterClose(req)) return void discardBody(req);
    contextOf(req as Request).report = report;
    req.url = "/"; // Express skips every middleware when it cannot parse a target
    app(req, res);
  };
}
