/** Handlers of secrets: one, its versions, the list and batches. */
import type { Request, Response } from "express";
import { type BatchKind, requireBatchScopes } from "../access/scopes.js";
import { VaultError } from "../errors.js";
import type { BatchItem } from "../observer.js";
import { isSecretPath } from "../paths/secret-path.js";
import type { BatchPermit } from "../vault/batch-plan.js";
import type { ListPart, ListQuery } from "../vault/list.js";
import { maxFieldsBytes, maxPathsBytes, ownMemory, readBody, sharedMemory } from "./body.js";
import type { Service } from "./endpoint.js";
import {
  authorizeBody,
  authorizePath,
  requireValidToken,
  secretPathOf,
  seesMetadata,
  stillValid,
  visibleRanges,
} from "./guards.js";
import { callerOf, conditionOf, contextOf, queryOf, type RequestContext, unlessTagged } from "./request.js";
import { parsed, sendBytes, sendJson, sendNotModified, sendParts, sendRead } from "./response.js";

export async function put(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  const body = await readBody(req, res, service.maxBodyBytes, ownMemory);
  await authorizeBody(req, path, () => service.vault.secrets.validatePut(path, body));
  const { response, tag } = await service.vault.secrets.put(path, body, condition, stillValid(req));
  sendBytes(res, 200, [response], tag);
}

export async function get(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const unless = unlessTagged(req);
  authorizePath(req, path);
  const { response, tag } = await service.vault.secrets.get(path, unless);
  requireValidToken(req, ...(response === null ? [] : [response]));
  if (response === null) sendNotModified(res, tag);
  else sendBytes(res, 200, [response], tag);
}

export async function remove(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  authorizePath(req, path);
  await service.vault.secrets.remove(path, condition, stillValid(req));
  sendJson(res, 200, { ok: true, path, message: "the secret is deleted" });
}

export async function history(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  authorizePath(req, path);
  sendRead(req, res, await service.vault.secrets.history(path));
}

export async function version(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const number = versionOf(req);
  authorizePath(req, path);
  sendRead(req, res, await service.vault.secrets.version(path, number));
}

export async function destroyVersion(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  const number = versionOf(req);
  authorizePath(req, path);
  const permit = stillValid(req);
  await service.vault.secrets.changeVersions(path, [number], "destroy", { condition, permit });
  sendJson(res, 200, { ok: true, path, message: `version ${number} is destroyed` });
}

/** Returns the number in the query, and records it for the report. @throws VaultError BAD_REQUEST */
function versionOf(req: Request): number {
  const number = queryOf(req, ["version"]).get("version") ?? "";
  if (!/^[1-9]\d{0,14}$/.test(number)) {
    throw new VaultError("BAD_REQUEST", "the parameter version must be a whole number from 1 to 999999999999999");
  }
  contextOf(req).version = Number(number);
  return Number(number);
}

export async function changeMetadata(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  const body = await readBody(req, res, maxFieldsBytes, ownMemory);
  await authorizeBody(req, path, () => service.vault.secrets.validateMetadata(path, body));
  const { response, tag } = await service.vault.secrets.changeMetadata(path, body, condition, stillValid(req));
  sendMetadata(req, res, response, tag);
}

function sendMetadata(req: Request, res: Response, response: Uint8Array, etag: string): void {
  if (seesMetadata(req)) return void sendBytes(res, 200, [response], etag);
  sendBytes(res, 200, [jsonBytes({ ...parsed(response), metadata: {} })], etag);
}

function jsonBytes(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

export async function undo(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  const body = await readBody(req, res, maxFieldsBytes, ownMemory);
  await authorizeBody(req, path, () => service.vault.secrets.validateUndo(path, body));
  const { response, tag } = await service.vault.secrets.undo(path, body, condition, stillValid(req));
  sendMetadata(req, res, response, tag);
}

export async function prune(service: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const condition = conditionOf(req);
  authorizePath(req, path);
  const removed = await service.vault.secrets.prune(path, condition, stillValid(req));
  const message = removed === 1 ? "1 earlier version is deleted" : `${removed} earlier versions are deleted`;
  sendJson(res, 200, { ok: true, path, message });
}

export async function batch(service: Service, req: Request, res: Response): Promise<void> {
  const body = await readBody(req, res, mostBatchBytes(service, req), sharedMemory);
  const permit = {
    kind: permittedKind(req),
    path: (path: string) => authorizePath(req, path),
    permitted: operationRecorder(req),
    still: stillValid(req),
  };
  const response = await service.vault.secrets.batch(body, permit);
  const operations = contextOf(req).operations ?? [];
  if (operations.every(({ kind }) => kind === "get")) requireValidToken(req, response);
  sendBytes(res, 200, [seesMetadata(req) ? response : withoutMovedMetadata(response, operations)]);
}

/** A caller that cannot put sends only paths. */
function mostBatchBytes({ maxBatchBytes }: Service, req: Request): number {
  const caller = callerOf(req);
  const canPut = caller === "root" || caller.token.can.includes("put");
  return canPut ? maxBatchBytes : Math.min(maxBatchBytes, maxPathsBytes);
}

/** A move returns the metadata that the secret has. What a put returns was sent with it. */
function withoutMovedMetadata(response: Uint8Array, operations: readonly BatchItem[]): Uint8Array {
  if (!operations.some(({ kind }) => kind === "move")) return response;
  const { results, ...rest } = parsed(response) as { readonly results: readonly object[] };
  const shown = results.map((result, i) => (operations[i]?.kind === "move" ? { ...result, metadata: {} } : result));
  return jsonBytes({ ...rest, results: shown });
}

function permittedKind(req: Request): (kind: BatchKind) => void {
  const caller = callerOf(req);
  return (kind) => {
    if (caller !== "root") requireBatchScopes(caller.token, kind);
  };
}

/** Records the operations for the report. DANGER: not the steps, which hold the body. */
function operationRecorder(req: Request): BatchPermit["permitted"] {
  const operations: BatchItem[] = [];
  contextOf(req).operations = operations;
  return (step) => operations.push({ kind: step.kind, path: step.path, ...("to" in step && { to: step.to }) });
}

export function list(service: Service, req: Request, res: Response): Promise<void> {
  return sendList(req, res, (query) => service.vault.secrets.list(query));
}

type Listing = (query: ListQuery) => AsyncGenerator<ListPart, void, void>;

/** Streams a long list in parts. */
export async function sendList(req: Request, res: Response, listing: Listing): Promise<void> {
  const context = contextOf(req);
  const query = listQuery(req);
  context.prefix = canBeginPath(query.prefix) ? query.prefix : "";
  const parts = listing({ ...query, ...visibleRanges(req) });
  const { pieces, last, count } = (await parts.next()).value ?? { pieces: [], last: true, count: 0 };
  context.count = count;
  requireValidToken(req, ...pieces);
  if (last) sendBytes(res, 200, pieces);
  else await sendParts(res, pieces, counted(parts, count, context, stillValid(req)));
}

const maxListLimit = 1000;

function listQuery(req: Request): ListQuery {
  const parameters = queryOf(req, ["prefix", "after", "limit", "background"]);
  const limit = parameters.get("limit");
  if ((parameters.get("background") ?? "true") !== "true")
    throw new VaultError("BAD_REQUEST", "the parameter background is invalid: it must be true, or be left out");
  if (limit !== undefined && !/^(?:[1-9]\d{0,2}|1000)$/.test(limit)) {
    throw new VaultError("BAD_REQUEST", `the parameter limit must be a whole number from 1 to ${maxListLimit}`);
  }
  return {
    prefix: (parameters.get("prefix") ?? "").normalize("NFC"),
    after: (parameters.get("after") ?? "").normalize("NFC"),
    limit: limit === undefined ? null : Number(limit),
  };
}

/** DANGER: any other text must not get into the audit log; it may be a secret in the wrong place. */
export function canBeginPath(prefix: string): boolean {
  return isSecretPath(prefix) || isSecretPath(`${prefix}x`);
}

/** Counts the secrets for the report, from those of the first part on. A token that has ended gets no further part. */
async function* counted(
  parts: AsyncIterable<ListPart>,
  first: number,
  context: RequestContext,
  still: () => void,
): AsyncGenerator<ListPart, void, void> {
  let count = first;
  for await (const part of parts) {
    still();
    count += part.count;
    context.count = count;
    yield part;
  }
}
