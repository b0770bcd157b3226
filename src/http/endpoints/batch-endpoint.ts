/** Endpoint of batches. */
import type { Request, Response } from "express";
import { type BatchKind, requireBatchScopes } from "../../access/scopes.js";
import type { BatchItem } from "../../observer.js";
import type { BatchPermit } from "../../vault/batch-plan.js";
import type { Service } from "../endpoint.js";
import { mustBeWithin, mustStillBeValid } from "../permission.js";
import { sharedMemory } from "../plaintext-hygiene.js";
import { readBody } from "../request-body.js";
import { callerOf, contextOf } from "../request-context.js";
import { sendBytes } from "../responses.js";

export async function batch(service: Service, req: Request, res: Response): Promise<void> {
  const body = await readBody(req, res, service.maxBatchBytes, sharedMemory);
  mustStillBeValid(service, req, body);
  const permit = { kind: permittedKind(req), path: (path: string) => mustBeWithin(req, path), permitted: noted(req) };
  sendBytes(res, 200, [await service.vault.secrets.batch(body, permit)]);
}

/** Notes the operations for the observers. DANGER: not the steps, which hold the body. */
function noted(req: Request): BatchPermit["permitted"] {
  const operations: BatchItem[] = [];
  contextOf(req).operations = operations;
  return (step) => operations.push({ kind: step.kind, path: step.path, ...("to" in step && { to: step.to }) });
}

function permittedKind(req: Request): (kind: BatchKind) => void {
  const caller = callerOf(req);
  return (kind) => {
    if (caller !== "root") requireBatchScopes(caller.token, kind);
  };
}
