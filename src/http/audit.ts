/** Endpoints of the audit log: its records, and the check of its checkpoints. */
import type { SignedCheckpoint } from "../../workers/protocol.js";
import { maxCheckpoints, signedCheckpoint } from "../audit/format.js";
import { VaultError } from "../errors.js";
import { fields } from "./body.js";
import { endpoint, json, none } from "./endpoint.js";
import { parseQuery } from "./routes.js";

const defaultLimit = 100;
const maxBodyBytes = 1024 * 1024;

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const auditRows = [
  endpoint({
    operation: "readAudit", at: "GET /v1/audit", scope: "audit", guard: "genuine", audit: null,
    subject: none, body: null, conditional: false, query: readPage, reads: true,
    async handle({ service: { audit }, query: { after, limit } }) {
      if (audit === null)
        throw new VaultError("NOT_FOUND", "the audit log is off: start the server with --audit changes or all");
      const { records, head } = await audit.read(after, limit);
      return json({ records, ...(head && { head }) });
    },
  }),
  endpoint({
    operation: "verifyAudit", at: "POST /v1/audit/verify", scope: "audit", guard: "key", audit: null,
    subject: none, body: fields(maxBodyBytes), conditional: false, reads: true,
    handle: async ({ vault, body }) => json({ verdicts: await vault.records.verifyCheckpoints(readCheckpoints(body)) }),
  }),
];

/** @throws VaultError BAD_REQUEST */
function readPage(query: string): { readonly after: number; readonly limit: number } {
  const parameters = parseQuery(query, ["after", "limit"]);
  return {
    after: readWholeNumber(parameters.get("after"), "after", 0, 999_999_999_999_999) ?? 0,
    limit: readWholeNumber(parameters.get("limit"), "limit", 1, 1000) ?? defaultLimit,
  };
}

/** Returns null for a missing parameter. @throws VaultError BAD_REQUEST */
function readWholeNumber(text: string | undefined, name: string, min: number, max: number): number | null {
  if (text === undefined) return null;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new VaultError("BAD_REQUEST", `the parameter ${name} must be a whole number from ${min} to ${max}`);
}

const members = ["log", "time", "chain", "key", "mac"] as const;

/** @throws VaultError BAD_REQUEST */
function readCheckpoints(body: Uint8Array): readonly SignedCheckpoint[] {
  const checkpoints = parseCheckpoints(body);
  if (checkpoints === null || checkpoints.length > maxCheckpoints) throw invalid();
  return checkpoints.map(readCheckpoint);
}

/** Commas and opening brackets of the longest list, with room for members that are ignored. */
const mostMarks = 16 * maxCheckpoints;

/** JSON.parse of a MiB of brackets alone would hold up the event loop. */
function isComplex(body: Uint8Array): boolean {
  let marks = 0;
  for (const byte of body) if (byte === comma || byte === bracket || byte === brace) marks++;
  return marks > mostMarks;
}

const [comma, bracket, brace] = Buffer.from(",[{");

/** DANGER: the parser's own error would quote the body. */
function parseCheckpoints(body: Uint8Array): readonly unknown[] | null {
  if (isComplex(body)) return null;
  try {
    const parsed = JSON.parse(new TextDecoder("utf8", { fatal: true }).decode(body)) as {
      checkpoints?: unknown;
    } | null;
    return Array.isArray(parsed?.checkpoints) ? parsed.checkpoints : null;
  } catch {
    return null;
  }
}

function readCheckpoint(value: unknown): SignedCheckpoint {
  if (typeof value !== "object" || value === null) throw invalid();
  const given = value as { readonly [name: string]: unknown; seq?: unknown; from?: unknown; reason?: unknown };
  const [log = "", time = "", chain = "", key = "", mac = ""] = members.map((name) => requireText(given[name]));
  const { seq, from, reason } = given;
  if (typeof seq !== "number" || !Number.isSafeInteger(seq)) throw invalid();
  const claim = { log, seq, time, chain, key, mac };
  if (from === undefined) return signedCheckpoint(claim);
  if (typeof from !== "number" || !Number.isSafeInteger(from)) throw invalid();
  return signedCheckpoint({ ...claim, from, reason: requireText(reason) });
}

function requireText(value: unknown): string {
  if (typeof value === "string") return value;
  throw invalid();
}

function invalid(): VaultError {
  return new VaultError(
    "BAD_REQUEST",
    `checkpoints must be a list of at most ${maxCheckpoints}, each as openapi.json shows it`,
  );
}
