/** Operations of the HTTP API, generated from openapi.yaml by `npm run contract`. */

export const operations = {
  init: { method: "POST", path: "/v1/init" },
  unlock: { method: "POST", path: "/v1/unlock" },
  lock: { method: "POST", path: "/v1/lock" },
  status: { method: "GET", path: "/v1/status" },
  shutdown: { method: "POST", path: "/v1/shutdown" },
  snapshot: { method: "POST", path: "/v1/snapshot" },
  openapi: { method: "GET", path: "/v1/openapi.json" },
  metrics: { method: "GET", path: "/v1/metrics" },
  changePassphrase: { method: "POST", path: "/v1/passphrase" },
  keys: { method: "GET", path: "/v1/keys" },
  createKey: { method: "POST", path: "/v1/keys" },
  deleteKey: { method: "DELETE", path: "/v1/keys/{id}" },
  rotate: { method: "POST", path: "/v1/rotate" },
  readAudit: { method: "GET", path: "/v1/audit" },
  verifyAudit: { method: "POST", path: "/v1/audit/verify" },
  createToken: { method: "POST", path: "/v1/tokens" },
  listTokens: { method: "GET", path: "/v1/tokens" },
  showSelf: { method: "GET", path: "/v1/tokens/self" },
  rotateToken: { method: "POST", path: "/v1/tokens/{name}" },
  revokeToken: { method: "DELETE", path: "/v1/tokens/{name}" },
  list: { method: "GET", path: "/v1/secrets" },
  get: { method: "GET", path: "/v1/secrets/{path}" },
  put: { method: "PUT", path: "/v1/secrets/{path}" },
  delete: { method: "DELETE", path: "/v1/secrets/{path}" },
  batch: { method: "POST", path: "/v1/batch" },
  versions: { method: "GET", path: "/v1/versions/{path}" },
  undo: { method: "POST", path: "/v1/versions/{path}" },
  prune: { method: "DELETE", path: "/v1/versions/{path}" },
} as const;

export type OperationId = keyof typeof operations;
