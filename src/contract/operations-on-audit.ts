/** Table of the operations on the audit log. */
import type { Operation } from "./operation.js";

const log = "q83vEjRWeJASNFZ4mrze8A";
const chain = "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg";
const record = {
  seq: 4712,
  time: "2026-03-01T12:00:00.000Z",
  event: "get",
  token: "ci",
  address: "127.0.0.1",
  path: "app/db/password",
  etag: "n0O6NdgaeP0QMXWP",
  status: 200,
};
const checkpoint = { log, seq: 4713, time: "2026-03-01T12:00:30.000Z", chain, key: "kP3zQ0a7Lw1x", mac: chain };

export const auditOperations: readonly Operation[] = [
  {
    id: "readAudit",
    method: "get",
    path: "/v1/audit",
    tag: "audit",
    summary: "Read records of the audit log",
    description:
      "For the root token and tokens that can `audit`; they see records of all paths. The vault may be locked, but a client " +
      "token is refused until the first unlock after a start, which checks its record. Reading the audit log makes no " +
      "record. 404 when the server was started with `--audit off`.",
    parameters: ["afterRecord", "recordLimit"],
    response: {
      schema: "AuditPage",
      description: "The records, oldest first.",
      example: { records: [record], head: { log, seq: 4712, chain } },
    },
    errors: ["VAULT_LOCKED", "NOT_FOUND"],
  },
  {
    id: "verifyAudit",
    method: "post",
    path: "/v1/audit/verify",
    tag: "audit",
    summary: "Check the MACs of checkpoints",
    description:
      "For the root token and tokens that can `audit`; the vault must be unlocked, since the key of the MACs comes from its " +
      "master key. It tells whether this vault made a checkpoint; whether the log leads up to it is for the reader of the " +
      "log, as `strongroom audit verify` does.",
    body: { schema: "AuditVerifyRequest", example: { checkpoints: [checkpoint] } },
    response: {
      schema: "AuditVerdicts",
      description: "One verdict for each checkpoint.",
      example: { verdicts: ["valid"] },
    },
    errors: ["VAULT_LOCKED", "INTERNAL"],
  },
];
