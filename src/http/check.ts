/** Handler of checks: what is weak, equal, breached, or to be searched for, without a value. */
import type { Request, Response } from "express";
import { assessParts } from "../../workers/protocol.js";
import { membersOf } from "../access/token-request.js";
import { VaultError } from "../errors.js";
import type { CheckQuery } from "../vault/check.js";
import { ownMemory, readBody } from "./body.js";
import type { Service } from "./endpoint.js";
import { stillValid, visibleRanges } from "./guards.js";
import { contextOf } from "./request.js";
import { sendRead } from "./response.js";
import { canBeginPath } from "./secrets.js";

const maxBodyBytes = 16 * 1024;
const keyPattern = /^[A-Za-z0-9+/_-]{43}=?$/;
const mostEntries = 1000;

export async function check(service: Service, req: Request, res: Response): Promise<void> {
  const query = readCheckRequest(await readBody(req, res, maxBodyBytes, ownMemory));
  const context = contextOf(req);
  context.prefix = canBeginPath(query.prefix) ? query.prefix : "";
  const permit = stillValid(req);
  permit();
  const { pieces, count } = await service.vault.secrets.check({ ...query, ...visibleRanges(req), permit });
  context.count = count;
  sendRead(req, res, ...pieces);
}

/** @throws VaultError BAD_REQUEST that names the rule */
function readCheckRequest(body: Uint8Array): CheckQuery {
  const { key, parts = ["strength", "reuse"], prefix = "", after = "", limit = mostEntries } = membersOf(body);
  if (typeof key !== "string" || !keyPattern.test(key)) throw invalid("key must be 32 random bytes in base64");
  if (!Array.isArray(parts) || parts.length === 0 || !parts.every((part) => assessParts.includes(part)))
    throw invalid(`parts must list some of ${assessParts.join(", ")}`);
  if (typeof prefix !== "string" || typeof after !== "string") throw invalid("prefix and after must be texts");
  if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 1 || limit > mostEntries)
    throw invalid(`limit must be a whole number from 1 to ${mostEntries}`);
  const bytes = new Uint8Array(new ArrayBuffer(32));
  bytes.set(Buffer.from(key, "base64").subarray(0, 32));
  return { key: bytes, parts, prefix: prefix.normalize("NFC"), after: after.normalize("NFC"), limit };
}

function invalid(rule: string): VaultError {
  return new VaultError("BAD_REQUEST", `the request is invalid: ${rule}`);
}
