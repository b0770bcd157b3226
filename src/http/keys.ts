/** Handlers that take a passphrase or the text of a key, and those of the keys. */
import type { Request, Response } from "express";
import type { Bytes, SharedBytes } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { maxFieldsBytes, readBody, sharedMemory } from "./body.js";
import type { Handler, Service } from "./endpoint.js";
import { contextOf, type RequestContext } from "./request.js";
import { sendBytes } from "./response.js";

export const unlock = withPassphrase(({ vault }, body, permit) => vault.unlock(body, permit));
export const changePassphrase = withPassphrase(({ vault }, body, permit) => vault.keys.changePassphrase(body, permit));
export const createKey = withPassphrase(async ({ vault }, body, permit, context) => {
  const { response, key } = await vault.keys.create(body, permit);
  context.key = key;
  return response;
});
const rotateKey = withPassphrase(({ vault }, body, permit) => vault.keys.rotate(body, permit));

export async function rotate(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  await rotateKey(service, req, res, parameter);
  service.audit?.checkpoint("key");
}

export async function keys({ vault }: Service, _req: Request, res: Response): Promise<void> {
  sendBytes(res, 200, [await vault.keys.list()]);
}

export async function deleteKey({ vault }: Service, req: Request, res: Response, id: string): Promise<void> {
  const { response, key } = await vault.keys.delete(id);
  contextOf(req).key = key;
  sendBytes(res, 200, [response]);
}

type Attempt = (service: Service, body: SharedBytes, permit: () => void, context: RequestContext) => Promise<Bytes>;

type Send = (service: Service, res: Response, response: Bytes) => void;

function sendResponse(_service: Service, res: Response, response: Bytes): void {
  sendBytes(res, 200, [response]);
}

/** Counts a wrong passphrase towards the lockout. */
export function withPassphrase(attempt: Attempt, send: Send = sendResponse): Handler {
  return async (service, req, res) => {
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
