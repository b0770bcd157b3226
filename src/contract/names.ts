/** Names of the HTTP API, generated from openapi.yaml by `npm run contract`. */

export const secretTypes = ["oauth-token", "api-key", "password", "certificate", "other"] as const;

export const transitKeyTypes = [
  "aes256-gcm96",
  "ed25519",
  "ecdsa-p256",
  "x25519",
  "rsa-2048",
  "rsa-4096",
  "hmac",
] as const;

/** Operations that a client token can allow. */
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
