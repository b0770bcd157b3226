/** Handlers of tokens: the root token creates, lists, rotates and revokes; every token may ask who it is. */
import type { Request, Response } from "express";
import { readRotation, readTokenRequest, rootName } from "../access/token-request.js";
import type { NewToken } from "../access/tokens.js";
import { scopes } from "../contract/names.js";
import { ownMemory, readBody } from "./body.js";
import type { Service } from "./endpoint.js";
import { callerOf, contextOf } from "./request.js";
import { sendJson } from "./response.js";

/** Longer than any valid body, with every character escaped. */
const maxBodyBytes = 512 * 1024;

export async function createToken({ vault, tokens }: Service, req: Request, res: Response): Promise<void> {
  vault.mustBeUnlocked();
  const request = readTokenRequest(await readBody(req, res, maxBodyBytes, ownMemory));
  sendNewToken(req, res, await tokens.create(request));
}

export async function rotateToken(service: Service, req: Request, res: Response, name: string): Promise<void> {
  const { vault, tokens, rootRotation } = service;
  if (name !== rootName) vault.mustBeUnlocked();
  const overlap = readRotation(await readBody(req, res, maxBodyBytes, ownMemory));
  if (name !== rootName) return sendNewToken(req, res, await tokens.rotate(name, overlap));
  const text = await rootRotation.rotate(overlap);
  contextOf(req).subject = rootName;
  sendJson(res, 200, { ok: true, token: text, ...rootToken });
}

export async function revokeToken({ tokens }: Service, req: Request, res: Response, name: string): Promise<void> {
  await tokens.revoke(name);
  contextOf(req).subject = name;
  sendJson(res, 200, { ok: true, name, message: "the token is revoked" });
}

export async function listTokens({ tokens }: Service, _req: Request, res: Response): Promise<void> {
  await tokens.readMissed();
  sendJson(res, 200, { tokens: tokens.list() });
}

export function showSelf({ tokens }: Service, req: Request, res: Response): void {
  const caller = callerOf(req);
  sendJson(res, 200, caller === "root" ? rootToken : tokens.show(caller));
}

const rootToken = { name: rootName, can: scopes, paths: [], createdAt: null, expiresAt: null, lastUsedAt: null };

function sendNewToken(req: Request, res: Response, { text, shown }: NewToken): void {
  contextOf(req).subject = shown.name;
  sendJson(res, 200, { ok: true, token: text, ...shown });
}
