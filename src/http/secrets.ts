/** Endpoints of secrets: one, its versions, the list and batches. */
import type { Caller } from "../access/credentials.js";
import { authorizePath, seesMetadata, visibleRanges } from "../access/rights.js";
import { type BatchKind, requireBatchScopes } from "../access/scopes.js";
import { change, read } from "../audit/record.js";
import { VaultError } from "../errors.js";
import type { BatchItem } from "../observer.js";
import { isSecretPath } from "../paths/secret-path.js";
import type { TaggedResponse } from "../vault/conditions.js";
import type { ListPart, ListQuery } from "../vault/list.js";
import { batch, fields, value } from "./body.js";
import {
  type BasicCall,
  bytes,
  endpoint,
  json,
  none,
  type Parts,
  parsed,
  secret,
  tagged,
  type Whole,
} from "./endpoint.js";
import { parseQuery } from "./routes.js";

/** Size limit for a metadata change, in bytes: 16 KiB of custom texts whose bytes may all be escaped, and the other members. */
const maxMetadataBytes = 128 * 1024;

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const secretRows = [
  endpoint({
    operation: "get", at: "GET /v1/secrets/:path", scope: "get", guard: "unlocked", audit: read("get"),
    subject: secret, body: null, conditional: "read", reads: true,
    async handle({ vault, path, unless }) {
      const { response, tag } = await vault.secrets.get(path, unless);
      return response === null ? { status: 304, pieces: [], etag: tag } : tagged({ response, tag });
    },
  }),
  endpoint({
    operation: "put", at: "PUT /v1/secrets/:path", scope: "put", guard: "unlocked", audit: change("put"),
    subject: secret, body: value, conditional: "change", reads: false,
    handle: async ({ vault, path, body, condition, permit }) => tagged(await vault.secrets.put(path, body, condition, permit)),
  }),
  endpoint({
    operation: "delete", at: "DELETE /v1/secrets/:path", scope: "delete", guard: "unlocked", audit: change("delete"),
    subject: secret, body: null, conditional: "change", reads: false,
    async handle({ vault, path, condition, permit }) {
      await vault.secrets.remove(path, condition, permit);
      return json({ ok: true, path, message: "the secret is deleted" });
    },
  }),
  endpoint({
    operation: "changeMetadata", at: "PATCH /v1/metadata/:path", scope: "put", guard: "unlocked", audit: change("metadata"),
    subject: secret, body: fields(maxMetadataBytes), conditional: "change", reads: false,
    handle: async ({ vault, path, body, condition, permit, caller }) =>
      withoutForeign(caller, await vault.secrets.changeMetadata(path, body, condition, permit)),
  }),
  endpoint({
    operation: "versions", at: "GET /v1/versions/:path", scope: "list", guard: "unlocked", audit: read("versions"),
    subject: secret, body: null, conditional: false, reads: true,
    handle: async ({ vault, path }) => bytes(await vault.secrets.history(path)),
  }),
  endpoint({
    operation: "versions", at: "GET /v1/versions/:path?version", scope: "get", guard: "unlocked", audit: read("get-version"),
    subject: secret, body: null, conditional: false, query: readVersion, reads: true,
    async handle({ vault, path, query: version, recorded }) {
      recorded.version = version;
      return bytes(await vault.secrets.version(path, version));
    },
  }),
  endpoint({
    operation: "undo", at: "POST /v1/versions/:path", scope: "put", guard: "unlocked", audit: change("undo"),
    subject: secret, body: fields(), conditional: "change", reads: false,
    handle: async ({ vault, path, body, condition, permit, caller }) =>
      withoutForeign(caller, await vault.secrets.undo(path, body, condition, permit)),
  }),
  endpoint({
    operation: "prune", at: "DELETE /v1/versions/:path", scope: "delete", guard: "unlocked", audit: change("prune"),
    subject: secret, body: null, conditional: "change", reads: false,
    async handle({ vault, path, condition, permit }) {
      const removed = await vault.secrets.prune(path, condition, permit);
      const message = removed === 1 ? "1 earlier version is deleted" : `${removed} earlier versions are deleted`;
      return json({ ok: true, path, message });
    },
  }),
  endpoint({
    operation: "prune", at: "DELETE /v1/versions/:path?version", scope: "delete", guard: "unlocked", audit: change("destroy"),
    subject: secret, body: null, conditional: "change", query: readVersion, reads: false,
    async handle({ vault, path, condition, permit, query: version, recorded }) {
      recorded.version = version;
      await vault.secrets.changeVersions(path, [version], "destroy", { condition, permit });
      return json({ ok: true, path, message: `version ${version} is destroyed` });
    },
  }),
  endpoint({
    operation: "batch", at: "POST /v1/batch", scope: ["get", "put", "delete"], guard: "unlocked", audit: change("batch"),
    subject: none, body: batch, conditional: false, reads: true,
    handle: runBatch,
  }),
  ...(["/v1/secrets", "/v1/secrets/"] as const).flatMap((path) => [
    listRow(`GET ${path}`, "unlocked"),
    listRow(`GET ${path}?background`, "background"),
  ]),
];

function listRow(at: `GET /v1/${string}`, guard: "unlocked" | "background") {
  return endpoint({
    ...{ operation: "list", at, scope: "list", guard, audit: read("list") },
    ...{ subject: none, body: null, conditional: false, query: readListQuery, reads: true },
    handle: (call: ListCall) => listParts(call, (query) => call.vault.secrets.list(query)),
  });
}

/** @throws VaultError BAD_REQUEST */
function readVersion(text: string): number {
  const number = parseQuery(text, ["version"]).get("version") ?? "";
  if (/^[1-9]\d{0,14}$/.test(number)) return Number(number);
  throw new VaultError("BAD_REQUEST", "the parameter version must be a whole number from 1 to 999999999999999");
}

/** The response of a change holds the secret's metadata, which the caller may not have sent. */
function withoutForeign(caller: Caller, changed: TaggedResponse): Whole {
  if (seesMetadata(caller)) return tagged(changed);
  return { ...json({ ...parsed(changed.response), metadata: {} }), etag: changed.tag };
}

type BatchCall = BasicCall & { readonly body: Uint8Array<SharedArrayBuffer>; readonly caller: Caller };

/** DANGER: what is recorded are not the steps, which hold the body. */
async function runBatch({ vault, body, caller, permit, recorded }: BatchCall): Promise<Whole> {
  const operations: BatchItem[] = [];
  recorded.operations = operations;
  const response = await vault.secrets.batch(body, {
    kind: (kind) => requireKind(caller, kind),
    path: (path) => authorizePath(caller, path),
    permitted: (step) => operations.push({ kind: step.kind, path: step.path, ...("to" in step && { to: step.to }) }),
    still: permit,
  });
  const isDone = operations.some(({ kind }) => kind !== "get");
  return { ...bytes(seesMetadata(caller) ? response : withoutMovedMetadata(response, operations)), isDone };
}

function requireKind(caller: Caller, kind: BatchKind): void {
  if (caller !== "root") requireBatchScopes(caller.token, kind);
}

/** A move returns the metadata that the secret has; a put returns the metadata that was sent with it. */
function withoutMovedMetadata(response: Uint8Array, operations: readonly BatchItem[]): Uint8Array {
  if (!operations.some(({ kind }) => kind === "move")) return response;
  const { results, ...rest } = parsed(response) as { readonly results: readonly object[] };
  const shown = results.map((result, i) => (operations[i]?.kind === "move" ? { ...result, metadata: {} } : result));
  return Buffer.from(JSON.stringify({ ...rest, results: shown }));
}

type ListCall = BasicCall & { readonly caller: Caller; readonly query: ListQuery };

/** Lists what the caller may see. */
export function listParts(
  { caller, query, recorded }: ListCall,
  listing: (query: ListQuery) => AsyncGenerator<ListPart, void, void>,
): Parts {
  recorded.prefix = recordablePrefix(query.prefix);
  return { parts: listing({ ...query, ...visibleRanges(caller) }) };
}

const maxListLimit = 1000;

/** @throws VaultError BAD_REQUEST */
export function readListQuery(text: string): ListQuery {
  const parameters = parseQuery(text, ["prefix", "after", "limit", "background"]);
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

/** Returns "" for what no path can begin with. DANGER: such a text may be a secret in the wrong place. */
export function recordablePrefix(prefix: string): string {
  return isSecretPath(prefix) || isSecretPath(`${prefix}x`) ? prefix : "";
}
