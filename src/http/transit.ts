/** Handlers of transit keys and one-time codes. */
import type { Request, Response } from "express";
import type { SharedBytes, TransitUse } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { readBody, sharedMemory } from "./body.js";
import type { Handler, Service } from "./endpoint.js";
import { authorizeBody, authorizePath, secretPathOf, stillValid, visibleRanges } from "./guards.js";
import { contextOf } from "./request.js";
import { sendBytes, sendJson, sendRead } from "./response.js";

/** The handlers of `transitRows`. */
export const transitHandlers = {
  createTransitKey,
  showTransitKey,
  deleteTransitKey,
  rotateTransitKey: changing("rotate"),
  configureTransitKey: changing("config"),
  exportTransitKey,
  encrypt: using("encrypt"),
  decrypt: using("decrypt"),
  rewrap: using("rewrap"),
  sign: using("sign"),
  verify: using("verify"),
  hmac: using("hmac"),
  dataKey: using("datakey"),
} as const;

async function createTransitKey(service: Service, req: Request, res: Response, text: string): Promise<void> {
  const name = keyNameOf(req, text);
  const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
  sendBytes(res, 200, [await service.vault.transit.create(name, body, stillValid(req))]);
}

export async function listTransitKeys(service: Service, req: Request, res: Response): Promise<void> {
  sendRead(req, res, ...(await service.vault.transit.list(visibleRanges(req).within)));
}

async function showTransitKey(service: Service, req: Request, res: Response, text: string): Promise<void> {
  const name = keyNameOf(req, text);
  authorizePath(req, name);
  sendRead(req, res, await service.vault.transit.show(name));
}

async function exportTransitKey(service: Service, req: Request, res: Response, text: string): Promise<void> {
  const name = keyNameOf(req, text);
  sendRead(req, res, await service.vault.transit.export(name));
}

async function deleteTransitKey(service: Service, req: Request, res: Response, text: string): Promise<void> {
  const name = keyNameOf(req, text);
  await service.vault.transit.remove(name, stillValid(req));
  sendJson(res, 200, { ok: true, name, message: "the transit key is deleted" });
}

/** Encrypts, signs and so on: one input, or a batch of them. */
function using(use: TransitUse): Handler {
  return async (service, req, res, text) => {
    const { transit } = service.vault;
    const name = keyNameOf(req, text);
    const body = await readBody(req, res, service.maxBatchBytes, sharedMemory);
    await authorizeBody(req, name, () => transit.validateUse(use, name, body));
    sendRead(req, res, await transit.use(use, name, body));
  };
}

export async function randomBytes(service: Service, req: Request, res: Response): Promise<void> {
  const body: SharedBytes = await readBody(req, res, service.maxBodyBytes, sharedMemory);
  sendBytes(res, 200, [await service.vault.transit.random(body)]);
}

export async function oneTimeCode(service: Service, req: Request, res: Response, text: string): Promise<void> {
  const path = secretPathOf(req, text);
  authorizePath(req, path);
  sendRead(req, res, await service.vault.secrets.oneTimeCode(path));
}

function changing(change: "rotate" | "config"): Handler {
  return async (service, req, res, text) => {
    const name = keyNameOf(req, text);
    const body = await readBody(req, res, service.maxBodyBytes, sharedMemory);
    sendBytes(res, 200, [await service.vault.transit.change(change, name, body, stillValid(req))]);
  };
}

/** Names are paths as secrets have them. @throws VaultError BAD_REQUEST */
function keyNameOf(req: Request, text: string): string {
  const name = secretPathOf(req, text);
  if (!/\/(?:rotate|config)$/.test(name)) return name;
  contextOf(req).secretPath = null;
  throw new VaultError("BAD_REQUEST", "the name of a transit key must not end in /rotate or /config");
}
