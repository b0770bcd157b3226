/** Checks of the records that a key signs: the vault's client tokens, and the audit log with its checkpoints. */
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { readTokens, tokenDocuments } from "../../access/stored-tokens.js";
import { type TokenRecord, validRecords } from "../../access/token-record.js";
import { auditDirectory, auditFileNumber, signedCheckpoint } from "../../audit/format.js";
import { type AuditProblem, judgeCheckpoints, verifyLog } from "../../audit/verify.js";
import { readFileBytes, systemFiles } from "../../files/durable.js";
import { documentFile } from "../../storage/files/documents.js";
import { maxDocumentBytes } from "../../storage/secret-store.js";
import { directoryEntries, examine, type Inspection, reading, reportStray } from "./inspection.js";

/** Documents of the client tokens, and where they are, for people. */
export type FoundTokens = { readonly path: string; readonly bytes: Bytes | null };

/** `isOpened`: the vault's key is there. */
export async function examineTokens(inspection: Inspection, directory: string, isOpened: boolean): Promise<void> {
  const found: FoundTokens[] = [];
  for (const name of tokenDocuments) {
    const path = join(directory, documentFile(name));
    const entry = await examine(inspection, path, "file");
    const read = () => readFileBytes(systemFiles, path, maxDocumentBytes);
    found.push({ path, bytes: entry === null ? null : await reading(inspection, path, read) });
  }
  await examineTokenDocuments(inspection, found, isOpened);
}

export async function examineTokenDocuments(
  inspection: Inspection,
  [tokens, changes]: readonly FoundTokens[],
  isOpened: boolean,
): Promise<void> {
  const { path = "", bytes = null } = tokens ?? {};
  if (readTokens(bytes, null) === null) return reportDamaged(inspection, path, "it");
  const document = readTokens(bytes, changes?.bytes ?? null);
  if (document === null)
    return reportDamaged(inspection, changes?.path ?? path, bytes === null ? "it" : `it and ${path}`);
  for (const entry of document.refused) reportRefused(inspection, path, formatTokenName(entry));
  const forged = isOpened ? await forgedAmong(inspection, document.tokens) : [];
  for (const { name } of forged) reportRefused(inspection, path, name);
}

async function forgedAmong({ keys }: Inspection, tokens: readonly TokenRecord[]): Promise<readonly TokenRecord[]> {
  const valid = await validRecords(tokens, (texts, macs) => keys.verifyRecords(texts, macs));
  return tokens.filter((_, i) => valid[i] === null);
}

function reportDamaged(inspection: Inspection, path: string, files: string): void {
  const message = "it is damaged, or was written by a later version: no client token is valid";
  const remedy = `move ${files} away, and create the client tokens again`;
  inspection.report({ code: "tokens-damaged", path, message, remedy, fix: null });
}

function reportRefused(inspection: Inspection, path: string, name: string): void {
  const message = `the client token ${name} was added or changed outside of the server, and is not valid`;
  const remedy = `find out who writes to the vault's files; then remove it with  strongroom token revoke ${name}`;
  inspection.report({ code: "token-refused", path, message, remedy, fix: null });
}

function formatTokenName(entry: unknown): string {
  const name = typeof entry === "object" && entry !== null && "name" in entry ? entry.name : undefined;
  return typeof name === "string" ? JSON.stringify(name).slice(1, -1) : "without a name";
}

/** `isOpened`: the vault's key is there. */
export async function examineAudit(inspection: Inspection, isOpened: boolean): Promise<void> {
  const directory = auditDirectory(inspection.home.path);
  if ((await examine(inspection, directory, "directory")) === null) return;
  for (const entry of await directoryEntries(inspection, directory)) {
    const path = join(directory, entry.name);
    if (auditFileNumber(entry.name) === null) await reportStray(inspection, path, entry);
    else if ((await examine(inspection, path, "file")) === null) return;
  }
  const log = await reading(inspection, directory, () => verifyLog(directory));
  if (log === null) return;
  const judged = isOpened
    ? await judgeCheckpoints(log, (checkpoints) => inspection.keys.verifyCheckpoints(checkpoints.map(signedCheckpoint)))
    : null;
  for (const problem of [...log.problems, ...(judged?.problems ?? [])]) reportAudit(inspection, directory, problem);
}

function reportAudit(inspection: Inspection, directory: string, { file, message }: AuditProblem): void {
  const remedy = "find out who writes to the home; keep a copy of the audit directory, then move it away";
  inspection.report({ code: "audit-changed", path: join(directory, file), message, remedy, fix: null });
}
