/** Names of the HTTP API, generated from openapi.yaml by `npm run contract`. */

export const secretTypes = ["oauth-token", "api-key", "password", "certificate", "other"] as const;

/** What a client token may do. */
export const scopes = [
  "list",
  "get",
  "put",
  "delete",
  "lock",
  "unlock",
  "metrics",
  "audit",
  "encrypt",
  "decrypt",
  "sign",
  "use",
] as const;

export const defaultScopes = ["list", "get"] as const;
