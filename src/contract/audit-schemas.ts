/** Schemas of the audit log's records, pages and checkpoints. */
import { maxCheckpoints } from "../audit/audit-format.js";
import { list, object, type Schema, schemaNamed, text, time } from "./json-schema.js";

const logName = text("Name of the log, made when its first file was.", "q83vEjRWeJASNFZ4mrze8A");
const chain = text("Value of the hash chain.", "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg");
const seq: Schema = { type: "integer", minimum: 1, description: "Number of the record.", examples: [4712] };

const checkpoint = {
  log: logName,
  seq,
  time: time(),
  chain,
  key: text("Name of the key.", "kP3zQ0a7Lw1x"),
  mac: text("The MAC.", "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"),
};

const known = {
  token: text("Name of the token; `root` is the root token.", "ci"),
  address: text("Address of the client; `unix` is the Unix socket.", "127.0.0.1"),
  requestId: text("Identifies the request in the server's log, or the batch.", "5f0c2c6e-7a3c-4b52-9a52-0a3f6f1d2b11"),
  path: text("The secret's path.", "app/db/password"),
  to: text("Target of a move or copy.", "app/db/old"),
  name: text("The client token, or the key's id, that was made, changed or removed.", "ci"),
  version: { ...seq, description: "The version that was asked for.", examples: [3] },
  etag: text("Tag of the secret that was read or stored.", "n0O6NdgaeP0QMXWP"),
  prefix: text("Of a list.", "app/"),
  count: {
    type: "integer",
    minimum: 0,
    description: "Secrets in a list, or records that a gap stands for.",
    examples: [7],
  },
  batch: { type: "boolean", const: true, description: "Present in the records of a batch." },
  status: { type: "integer", description: "Status of the response; 0: the client was gone.", examples: [200] },
  code: text("Code of the error.", "NOT_FOUND"),
  reason: text("Why the vault was locked, or a checkpoint made.", "idle"),
  credential: text("Of a lockout: what was wrong.", "token"),
  since: { ...time(), description: "When the first of a gap's records was lost." },
  key: checkpoint.key,
  mac: checkpoint.mac,
} satisfies Schema;

export const auditSchemas = {
  AuditRecord: object(
    "A record of the audit log; the members depend on the event.",
    { seq, time: time(), event: text("What was done, or happened.", "get"), ...known },
    Object.keys(known),
  ),
  AuditHead: object("Where the log ends: keep it elsewhere, and no earlier part can be changed or cut unseen.", {
    log: logName,
    seq,
    chain,
  }),
  AuditCheckpoint: object("A checkpoint. `chain` is the value before it.", checkpoint),
  AuditPage: object(
    "Records of the audit log.",
    { records: list("Oldest first.", schemaNamed("AuditRecord")), head: schemaNamed("AuditHead") },
    ["head"],
  ),
  AuditVerdicts: object("Verdicts on checkpoints.", {
    verdicts: list("In the order of the checkpoints. `unknown`: made under another key than the vault's.", {
      type: "string",
      enum: ["valid", "wrong", "unknown"],
    }),
  }),
} satisfies Readonly<Record<string, Schema>>;

export const auditVerifyRequest = object("Body of a check of checkpoints. Other fields are ignored.", {
  checkpoints: { ...list(`At most ${maxCheckpoints}.`, schemaNamed("AuditCheckpoint")), maxItems: maxCheckpoints },
});
