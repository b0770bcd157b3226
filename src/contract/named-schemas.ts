/** Named schemas of the contract: request bodies, which the key worker defines, and response bodies. */
import { bodySchemas } from "../../workers/body-schemas.js";
import { auditSchemas, auditVerifyRequest } from "./audit-schemas.js";
import { batchRequests, batchSchemas } from "./batch-schemas.js";
import { errorSchemas } from "./error-schemas.js";
import { count, message, object, ok, published, type Schema, text } from "./json-schema.js";
import { secretSchemas } from "./secret-schemas.js";
import { tokenRequests, tokenSchemas } from "./token-schemas.js";
import { vaultSchemas } from "./vault-schemas.js";

export function componentSchemas(maxValueBytes: number): Schema {
  const bodies = bodySchemas(maxValueBytes);
  return {
    InitRequest: bodyOf("init", bodies.init),
    UnlockRequest: bodyOf("unlock", bodies.unlock),
    PassphraseRequest: bodyOf("a change of the passphrase", bodies.changePassphrase),
    RotateRequest: bodyOf("a rotation of the master key", bodies.rotate),
    KeyRequest: bodyOf("a new key", bodies.createKey),
    UndoRequest: bodyOf("undo", bodies.undo),
    AuditVerifyRequest: auditVerifyRequest,
    ...batchRequests(bodies),
    PutRequest: bodyOf("put", bodies.put),
    ...tokenRequests,
    ...responses,
  };
}

const responses = {
  ...auditSchemas,
  ...tokenSchemas,
  ...vaultSchemas,
  ...secretSchemas,
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
  ...errorSchemas,
  ...batchSchemas,
} satisfies Readonly<Record<string, Schema>>;

export type ResponseName = keyof typeof responses;

function bodyOf(subject: string, schema: Schema): Schema {
  return { ...published(schema), description: `Body of ${subject}. Other fields are ignored.` };
}
