/** Events of the audit log, generated from openapi.yaml by `npm run contract`. */

/** Event of a request that changes something, which every log has. */
// biome-ignore format: the generator writes one group or record a line
export type ChangeEvent =
  | "init" | "unlock" | "lock" | "passphrase" | "rotate" | "key-create" | "key-delete" | "snapshot"
  | "put" | "metadata" | "delete" | "undo" | "prune" | "undelete" | "destroy" | "trash" | "untrash" | "batch"
  | "token-create" | "token-rotate" | "token-revoke" | "key-change" | "key-export" | "use-change" | "use-login" | "approve"
  | "shutdown" | "review" | "review-storm";

/** Event of a request that only reads, which a log of mode `all` has. */
// biome-ignore format: the generator writes one group or record a line
export type ReadEvent =
  | "get" | "get-version" | "list" | "versions" | "list-trash" | "check" | "otp"
  | "encrypt" | "decrypt" | "rewrap" | "sign" | "verify" | "hmac" | "datakey";

/** Record of the server's own. */
// biome-ignore format: the generator writes one group or record a line
export type ServerRecord =
  | { readonly event: "start" }
  | { readonly event: "stop" }
  | { readonly event: "locked"; readonly reason: string }
  | { readonly event: "lockout"; readonly credential: string; readonly address?: string; readonly count?: number }
  | { readonly event: "use-begin"; readonly token: string; readonly path: string; readonly host: string; readonly method: string }
  | { readonly event: "use"; readonly token: string; readonly path: string; readonly host: string; readonly method: string; readonly status: number; readonly code?: string }
  | { readonly event: "destroy"; readonly path: string; readonly reason: string }
  | { readonly event: "gap"; readonly count: number; readonly since: string }
  | { readonly event: "checkpoint"; readonly reason: string; readonly from: number; readonly key: string; readonly mac: string }
  | { readonly event: "mismatch"; readonly reason: string };
