/** Handlers that check a passphrase by hand. */
import type { Request, Response } from "express";
import type { Bytes, SharedBytes } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { readBody, sharedMemory } from "./body.js";
import type { Handler, Service } from "./endpoint.js";
import { contextOf, type RequestContext } from "./request.js";
import { sendBytes } from "./response.js";

const maxFieldsBytes = 64 * 1024;

type Attempt = (service: Service, body: SharedBytes, permit: () => void, context: RequestContext) => Promise<Bytes>;

type Send = (service: Service, res: Response, response: Bytes) => void;

function sendResponse(_service: Service, res: Response, response: Bytes): void {
  sendBytes(res, 200, [response]);
}

/** Counts a wrong passphrase towards the lockout. */
export function withPassphrase(attempt: Attempt, send: Send = sendResponse): Handler {
  return async (service, req: Request, res) => {
    const { passphraseLockout } = service;
    const body = await readBody(req, res, maxFieldsBytes, sharedMemory);
    try {
      // Concurrent attempts pass the gate before the first has failed: after the tenth failure all others are refused.
      send(service, res, await attempt(service, body, () => passphraseLockout.check(req), contextOf(req)));
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "UNAUTHORIZED") throw error;
      passphraseLockout.check(req);
      passphraseLockout.fail(req);
      throw new VaultError("UNAUTHORIZED", error.message, { credential: "passphrase" });
    }
  };
}
