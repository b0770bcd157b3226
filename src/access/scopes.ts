/** Scopes of client tokens: what each endpoint needs. */
import { VaultError } from "../errors.js";

export const scopes = ["list", "get", "put", "delete", "lock", "unlock", "metrics", "audit"] as const;
export type Scope = (typeof scopes)[number];

/** `any`: every valid token; `root`: the root token alone; a list: any of these, and the body decides. */
type Need = Scope | readonly Scope[] | "any" | "root";

/**
 * Every endpoint, by method and route. DANGER: one that is not here is refused for client tokens; a test compares this
 * table with the endpoints that are served.
 */
export const needs: Readonly<Record<string, Need>> = {
  "GET /v1/status": "any",
  "GET /v1/openapi.json": "any",
  "GET /v1/tokens/self": "any",
  "GET /v1/audit": "audit",
  "POST /v1/audit/verify": "audit",
  "POST /v1/init": "root",
  "GET /v1/metrics": "metrics",
  "POST /v1/unlock": "unlock",
  "POST /v1/lock": "lock",
  "POST /v1/shutdown": "root",
  "POST /v1/snapshot": "root",
  "POST /v1/passphrase": "root",
  "POST /v1/rotate": "root",
  "GET /v1/keys": "root",
  "POST /v1/keys": "root",
  "DELETE /v1/keys/:id": "root",
  "GET /v1/tokens": "root",
  "POST /v1/tokens": "root",
  "POST /v1/tokens/:name": "root",
  "DELETE /v1/tokens/:name": "root",
  "GET /v1/secrets": "list",
  "GET /v1/secrets/:path": "get",
  "PUT /v1/secrets/:path": "put",
  "DELETE /v1/secrets/:path": "delete",
  "GET /v1/versions/:path": "list",
  "GET /v1/versions/:path?version": "get",
  "POST /v1/versions/:path": "put",
  "DELETE /v1/versions/:path": "delete",
  "POST /v1/batch": ["get", "put", "delete"],
};

/** The route patterns of all endpoints, each once. */
export const routes: readonly string[] = [
  ...new Set(Object.keys(needs).map((row) => row.replace(/^\w+ /, "").replace(/\?.*$/, ""))),
];

/** What each operation of a batch needs: all of these. */
const batchNeeds = {
  get: ["get"],
  put: ["put"],
  delete: ["delete"],
  move: ["put", "delete"],
  copy: ["get", "put"],
} satisfies Readonly<Record<string, readonly Scope[]>>;

export type BatchKind = keyof typeof batchNeeds;

/** What is known of a client token. */
type Holder = { readonly name: string; readonly can: readonly Scope[] };

/** `operation`: a key of the table. @throws VaultError FORBIDDEN */
export function requireScope(holder: Holder, operation: string): void {
  const need = (Object.hasOwn(needs, operation) && needs[operation]) || "root";
  if (need === "any") return;
  if (need === "root") throw new VaultError("FORBIDDEN", "only the root token can do this: use it instead");
  const wanted = typeof need === "string" ? [need] : need;
  if (!wanted.some((scope) => holder.can.includes(scope))) throw forbidden(holder, wanted.join(" or "));
}

/** @throws VaultError FORBIDDEN */
export function requireBatchScopes(holder: Holder, kind: BatchKind): void {
  const wanted = batchNeeds[kind];
  if (!wanted.every((scope) => holder.can.includes(scope))) throw forbidden(holder, wanted.join(" and "));
}

function forbidden({ name, can }: Holder, wanted: string): VaultError {
  return new VaultError("FORBIDDEN", `the token ${name} can only ${can.join(", ")}: use a token that can ${wanted}`);
}
