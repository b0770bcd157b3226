/** Table of operations: request, response and errors of each endpoint. */
import type { Operation } from "./operation.js";
import { auditOperations } from "./operations-on-audit.js";
import { keyOperations } from "./operations-on-keys.js";
import { secretOperations } from "./operations-on-secrets.js";
import { tokenOperations } from "./operations-on-tokens.js";

const passphrase = "seven words that no one else would guess";
const lastActivity = "2026-03-01T12:00:00.000Z";
const vaultPath = "/home/me/.local/share/strongroom/vault";

export const operations: readonly Operation[] = [
  {
    id: "init",
    method: "post",
    path: "/v1/init",
    tag: "vault",
    summary: "Create a vault and unlock it",
    description:
      "Creates a new, empty vault under the passphrase. With `force`, an existing vault is replaced atomically and kept " +
      "in a directory that the message names, under its old passphrase; on failure it stays unchanged.",
    body: { schema: "InitRequest", example: { passphrase } },
    response: {
      schema: "Initialized",
      description: "The vault is created and unlocked.",
      example: { ok: true, message: "the vault is initialized and unlocked", vaultPath },
    },
    errors: ["VAULT_LOCKED", "ALREADY_EXISTS", "INTERNAL"],
  },
  {
    id: "unlock",
    method: "post",
    path: "/v1/unlock",
    tag: "vault",
    summary: "Unlock the vault",
    description:
      "Checks the passphrase even when the vault is already unlocked; a wrong one (401 with `credential: passphrase`) " +
      "changes nothing. The text of a key will do, too. After 10 wrong passphrases within a minute, every endpoint that " +
      "takes one is refused for 5 minutes for this address; all loopback addresses count as one.",
    body: { schema: "UnlockRequest", example: { passphrase } },
    response: {
      schema: "Acknowledgement",
      description: "The vault is unlocked.",
      example: { ok: true, message: "the vault is unlocked" },
    },
    errors: ["VAULT_LOCKED", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "lock",
    method: "post",
    path: "/v1/lock",
    tag: "vault",
    summary: "Lock the vault",
    description:
      "Wipes the master key from memory, then responds. Succeeds also when the vault is locked or not initialized.",
    response: {
      schema: "Acknowledgement",
      description: "The vault is locked.",
      example: { ok: true, message: "the vault is locked" },
    },
    errors: [],
  },
  {
    id: "status",
    method: "get",
    path: "/v1/status",
    tag: "vault",
    summary: "Read the vault's state",
    description:
      "Needs no token, ignores a wrong one, and is never rate-limited. With `require=unlocked` the status is 503 unless " +
      "the vault is unlocked: that is for readiness probes.",
    open: true,
    parameters: ["require"],
    response: {
      schema: "VaultStatus",
      description: "The vault's state.",
      example: {
        initialized: true,
        locked: false,
        secretCount: 6,
        vaultPath,
        idleTimeoutMs: 900_000,
        lastActivity,
        lastLock: { reason: "idle", at: "2026-03-01T09:30:00.000Z" },
        serverRunning: true,
        version: "0.1.0",
        port: 13_100,
      },
    },
    unready: "`require=unlocked` was asked for, and the vault is not unlocked.",
    errors: [],
  },
  {
    id: "shutdown",
    method: "post",
    path: "/v1/shutdown",
    tag: "server",
    summary: "Lock the vault and stop the server",
    description: "Responds, then locks the vault, waits at most 5 seconds for running requests, and ends the process.",
    response: {
      schema: "Acknowledgement",
      description: "The server is stopping.",
      example: { ok: true, message: "the vault is being locked and the server is stopping" },
    },
    errors: [],
  },
  {
    id: "snapshot",
    method: "post",
    path: "/v1/snapshot",
    tag: "server",
    summary: "Take a snapshot for a backup",
    description:
      "Links all sealed secrets of one moment, and the header, into a new directory beside the vault, locked or not; " +
      "writes continue meanwhile. It contains only ciphertext. The caller copies it, then removes it. There is one " +
      "at a time: the next replaces it unless a backup is reading it, and any leftover is removed after an hour or at the " +
      "next start of the server.",
    parameters: ["reader"],
    response: {
      schema: "Snapshot",
      description: "The snapshot is taken.",
      example: {
        ok: true,
        message: "the snapshot contains only ciphertext: copy it, then remove it",
        directory: `${vaultPath}/snapshot-5f0c2c6e7a3c4b52`,
        secretCount: 6,
      },
    },
    errors: [],
  },
  {
    id: "openapi",
    method: "get",
    path: "/v1/openapi.json",
    tag: "server",
    summary: "Read this document",
    description: "This document, with the limits of this server.",
    anyToken: true,
    response: {
      schema: {
        type: "object",
        description: "An OpenAPI document.",
        properties: {
          openapi: { type: "string", pattern: "^3\\.1\\.", description: "The version of OpenAPI." },
          info: { type: "object", additionalProperties: true, description: "The name and version of this API." },
          paths: { type: "object", additionalProperties: true, description: "The operations." },
        },
        required: ["openapi", "info", "paths"],
        additionalProperties: true,
      },
      description: "The document.",
      example: { openapi: "3.1.1", info: {}, paths: {} },
    },
    errors: [],
  },
  {
    id: "metrics",
    method: "get",
    path: "/v1/metrics",
    tag: "server",
    summary: "Read the metrics",
    description:
      "Counters, histograms and gauges for Prometheus, locked or not: with the root token, or a client token with `metrics`. " +
      "No label has a path, a name of a token, or an address.",
    response: {
      type: "text/plain",
      schema: { type: "string", description: "Prometheus' text format, version 0.0.4." },
      description: "The metrics.",
      example:
        "# HELP strongroom_vault_unlocked 1 while the vault is unlocked.\n# TYPE strongroom_vault_unlocked gauge\nstrongroom_vault_unlocked 1\n",
    },
    errors: [],
  },
  ...keyOperations,
  ...auditOperations,
  ...tokenOperations,
  ...secretOperations,
];
