/** Handlers of the vault's lifecycle and of the server itself. */
import type { Request, Response } from "express";
import { VaultError } from "../errors.js";
import { maxFieldsBytes, readBody, sharedMemory } from "./body.js";
import { hasParameter, type Service } from "./endpoint.js";
import { contextOf, queryOf } from "./request.js";
import { sendBytes, sendJson, sendText } from "./response.js";

/** With `require=unlocked`, the response's status says whether the vault is ready. */
export async function status(service: Service, req: Request, res: Response): Promise<void> {
  const { vault, version, port, vaultPort, broker, isShuttingDown } = service;
  const mustBeUnlocked = requiresUnlocked(req);
  const found = await vault.report.status();
  const ports = { port, ...(vaultPort !== null && { vaultPort }), ...(broker && { brokerPort: broker.port }) };
  const body = { ...found, serverRunning: !isShuttingDown(), version, ...ports };
  sendJson(res, mustBeUnlocked && found.locked ? 503 : 200, body);
}

/** @throws VaultError BAD_REQUEST for any other requirement */
function requiresUnlocked(req: Request): boolean {
  const { query } = contextOf(req).target;
  if (query === "" || !hasParameter(query, "require")) return false;
  if (queryOf(req, ["require"]).get("require") === "unlocked") return true;
  throw new VaultError("BAD_REQUEST", "the parameter require is invalid: it must be unlocked");
}

export async function init({ vault }: Service, req: Request, res: Response): Promise<void> {
  const { keptAt, locked } = await vault.init(await readBody(req, res, maxFieldsBytes, sharedMemory));
  const kept = keptAt === null ? "" : `; the old vault is kept in ${keptAt}, under its old passphrase`;
  const { vaultPath } = await vault.report.status();
  sendJson(res, 200, {
    ok: true,
    message: `the vault is initialized and ${locked ? "was locked again at once" : "unlocked"}${kept}`,
    vaultPath,
  });
}

export async function lock({ vault }: Service, _req: Request, res: Response): Promise<void> {
  await vault.lock();
  sendJson(res, 200, { ok: true, message: "the vault is locked" });
}

export function shutdown({ shutDown }: Service, _req: Request, res: Response): void {
  res.setHeader("Connection", "close");
  sendJson(res, 200, { ok: true, message: "the vault is being locked and the server is stopping" });
  shutDown();
}

/** Sends a copy, because sent bytes are wiped. */
export function openapi({ contract }: Service, _req: Request, res: Response): void {
  sendBytes(res, 200, [Buffer.from(contract())]);
}

/** Version 0.0.4 of Prometheus' text format. */
const metricsType = "text/plain; version=0.0.4; charset=utf-8";

export async function metrics({ scrape }: Service, _req: Request, res: Response): Promise<void> {
  sendText(res, metricsType, await scrape());
}

const copied = "the snapshot contains only ciphertext: copy it, then remove it";
const frozen =
  "the disk takes no snapshot, so this is the vault itself, which refuses writes until the reader has ended: copy it, and " +
  "change nothing in it";

/** Sends the directory of the files that a backup copies. */
export async function snapshot({ vault }: Service, req: Request, res: Response): Promise<void> {
  const { directory, count, direct } = await vault.snapshot(readerOf(req));
  const taken = { ok: true, message: direct ? frozen : copied, directory, secretCount: count };
  sendJson(res, 200, direct ? { ...taken, direct } : taken);
}

const readerPattern = /^(?<pid>[1-9][0-9]{0,9}):(?<started>[ -~]{0,100})$/;

/** Returns the process that a frozen vault waits for; null unless it is named. @throws VaultError BAD_REQUEST */
function readerOf(req: Request): { readonly pid: number; readonly started: string } | null {
  const text = queryOf(req, ["reader"]).get("reader");
  if (text === undefined) return null;
  const { pid, started } = readerPattern.exec(text)?.groups ?? {};
  if (pid === undefined || started === undefined)
    throw new VaultError("BAD_REQUEST", "the parameter reader is invalid: give PID:START, as in openapi.json");
  return { pid: Number(pid), started };
}
