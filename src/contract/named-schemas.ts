/** Owns the named schemas of the contract: what the endpoints take, which the key worker defines, and what they answer. */
import { bodySchemas, secretTypes } from "../../workers/body-schemas.js";
import { statusOf } from "../errors.js";
import { list, object, published, type Schema, schemaNamed, text } from "./json-schema.js";

const ok: Schema = { type: "boolean", const: true, description: "Always true: failures have an error and a code." };
const message = text("What was done, in words for people.", "the vault is unlocked");
const path = text("The secret's path in its canonical form (Unicode NFC).", "app/db/password");
const metadata = schemaNamed("Metadata");
const createdAt = time("When the path first had a secret.");
const updatedAt = time("When the secret was last stored; it never runs backwards.");
const vaultPath = text("Where the vault is on disk.", "/home/me/.local/share/strongroom/vault");
const error = text("What was wrong and what to do, in words for people.", "the vault is locked: unlock it first");

export function componentSchemas(maxValueBytes: number): Schema {
  const bodies = bodySchemas(maxValueBytes);
  return {
    InitRequest: { ...published(bodies.init), description: "Body of init. Other fields are ignored." },
    UnlockRequest: { ...published(bodies.unlock), description: "Body of unlock. Other fields are ignored." },
    PutRequest: { ...published(bodies.put), description: "Body of put. Other fields are ignored." },
    ...answers,
  };
}

const answers = {
  Acknowledgement: object("That an operation on the vault was done.", { ok, message }),
  Initialized: object("That a vault was made, and where.", { ok, message, vaultPath }),
  VaultStatus: object("What anyone on this machine may know of the vault.", {
    initialized: { type: "boolean", description: "Whether there is a vault." },
    locked: { type: "boolean", description: "Whether the vault is locked; true also when there is none." },
    secretCount: count("Number of stored secrets, also while locked."),
    vaultPath,
    serverRunning: { type: "boolean", description: "False once the server has begun to shut down." },
    port: { type: "integer", minimum: 1, maximum: 65_535, description: "The port listened on.", examples: [13_100] },
    idleTimeoutMs: count("Milliseconds without activity after which the vault locks; 0 is never."),
    lastActivity: time("The last init, unlock or secret operation that was let in; before any, the server's start."),
  }),
  Metadata: object(
    "What was stored with the value; a field that was not supplied is absent.",
    {
      type: { ...text("What kind of secret it is.", "password"), enum: secretTypes },
      description: text("What it is for, in words for people.", "the application's database"),
    },
    ["type", "description"],
  ),
  Stored: object("That a secret was stored.", {
    ok,
    path,
    bytes: count("The value's length in bytes of UTF-8."),
    metadata,
  }),
  Secret: object("A secret with its value.", {
    path,
    value: text("The secret value.", "s3cr3t"),
    metadata,
    createdAt,
    updatedAt,
  }),
  SecretEntry: object("A secret as listings show it, without its value.", { path, metadata, createdAt, updatedAt }),
  SecretList: object(
    "Secrets in ascending order of their paths' UTF-8 bytes.",
    {
      entries: list("What was found; empty when nothing matches.", schemaNamed("SecretEntry")),
      next: text("There are more: go on with `after` set to this.", "app/db/password"),
      damaged: list("Paths whose stored metadata cannot be opened; they are not among the entries.", path),
    },
    ["next", "damaged"],
  ),
  Deleted: object("That a secret was deleted for good.", { ok, path, message }),
  Snapshot: object("That a snapshot was taken, and where.", {
    ok,
    message,
    directory: text(
      "Where the snapshot is on disk.",
      "/home/me/.local/share/strongroom/vault/snapshot-5f0c2c6e7a3c4b52",
    ),
    secretCount: count("Number of secrets in it."),
  }),
  Refusal: object(
    "Why a request was refused.",
    {
      error,
      code: { ...text("What went wrong, for programs.", "VAULT_LOCKED"), enum: codesBetween(400, 499) },
      credential: {
        ...text("With UNAUTHORIZED: what was wrong.", "token"),
        enum: ["token", "passphrase"],
      },
    },
    ["credential"],
  ),
  Failure: object("How the server failed.", {
    error,
    code: { ...text("What went wrong, for programs.", "UNAVAILABLE"), enum: codesBetween(500, 599) },
    requestId: text("The server's log has more under this id.", "5f0c2c6e-7a3c-4b52-9a52-0a3f6f1d2b11", {
      format: "uuid",
    }),
  }),
} satisfies Readonly<Record<string, Schema>>;

export type AnswerName = keyof typeof answers;

function codesBetween(low: number, high: number): string[] {
  return Object.entries(statusOf).flatMap(([code, status]) => (status >= low && status <= high ? [code] : []));
}

function time(description: string): Schema {
  return text(`${description} ISO 8601, UTC, with milliseconds.`, "2026-03-01T12:00:00.000Z", { format: "date-time" });
}

function count(description: string): Schema {
  return { type: "integer", minimum: 0, description, examples: [6] };
}
