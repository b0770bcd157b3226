/** Owns the table of operations: what each endpoint is for, what it takes, what it answers and which errors it knows. */
import type { ErrorCode } from "../errors.js";
import type { Schema } from "./json-schema.js";
import type { AnswerName } from "./named-schemas.js";

export type Tag = "vault" | "secrets" | "server";

export type Operation = {
  readonly id: string;
  readonly method: "get" | "put" | "post" | "delete";
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description: string;
  /** It needs no token. */
  readonly open?: true;
  readonly parameters?: readonly string[];
  readonly body?: { readonly schema: string; readonly example: Schema };
  readonly answer: { readonly schema: AnswerName | Schema; readonly description: string; readonly example: Schema };
  /** Beyond those that every operation with a token has. */
  readonly errors: readonly ErrorCode[];
};

const passphrase = "seven words that nobody else would guess";
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
    summary: "Make a vault and unlock it",
    description:
      "Makes a new, empty vault under the passphrase. With `force`, one that is there is replaced in one step and kept, " +
      "whole and under its old passphrase, in a directory that the message names; when that fails, it stays in force.",
    body: { schema: "InitRequest", example: { passphrase } },
    answer: {
      schema: "Initialized",
      description: "The vault is made and unlocked.",
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
      "Checks the passphrase, also when the vault is unlocked already; a wrong one (401, `credential` says `passphrase`) " +
      "changes nothing. After 10 wrong ones within a minute the address may not unlock for 5 minutes.",
    body: { schema: "UnlockRequest", example: { passphrase } },
    answer: {
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
    description: "Wipes the master key, then answers; also when the vault is locked, or there is none.",
    answer: {
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
    summary: "Tell the vault's state",
    description: "Needs no token, minds no wrong one, and is never limited.",
    open: true,
    answer: {
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
    description: "Answers, then locks, lets requests under way finish for at most 5 seconds, and ends the process.",
    answer: {
      schema: "Acknowledgement",
      description: "The server is about to stop.",
      example: { ok: true, message: "the vault is being locked and the server stops" },
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
      "Puts all sealed secrets of one moment, and the header, into a new directory beside the vault, while writes go on; " +
      "locked or not. It holds ciphertext only. The client copies it and removes it. There is one at a time: the next " +
      "replaces it unless a backup is reading it, and one that is left is removed after an hour or when the server starts.",
    answer: {
      schema: "Snapshot",
      description: "The snapshot is taken.",
      example: {
        ok: true,
        message: "the snapshot holds ciphertext only: copy it, then remove it",
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
    summary: "Tell this contract",
    description: "This document, with the limits of this server.",
    answer: {
      schema: {
        type: "object",
        description: "An OpenAPI document.",
        properties: { openapi: { type: "string", pattern: "^3\\.1\\." } },
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
      "In ascending order of the paths' UTF-8 bytes. `GET /v1/secrets/` is the same. A secret whose file is damaged is " +
      "named under `damaged`, and does not hide the others.",
    parameters: ["prefix", "after", "limit"],
    answer: {
      schema: "SecretList",
      description: "What was found.",
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
    description: "Decrypts the value and answers it.",
    parameters: ["path"],
    answer: {
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
      "Creates the secret or replaces its value and metadata; fields that are left out disappear, `createdAt` stays. It " +
      "is answered once it would survive a power cut. A damaged secret is not overwritten: delete it first.",
    parameters: ["path"],
    body: { schema: "PutRequest", example: { value: "s3cr3t", ...metadata } },
    answer: {
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
    summary: "Delete a secret for good",
    description: "The secret's file is gone when this is answered.",
    parameters: ["path"],
    answer: {
      schema: "Deleted",
      description: "The secret is deleted.",
      example: { ok: true, path, message: "the secret is deleted" },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "INTEGRITY"],
  },
];
