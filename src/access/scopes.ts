/** Scopes of client tokens. */
import type { scopes } from "../contract/names.js";
import { VaultError } from "../errors.js";

export type Scope = (typeof scopes)[number];

/**
 * Access that an endpoint needs: `open`: no token, since it tells only the state; `login`: a body with the credential
 * that is exchanged for a token; `any`: every valid token; `some`: a token with at least one scope; `root`: only the
 * root token; `page`: that or the review page's; a list: any of these scopes, and the body decides.
 */
export type Need = Scope | readonly Scope[] | "open" | "login" | "any" | "some" | "root" | "page";

/** Scopes that each operation of a batch needs: all of these. */
const batchNeeds = {
  get: ["get"],
  put: ["put"],
  delete: ["delete"],
  trash: ["delete"],
  move: ["put", "delete"],
  copy: ["get", "put"],
} satisfies Readonly<Record<string, readonly Scope[]>>;

export type BatchKind = keyof typeof batchNeeds;

/** Name and scopes of a client token. */
type Holder = { readonly name: string; readonly can: readonly Scope[] };

/** `session`: the review page's. @throws VaultError FORBIDDEN */
export function requireScope(caller: { readonly token: Holder; readonly session?: true }, need: Need): void {
  const { token: holder, session } = caller;
  if (need === "any" || need === "open" || need === "login" || (need === "page" && session)) return;
  if (need === "root" || need === "page")
    throw new VaultError("FORBIDDEN", "only the root token can do this: use it instead");
  if (need === "some") {
    if (holder.can.length > 0) return;
    throw forbidden(holder, "any of them");
  }
  const wanted = typeof need === "string" ? [need] : need;
  if (!wanted.some((scope) => holder.can.includes(scope))) throw forbidden(holder, wanted.join(" or "));
}

/** @throws VaultError FORBIDDEN */
export function requireBatchScopes(holder: Holder, kind: BatchKind): void {
  const wanted = batchNeeds[kind];
  if (!wanted.every((scope) => holder.can.includes(scope))) throw forbidden(holder, wanted.join(" and "));
}

function forbidden({ name, can }: Holder, wanted: string): VaultError {
  const rights = can.length === 0 ? "has no scopes" : `may only ${listed(can)}`;
  return new VaultError("FORBIDDEN", `token ${name} ${rights}; this needs ${wanted}`);
}

function listed(scopesOfToken: readonly Scope[]): string {
  return scopesOfToken.join(", ").replace(/, ([^,]+)$/, " and $1");
}
