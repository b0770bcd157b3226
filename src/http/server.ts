/** Endpoints of the vault's lifecycle and of the server itself. */
import { change } from "../audit/record.js";
import { VaultError } from "../errors.js";
import { passphrase } from "./body.js";
import { type BasicCall, bytes, endpoint, json, none, type Whole } from "./endpoint.js";
import { hasParameter, parseQuery } from "./routes.js";

/** Version 0.0.4 of Prometheus' text format. */
const metricsType = "text/plain; version=0.0.4; charset=utf-8";

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const serverRows = [
  endpoint({
    operation: "status", at: "GET /v1/status", scope: "open", guard: "none", audit: null,
    subject: none, body: null, conditional: false, query: readRequirement, reads: false,
    handle: showStatus,
  }),
  endpoint({
    operation: "openapi", at: "GET /v1/openapi.json", scope: "any", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: ({ service }) => bytes(Buffer.from(service.contract())), // a copy, because sent bytes are wiped
  }),
  endpoint({
    operation: "metrics", at: "GET /v1/metrics", scope: "metrics", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: async ({ service }) => ({ ...bytes(Buffer.from(await service.scrape())), type: metricsType }),
  }),
  endpoint({
    operation: "shutdown", at: "POST /v1/shutdown", scope: "root", guard: "none", audit: change("shutdown"),
    subject: none, body: null, conditional: false, reads: false,
    handle({ service }) {
      const response = json({ ok: true, message: "the vault is being locked and the server is stopping" });
      return { ...response, isLast: true, after: service.shutDown };
    },
  }),
  endpoint({
    operation: "snapshot", at: "POST /v1/snapshot", scope: "root", guard: "none", audit: change("snapshot"),
    subject: none, body: null, conditional: false, query: readReader, reads: true,
    async handle({ vault, query: reader }) {
      const { directory, count, direct } = await vault.snapshot(reader);
      const taken = { ok: true, message: direct ? frozen : copied, directory, secretCount: count };
      return json(direct ? { ...taken, direct } : taken);
    },
  }),
  endpoint({
    operation: "init", at: "POST /v1/init", scope: "root", guard: "none", audit: change("init"),
    subject: none, body: passphrase, conditional: false, reads: false,
    async handle({ vault, body, permit }) {
      const { keptAt, locked } = await vault.init(body, permit);
      const kept = keptAt === null ? "" : `; the old vault is kept in ${keptAt}, under its old passphrase`;
      const { vaultPath } = await vault.report.status();
      const message = `the vault is initialized and ${locked ? "was locked again at once" : "unlocked"}${kept}`;
      return json({ ok: true, message, vaultPath });
    },
  }),
  endpoint({
    operation: "lock", at: "POST /v1/lock", scope: "lock", guard: "none", audit: change("lock"),
    subject: none, body: null, conditional: false, reads: false,
    async handle({ vault }) {
      await vault.lock();
      return json({ ok: true, message: "the vault is locked" });
    },
  }),
];

type Requirement = "unlocked" | null;

/** Returns the status, with 503 if `require=unlocked` is not met. */
async function showStatus({ service, vault, query }: BasicCall & { readonly query: Requirement }): Promise<Whole> {
  const { version, port, vaultPort, broker, stopSignal } = service;
  const found = await vault.report.status();
  const certificate = { endsAt: new Date(service.certificate.endsAt).toISOString() };
  const ports = { port, ...(vaultPort !== null && { vaultPort }), ...(broker && { brokerPort: broker.port }) };
  const reauthorize = broker?.tokenExchanges.reauthorize ?? [];
  const expired = reauthorize.length > 0 && { reauthorize };
  const body = { ...found, serverRunning: !stopSignal.aborted, version, ...ports, certificate, ...expired };
  return json(body, query === "unlocked" && found.locked ? 503 : 200);
}

/** @throws VaultError BAD_REQUEST for any other requirement */
function readRequirement(text: string): Requirement {
  if (text === "" || !hasParameter(text, "require")) return null;
  if (parseQuery(text, ["require"]).get("require") === "unlocked") return "unlocked";
  throw new VaultError("BAD_REQUEST", "the parameter require is invalid: it must be unlocked");
}

const copied = "the snapshot contains only ciphertext: copy it, then remove it";
const frozen =
  "the disk takes no snapshot, so this is the vault itself, which refuses writes until the reader has ended: copy it, and " +
  "change nothing in it";

const readerPattern = /^(?<pid>[1-9][0-9]{0,9}):(?<started>[ -~]{0,100})$/;

type Reader = { readonly pid: number; readonly started: string };

/** Returns the process that a frozen vault waits for; null unless it is named. @throws VaultError BAD_REQUEST */
function readReader(query: string): Reader | null {
  const text = parseQuery(query, ["reader"]).get("reader");
  if (text === undefined) return null;
  const { pid, started } = readerPattern.exec(text)?.groups ?? {};
  if (pid === undefined || started === undefined)
    throw new VaultError("BAD_REQUEST", "the parameter reader is invalid: give PID:START, as in openapi.json");
  return { pid: Number(pid), started };
}
