/** Table of the operations on secrets and their versions. */
import { schemaNamed } from "./json-schema.js";
import type { Operation } from "./operation.js";

const path = "app/db/password";
const metadata = { type: "password", description: "the application's database" };
const times = { createdAt: "2026-03-01T12:00:00.000Z", updatedAt: "2026-03-01T12:00:00.000Z" };
const state = { version: 3, etag: "n0O6NdgaeP0QMXWP" };
const stored = { ok: true, path, bytes: 6, metadata, ...state };

export const secretOperations: readonly Operation[] = [
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
      example: { entries: [{ path, metadata, ...times, ...state }] },
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
    parameters: ["path", "If-None-Match"],
    hasTag: true,
    mayBeUnchanged: true,
    response: {
      schema: "Secret",
      description: "The secret.",
      example: { path, value: "s3cr3t", metadata, ...times, ...state },
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
      "sent once the write would survive a power cut. What it replaces is kept as an earlier version, except by a put of " +
      "the very same value and metadata. A damaged secret is not overwritten: delete it first.",
    parameters: ["path", "If-Match", "If-None-Match"],
    hasTag: true,
    body: { schema: "PutRequest", example: { value: "s3cr3t", ...metadata } },
    response: {
      schema: "Stored",
      description: "The secret is stored.",
      example: stored,
    },
    errors: ["VAULT_LOCKED", "PRECONDITION_FAILED", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "delete",
    method: "delete",
    path: "/v1/secrets/{path}",
    tag: "secrets",
    summary: "Delete a secret permanently",
    description:
      "Deletes the secret with all earlier versions. The response is sent once the deletion would survive a power cut.",
    parameters: ["path", "If-Match"],
    response: {
      schema: "Deleted",
      description: "The secret is deleted.",
      example: { ok: true, path, message: "the secret is deleted" },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "PRECONDITION_FAILED", "INTEGRITY"],
  },
  {
    id: "batch",
    method: "post",
    path: "/v1/batch",
    tag: "secrets",
    summary: "Do many operations at once",
    description:
      "With any change: all or nothing, also through a power cut. A refusal has the `index` of the operation, and nothing " +
      "has happened. All operations see the secrets as they were before the batch, and one path may be changed once. Without " +
      "a change, each get stands for itself.",
    body: {
      schema: "BatchRequest",
      example: {
        operations: [
          { put: path, value: "s3cr3t", ifMatch: state.etag },
          { move: "app/api", to: "web/api", ifNoneMatch: "*" },
        ],
      },
    },
    response: {
      schema: "BatchResults",
      description: "The results, in the order of the operations.",
      example: { ok: true, results: [stored, { ...stored, path: "web/api", etag: "Zt3k9sPqLw0aXb2N" }] },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "PRECONDITION_FAILED", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "versions",
    method: "get",
    path: "/v1/versions/{path}",
    tag: "secrets",
    summary: "List the versions of a secret, or read one",
    description:
      "Newest first, the present included, without values. With `version`, that version with its value, as get returns it. " +
      "The server's settings say how many earlier versions are kept.",
    parameters: ["path", "version"],
    response: {
      schema: { oneOf: [schemaNamed("SecretHistory"), schemaNamed("Secret")] },
      description: "The versions; with `version`, the secret as it was.",
      example: { path, versions: [{ metadata, ...times, ...state }] },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "undo",
    method: "post",
    path: "/v1/versions/{path}",
    tag: "secrets",
    summary: "Make an earlier version the newest",
    description: "Stores the value and metadata of a version that is kept, as a put of them would.",
    parameters: ["path", "If-Match"],
    hasTag: true,
    body: { schema: "UndoRequest", example: { version: 2 } },
    response: { schema: "Stored", description: "The secret is stored.", example: { ...stored, version: 4 } },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "PRECONDITION_FAILED", "INTERNAL", "INTEGRITY"],
  },
  {
    id: "prune",
    method: "delete",
    path: "/v1/versions/{path}",
    tag: "secrets",
    summary: "Delete all earlier versions of a secret",
    description: "The present stays as it is, with its tag. The message says how many versions are deleted.",
    parameters: ["path", "If-Match"],
    response: {
      schema: "Deleted",
      description: "The earlier versions are deleted.",
      example: { ok: true, path, message: "2 earlier versions are deleted" },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND", "PRECONDITION_FAILED", "INTERNAL", "INTEGRITY"],
  },
];
