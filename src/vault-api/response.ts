/** Responses in the forms of Vault. Their bytes are wiped once they are sent, as those of the native API. */
import { randomUUID } from "node:crypto";
import type { Request, Response } from "express";
import { requireValidToken } from "../http/guards.js";
import { sendBytes, sendJson, sendStatus } from "../http/response.js";

/** Some clients compare it as a whole. */
export const jsonType = "application/json";

/** Sends what a key worker made, the JSON of `data`, in Vault's envelope. */
export function sendData(
  res: Response,
  data: Uint8Array,
  status = 200,
  warnings: readonly string[] | null = null,
): void {
  const start = `{"request_id":"${randomUUID()}","lease_id":"","renewable":false,"lease_duration":0,"data":`;
  const end = `,"wrap_info":null,"warnings":${JSON.stringify(warnings)},"auth":null}\n`;
  sendBytes(res, status, [Buffer.from(start), data, Buffer.from(end)], undefined, jsonType);
}

/** As `sendData`, unless the token has ended while the data was read. @throws VaultError UNAUTHORIZED */
export function sendRead(
  req: Request,
  res: Response,
  data: Uint8Array,
  ...how: readonly [status?: number, warnings?: readonly string[]]
): void {
  requireValidToken(req, data);
  sendData(res, data, ...how);
}

/** As `sendData`, of an object that is not secret. `beside`: members next to `data`, such as `auth`. */
export function sendObject(res: Response, data: object | null, beside: object = {}): void {
  const envelope = { request_id: randomUUID(), lease_id: "", renewable: false, lease_duration: 0, data };
  sendJson(res, 200, { ...envelope, wrap_info: null, warnings: null, auth: null, ...beside }, jsonType);
}

/** Sends an object without an envelope, as some of `sys` are. */
export function sendPlain(res: Response, body: object, status = 200): void {
  sendJson(res, status, body, jsonType);
}

/** Sends 204: done, with nothing to say. */
export function sendNothing(res: Response): void {
  sendStatus(res, 204);
}
