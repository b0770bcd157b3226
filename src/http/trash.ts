/** Handlers of the trash. */
import type { Request, Response } from "express";
import type { Service } from "./endpoint.js";
import { authorizePath, secretPathOf, stillValid } from "./guards.js";
import { conditionOf } from "./request.js";
import { sendJson } from "./response.js";
import { sendList } from "./secrets.js";

export async function trash(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  authorizePath(req, path);
  const deletedAt = await service.vault.trash.move(path, condition, stillValid(req));
  const message = "the secret is in the trash";
  sendJson(res, 200, { ok: true, path, message, deletedAt: new Date(deletedAt).toISOString() });
}

export async function untrash(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  authorizePath(req, path);
  await service.vault.trash.restore(path, condition, stillValid(req));
  sendJson(res, 200, { ok: true, path, message: "the secret is back" });
}

export async function destroyTrashed(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  authorizePath(req, path);
  await service.vault.trash.destroy(path, condition, stillValid(req));
  sendJson(res, 200, { ok: true, path, message: "the secret is destroyed" });
}

export function listTrash(service: Service, req: Request, res: Response): Promise<void> {
  return sendList(req, res, (query) => service.vault.trash.list(query));
}
