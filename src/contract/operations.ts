/** Table of operations: request, response and errors of each endpoint. */
import type { ErrorCode } from "../errors.js";
import type { Schema } from "./json-schema.js";
import type { ResponseName } from "./named-schemas.js";

export type Tag = "vault" | "secrets" | "server";

export type Operation = {
  readonly id: string;
  readonly method: "get" | "put" | "post" | "delete";
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description: string;
  /** No token is required. */
  readonly open?: true;
  readonly parameters?: readonly string[];
  readonly body?: { readonly schema: string; readonly example: Schema };
  readonly response: { readonly schema: ResponseName | Schema; readonly description: string; readonly example: Schema };
  /** Besides those of every operation that needs a token. */
  readonly errors: readonly ErrorCode[];
};

const passphrase = "seven words that no one else would guess";
const path = "app/db/password";
const metadata = { type: "password", description: "the application's database" };
const times = { createdAt: "2026-03-01T12:00:00.000Z", updatedAt: "2026-03-01T12:00:00.000Z" };
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
      "changes nothing. After 10 wrong passphrases within a minute, unlock is refused for 5 minutes for this address; all loopback addresses count as one.",
    body: { schema: "UnlockRequest", example: { passphrase } },
    response: {
      schema: "Acknowledgement",
      description: "The vault is unlocked.",
      example: { ok: true, message: "the vault is unlocked" },
    },
    errors: ["VAULT_LOCKED", "INTERNAL"],
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
    description: "Needs no token, ignores a wrong one, and is never rate-limited.",
    open: true,
    response: {
      schema: "VaultStatus",
      description: "The vault's state.",
      example: {
        initialized: true,
        locked: false,
        secretCount: 6,
        vaultPath,
        idleTimeoutMs: 900_000,
        lastActivity: times.updatedAt,
        serverRunning: true,
        port: 13_100,
      },
    },
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
    id: "list",
    method: "get",
    path: "/v1/secrets",
    tag: "secrets",
    summary: "List secrets without their values",
    description:
      "Ascending by the UTF-8 bytes of the path. `GET /v1/secrets/` is the same. A secret whose file is damaged is listed " +
      "under `damaged` and does not hide the others.",
    parameters: ["prefix", "after", "limit"],
    response: {
      schema: "SecretList",
      description: "The matching secrets.",
      example: { entries: [{ path, metadata, ...times }] },
    },
    errors: ["VAULT_LOCKED", "INTERNAL"],
  },
  {
    id: "get",
    method: "get",
    path: "/v1/secrets/{path}",
    tag: "secrets",
    summary: "Read a secret with its value",
    description: "Decrypts the value and returns it.",
    parameters: ["path"],
    response: {
      schema: "Secret",
      description: "The secret.",
      example: { path, value: "s3cr3t", metadata, ...times },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "put",
    method: "put",
    path: "/v1/secrets/{path}",
    tag: "secrets",
    summary: "Store a secret",
    description:
      "Creates the secret or replaces its value and metadata; omitted fields disappear, `createdAt` stays. The response is " +
      "sent once the write would survive a power cut. A damaged secret is not overwritten: delete it first.",
    parameters: ["path"],
    body: { schema: "PutRequest", example: { value: "s3cr3t", ...metadata } },
    response: {
      schema: "Stored",
      description: "The secret is stored.",
      example: { ok: true, path, bytes: 6, metadata },
    },
    errors: ["VAULT_LOCKED", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "delete",
    method: "delete",
    path: "/v1/secrets/{path}",
    tag: "secrets",
    summary: "Delete a secret permanently",
    description: "The secret's file is removed before the response is sent.",
    parameters: ["path"],
    response: {
      schema: "Deleted",
      description: "The secret is deleted.",
      example: { ok: true, path, message: "the secret is deleted" },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "INTEGRITY"],
  },
];
