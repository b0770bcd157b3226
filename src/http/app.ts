/** Owns the order in which a request is judged; each step is a middleware that answers, refuses or lets pass. */
import express, { type Express } from "express";
import type { Clock } from "../clock.js";
import { requireBearer } from "./bearer.js";
import { type GuardSettings, guardOrigin } from "./guard.js";
import { createLockout } from "./lockout.js";
import { answerErrors, logRequests, securityHeaders } from "./respond.js";
import { answerStatus, dispatch, isUnlock, type Service } from "./routes.js";

export type AppSettings = GuardSettings & {
  /** SHA-256 of the bearer token. */
  readonly tokenDigest: Uint8Array;
};

export function createApp(service: Omit<Service, "passphraseLockout">, settings: AppSettings, clock: Clock): Express {
  const tokenLockout = createLockout(
    clock,
    "too many wrong tokens from this address: wait before you try again",
    () => true,
  );
  const passphraseLockout = createLockout(clock, "too many wrong passphrases: wait before you try again", isUnlock);
  const full = { ...service, passphraseLockout };
  const app = express();
  app.disable("x-powered-by").disable("etag");
  app.use(logRequests(service.log), ...securityHeaders());
  app.use(guardOrigin(settings));
  app.use(answerStatus(full));
  app.use(tokenLockout.gate);
  app.use(requireBearer(settings.tokenDigest, tokenLockout, service.log));
  app.use(passphraseLockout.gate);
  app.use(dispatch(full));
  app.use(answerErrors(service.log));
  return app;
}
