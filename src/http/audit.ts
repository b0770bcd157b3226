/** Handlers of the audit log: its records, and the check of its checkpoints. */
import type { Request, Response } from "express";
import { readCheckpoints } from "../audit/checkpoint-request.js";
import { VaultError } from "../errors.js";
import { readBody } from "./body.js";
import type { Service } from "./endpoint.js";
import { ownMemory } from "./memory.js";
import { callerOf, queryOf } from "./request.js";
import { sendJson } from "./response.js";

const defaultLimit = 100;
const maxBodyBytes = 1024 * 1024;

export async function readAudit({ audit, tokens }: Service, req: Request, res: Response): Promise<void> {
  const caller = callerOf(req);
  if (caller !== "root") tokens.mustBeGenuine(caller);
  const parameters = queryOf(req, ["after", "limit"]);
  const after = numberOf(parameters.get("after"), "after", 0, 999_999_999_999_999) ?? 0;
  const limit = numberOf(parameters.get("limit"), "limit", 1, 1000) ?? defaultLimit;
  if (audit === null)
    throw new VaultError("NOT_FOUND", "the audit log is off: start the server with --audit changes or all");
  const { records, head } = await audit.read(after, limit);
  sendJson(res, 200, { records, ...(head && { head }) });
}

export async function verifyAudit({ vault }: Service, req: Request, res: Response): Promise<void> {
  vault.mustBeUnlocked();
  const checkpoints = readCheckpoints(await readBody(req, res, maxBodyBytes, ownMemory));
  sendJson(res, 200, { verdicts: await vault.records.verifyCheckpoints(checkpoints) });
}

/** Returns null for a missing parameter. @throws VaultError BAD_REQUEST */
function numberOf(text: string | undefined, name: string, min: number, max: number): number | null {
  if (text === undefined) return null;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new VaultError("BAD_REQUEST", `the parameter ${name} must be a whole number from ${min} to ${max}`);
}
