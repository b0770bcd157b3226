/** Endpoints of a secret's versions. */
import type { Request, Response } from "express";
import { VaultError } from "../../errors.js";
import { conditionOf } from "../conditional-headers.js";
import type { Service } from "../endpoint.js";
import { mustBeWithin, mustBeWithinStill, secretPathOf } from "../permission.js";
import { ownMemory } from "../plaintext-hygiene.js";
import { readBody } from "../request-body.js";
import { contextOf } from "../request-context.js";
import { parseQuery } from "../request-target.js";
import { sendBytes, sendJson } from "../responses.js";

export async function versions({ vault }: Service, req: Request, res: Response, rest: string): Promise<void> {
  const path = secretPathOf(req, rest);
  const version = versionQuery(req);
  mustBeWithin(req, path);
  sendBytes(res, 200, [await (version === null ? vault.secrets.history(path) : vault.secrets.version(path, version))]);
}

export async function undo(service: Service, req: Request, res: Response, rest: string): Promise<void> {
  const path = secretPathOf(req, rest);
  const condition = conditionOf(req);
  const body = await readBody(req, res, service.maxBodyBytes, ownMemory);
  await mustBeWithinStill(service, req, path, body, () => service.vault.secrets.judgeUndo(path, body));
  const { reply, tag } = await service.vault.secrets.undo(path, body, condition);
  sendBytes(res, 200, [reply], tag);
}

export async function prune({ vault }: Service, req: Request, res: Response, rest: string): Promise<void> {
  const path = secretPathOf(req, rest);
  const condition = conditionOf(req);
  mustBeWithin(req, path);
  const removed = await vault.secrets.prune(path, condition);
  const message = removed === 1 ? "1 earlier version is deleted" : `${removed} earlier versions are deleted`;
  sendJson(res, 200, { ok: true, path, message });
}

/** Notes the version for the observers. */
function versionQuery(req: Request): number | null {
  const context = contextOf(req);
  const version = parseQuery(context.target.query, ["version"]).get("version");
  if (version === undefined) return null;
  if (!/^[1-9]\d{0,14}$/.test(version)) {
    throw new VaultError("BAD_REQUEST", "the parameter version must be a whole number from 1 to 999999999999999");
  }
  context.version = Number(version);
  return context.version;
}
