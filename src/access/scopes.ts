/** Scopes of client tokens: what each endpoint needs. */
import { VaultError } from "../errors.js";

export const scopes = ["list", "get", "put", "delete", "lock", "unlock", "metrics", "audit"] as const;
export type Scope = (typeof scopes)[number];

/** `any`: every valid token; `root`: the root token alone. */
type Need = Scope | "any" | "root";

/**
 * Every endpoint, by method and route. DANGER: one that is not here is refused for client tokens; a test compares this
 * table with the endpoints that are served.
 */
export const needs: Readonly<Record<string, Need>> = {
  "GET /v1/status": "any",
  "GET /v1/openapi.json": "any",
  "GET /v1/tokens/self": "any",
  "POST /v1/init": "root",
  "POST /v1/unlock": "unlock",
  "POST /v1/lock": "lock",
  "POST /v1/shutdown": "root",
  "POST /v1/snapshot": "root",
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
};

/** What is known of a client token. */
type Holder = { readonly name: string; readonly can: readonly Scope[] };

/** `operation`: a key of the table. @throws VaultError FORBIDDEN */
export function requireScope({ name, can }: Holder, operation: string): void {
  const need = (Object.hasOwn(needs, operation) && needs[operation]) || "root";
  if (need === "any") return;
  if (need === "root") throw new VaultError("FORBIDDEN", "only the root token can do this: use it instead");
  if (can.includes(need)) return;
  const problem = `the token ${name} can only ${can.join(", ")}`;
  throw new VaultError("FORBIDDEN", `${problem}: use a token that can ${need}`);
}
