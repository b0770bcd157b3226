/** Named schemas of the contract: request bodies, which the key worker defines, and response bodies. */
import { bodySchemas, maxOperations, operationKinds, secretTypes } from "../../workers/body-schemas.js";
import { statusOf } from "../errors.js";
import { auditSchemas, auditVerifyRequest } from "./audit-schemas.js";
import { count, list, message, object, ok, published, type Schema, schemaNamed, text, time } from "./json-schema.js";
import { tokenRequests, tokenSchemas } from "./token-schemas.js";

const path = text("The secret's path in its canonical form (Unicode NFC).", "app/db/password");
const metadata = schemaNamed("Metadata");
const createdAt = time("When the secret was first stored at this path.");
const updatedAt = time("When the secret was last stored; never goes backwards.");
const version: Schema = {
  type: "integer",
  minimum: 1,
  description: "Number of the version: 1 at creation, one more with each put that changes something.",
  examples: [3],
};
const etag = text(
  "Tag of this state of the secret, for If-Match and If-None-Match, where it stands in quotes.",
  "n0O6NdgaeP0QMXWP",
);
const keyId = text("Identifies the key; `passphrase` is the passphrase.", "k7f3q9zx");
const keyLabel = text("Its name, for people; `passphrase` is the passphrase's.", "recovery");
const vaultPath = text(
  "Directory of the vault, or host and name of its database.",
  "/home/me/.local/share/strongroom/vault",
);
const operations: Schema = {
  ...list("What to do; an operation has one of get, put, delete, move and copy.", {
    oneOf: ["BatchGet", "BatchPut", "BatchDelete", "BatchMove", "BatchCopy"].map(schemaNamed),
    allOf: [{ oneOf: operationKinds.map((kind) => ({ required: [kind] })) }],
  }),
  maxItems: maxOperations,
};
const index = {
  ...count("Which operation of a batch was refused, counted from 0."),
  examples: [0],
};
const error = text("What was wrong and what to do, for people.", "the vault is locked: unlock it first");

export function componentSchemas(maxValueBytes: number): Schema {
  const bodies = bodySchemas(maxValueBytes);
  return {
    InitRequest: { ...published(bodies.init), description: "Body of init. Other fields are ignored." },
    UnlockRequest: { ...published(bodies.unlock), description: "Body of unlock. Other fields are ignored." },
    PassphraseRequest: {
      ...published(bodies.changePassphrase),
      description: "Body of a change of the passphrase. Other fields are ignored.",
    },
    RotateRequest: {
      ...published(bodies.rotate),
      description: "Body of a rotation of the master key. Other fields are ignored.",
    },
    KeyRequest: { ...published(bodies.createKey), description: "Body of a new key. Other fields are ignored." },
    UndoRequest: { ...published(bodies.undo), description: "Body of undo. Other fields are ignored." },
    AuditVerifyRequest: auditVerifyRequest,
    BatchRequest: object("Body of a batch. Other fields are ignored.", { operations }),
    BatchGet: { ...published(bodies.batchGet), description: "Reads a secret." },
    BatchPut: { ...published(bodies.batchPut), description: "Stores a secret." },
    BatchDelete: { ...published(bodies.batchDelete), description: "Deletes a secret permanently." },
    BatchMove: {
      ...published(bodies.batchMove),
      description: "Moves or renames a secret; its times, versions and history stay.",
    },
    BatchCopy: {
      ...published(bodies.batchCopy),
      description: "Stores the present value and metadata of a secret as a new secret at another path.",
    },
    PutRequest: { ...published(bodies.put), description: "Body of put. Other fields are ignored." },
    ...tokenRequests,
    ...responses,
  };
}

const responses = {
  ...auditSchemas,
  ...tokenSchemas,
  Acknowledgement: object("Confirms an operation on the vault.", { ok, message }),
  Initialized: object("Confirms that a vault was created.", { ok, message, vaultPath }),
  VaultStatus: object(
    "State of the vault that anyone on this machine may read.",
    {
      initialized: { type: "boolean", description: "Whether a vault exists." },
      locked: { type: "boolean", description: "Whether the vault is locked; true before init." },
      secretCount: count("Number of stored secrets, also while locked."),
      vaultPath,
      serverRunning: { type: "boolean", description: "False once the server has begun to shut down." },
      port: { type: "integer", minimum: 1, maximum: 65_535, description: "The listening port.", examples: [13_100] },
      idleTimeoutMs: count("Milliseconds without activity after which the vault locks; 0 means never."),
      lastActivity: time(
        "Time of the last successful init or unlock, or of the last authenticated secret operation; before any, the server's start.",
      ),
      lastLock: schemaNamed("LastLock"),
      version: text("Version of the server.", "0.1.0"),
      rotation: schemaNamed("RotationProgress"),
      storageAvailable: {
        type: "boolean",
        description: "False while a database does not answer: `secretCount` is then the last number that it told.",
      },
    },
    ["rotation", "storageAvailable"],
  ),
  LastLock: object("Why and when the vault was locked last; while it is unlocked, the time before.", {
    reason: {
      ...text(
        "On request, after the idle timeout, because the key worker ended or the stored header took another key, because " +
          "the server started, or because it is stopping.",
        "idle",
      ),
      enum: ["request", "idle", "crash", "start", "shutdown"],
    },
    at: time("When it was locked, or the server started."),
  }),
  Key: object("A way into the vault.", {
    id: keyId,
    kind: { ...text("The passphrase, or a generated key.", "key"), enum: ["passphrase", "key"] },
    label: keyLabel,
    createdAt: time("When it was created, or the passphrase last changed."),
  }),
  KeyList: object("The ways into the vault.", {
    keys: list("The passphrase first, then the keys by age.", schemaNamed("Key")),
  }),
  CreatedKey: object("A new key.", {
    ok,
    id: keyId,
    label: keyLabel,
    key: text(
      "Its text, which opens the vault. Case and dashes do not matter. The last letter of each group checks the group.",
      "SRK-00000-00001-00002-00003-00004-00005-00006-00007-00008-00009-0000A-0000B-0000C",
    ),
  }),
  Rotated: object("Confirms that the master key is rotated.", {
    ok,
    message,
    removed: list("The labels of the keys that open nothing any more.", keyLabel),
  }),
  RotationProgress: object("Progress of a rotation of the master key.", {
    done: count("Number of secrets sealed under the new key, as far as checked since the server started."),
    total: count("Number of secrets."),
  }),
  Metadata: object(
    "Metadata stored with the value; a field that was not supplied is absent.",
    {
      type: { ...text("Kind of secret.", "password"), enum: secretTypes },
      description: text("Description for people.", "the application's database"),
    },
    ["type", "description"],
  ),
  Stored: object("Confirms that a secret was stored.", {
    ok,
    path,
    bytes: count("The value's length in bytes of UTF-8."),
    metadata,
    version,
    etag,
  }),
  Secret: object("A secret with its value.", {
    path,
    value: text("The secret value.", "s3cr3t"),
    metadata,
    createdAt,
    updatedAt,
    version,
    etag,
  }),
  SecretEntry: object("A secret in a list, without its value.", {
    path,
    metadata,
    createdAt,
    updatedAt,
    version,
    etag,
  }),
  SecretVersion: object("A version of a secret, without its value.", {
    metadata,
    createdAt,
    updatedAt: time("When this version was last stored."),
    version,
    etag,
  }),
  SecretHistory: object(
    "The versions of a secret.",
    {
      path,
      versions: list("Newest first, the present included.", schemaNamed("SecretVersion")),
      damaged: count("How many earlier versions cannot be decrypted; they are not among the versions."),
    },
    ["damaged"],
  ),
  SecretList: object(
    "Secrets in ascending order of the UTF-8 bytes of their paths.",
    {
      entries: list("Matching secrets; empty when nothing matches.", schemaNamed("SecretEntry")),
      next: text("Present when more secrets follow: continue with `after` set to this path.", "app/db/password"),
      damaged: list("Paths whose stored metadata cannot be decrypted; they are not among the entries.", path),
    },
    ["next", "damaged"],
  ),
  Deleted: object("Confirms a deletion.", { ok, path, message }),
  Snapshot: object(
    "Confirms that a snapshot was taken.",
    {
      ok,
      message,
      directory: text("Directory of the snapshot.", "/home/me/.local/share/strongroom/vault/snapshot-5f0c2c6e7a3c4b52"),
      secretCount: count("Number of secrets in it."),
      direct: {
        type: "boolean",
        const: true,
        description: "Present when it is the vault's own directory: nothing in it may be changed or removed.",
      },
    },
    ["direct"],
  ),
  Refusal: object(
    "Why a request was refused.",
    {
      error,
      code: { ...text("Error code, for programs.", "VAULT_LOCKED"), enum: codesBetween(400, 499) },
      credential: {
        ...text("With UNAUTHORIZED: which credential was wrong.", "token"),
        enum: ["token", "passphrase"],
      },
      reason: {
        ...text("With UNAUTHORIZED, for 30 days: why a client token is no longer valid.", "expired"),
        enum: ["expired", "revoked", "rotated"],
      },
      index,
    },
    ["credential", "reason", "index"],
  ),
  Failure: object(
    "Why the server failed.",
    {
      error,
      code: { ...text("Error code, for programs.", "UNAVAILABLE"), enum: codesBetween(500, 599) },
      requestId: text("Identifies the request in the server's log.", "5f0c2c6e-7a3c-4b52-9a52-0a3f6f1d2b11", {
        format: "uuid",
      }),
      index,
    },
    ["index"],
  ),
  BatchResults: object("The results of a batch.", {
    ok,
    results: list(
      "One for each operation, in order: the secret of a get, or why it is refused; of a put, move or copy what was stored; of a delete a confirmation.",
      { oneOf: ["Secret", "Stored", "Deleted", "BatchRefusal"].map(schemaNamed) },
    ),
  }),
  BatchRefusal: object("Why a get of a batch without changes is refused.", {
    code: {
      ...text("Error code, for programs.", "NOT_FOUND"),
      enum: ["BAD_REQUEST", "FORBIDDEN", "NOT_FOUND", "PRECONDITION_FAILED", "INTEGRITY"],
    },
    error,
  }),
} satisfies Readonly<Record<string, Schema>>;

export type ResponseName = keyof typeof responses;

function codesBetween(low: number, high: number): string[] {
  return Object.entries(statusOf).flatMap(([code, status]) => (status >= low && status <= high ? [code] : []));
}
