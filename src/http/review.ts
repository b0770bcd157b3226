/** The review page: its files, its token, and what it shows. Nothing here can show a secret. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Request, Response } from "express";
import type { ReviewAccess } from "../access/review.js";
import { VaultError } from "../errors.js";
import { weaknesses } from "../hardening.js";
import { readPackageFile } from "../manifest.js";
import { packageDirectory } from "../program-files.js";
import { maxFieldsBytes, ownMemory, readBody, sharedMemory } from "./body.js";
import type { Service } from "./endpoint.js";
import { requireValidToken } from "./guards.js";
import { callerOf, contextOf, queryOf } from "./request.js";
import { beginStream, sendJson, sendPage } from "./response.js";

/** Scripts and styles of the page's own files only; no markup from text (Trusted Types); requests to this server only. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const pageFiles: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/review/": ["review/index.html", "text/html; charset=utf-8"],
  "/review/review.css": ["review/review.css", "text/css; charset=utf-8"],
  "/review/review.js": ["review/review.js", "text/javascript; charset=utf-8"],
};

/** Sends a file of the page, which needs no token; returns false when the path is none, or the page is off. */
export function sendReviewPage({ review }: Pick<Service, "review">, req: Request, res: Response): boolean {
  const found = req.method === "GET" ? pageFiles[contextOf(req).target.path] : undefined;
  if (review === null || found === undefined) return false;
  const [file, type] = found;
  sendPage(res, type, Buffer.from(readPackageFile(file)), policy);
  return true;
}

/** @throws VaultError NOT_FOUND */
function mustBeOn({ review }: Service): ReviewAccess {
  if (review !== null) return review;
  throw new VaultError("NOT_FOUND", "the review page is off: start the server with --review-page");
}

export function createReview(service: Service, _req: Request, res: Response): void {
  const review = mustBeOn(service);
  service.vault.mustBeUnlocked();
  const { code, expiresInSeconds } = review.createCode();
  sendJson(res, 200, { ok: true, code, expiresInSeconds, url: `https://localhost:${service.port}/review/#${code}` });
}

const maxCodeBytes = 1024;

export async function tradeReviewCode(service: Service, req: Request, res: Response): Promise<void> {
  const review = mustBeOn(service);
  const body = await readBody(req, res, maxCodeBytes, ownMemory);
  sendJson(res, 200, { ok: true, ...review.trade(codeIn(body)) });
}

/** @throws VaultError BAD_REQUEST */
function codeIn(body: Uint8Array): string {
  try {
    const { code } = JSON.parse(Buffer.from(body).toString("utf8")) as { code?: unknown };
    if (typeof code === "string") return code;
  } catch {
    // refused below
  }
  throw new VaultError("BAD_REQUEST", 'the body must be {"code": text}');
}

/** A line of JSON each second, until the client ends it, the token ends or the server stops. */
export function vitals(service: Service, req: Request, res: Response): void {
  const caller = callerOf(req);
  const session = caller !== "root" && caller.session ? caller.key : null;
  let left = linesWanted(req);
  if (!beginStream(res, "application/x-ndjson")) return;
  res.flushHeaders();
  if (session !== null) service.review?.opened(session);
  const unwatch = service.vitals.watch((line) => {
    const isOver = !isValid(req) || service.isShuttingDown();
    if (!isOver && res.writableLength < maxUnread) res.write(line);
    left--;
    if (!isOver && left > 0) return;
    unwatch(); // a client that does not read keeps the response open after its end
    res.end();
  });
  res.once("close", () => {
    unwatch();
    if (session !== null) service.review?.closed(session);
  });
}

/** @throws VaultError BAD_REQUEST */
function linesWanted(req: Request): number {
  const text = queryOf(req, ["lines"]).get("lines");
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= 3600) return Number(text);
  throw new VaultError("BAD_REQUEST", "the parameter lines must be a whole number from 1 to 3600");
}

/** Bytes that a client may leave unread before lines are skipped. */
const maxUnread = 64 * 1024;

function isValid(req: Request): boolean {
  try {
    requireValidToken(req);
    return true;
  } catch {
    return false;
  }
}

/** Who holds what, ways in, tokens, hardening and the files of the program. */
export async function reviewFacts(service: Service, _req: Request, res: Response): Promise<void> {
  mustBeOn(service);
  const { vault, tokens, version } = service;
  const { locked } = await vault.report.status();
  sendJson(res, 200, {
    version,
    node: process.version,
    keys: { frontEnd: 0, keyWorker: locked ? 0 : 1 },
    slots: vault.report.slots(),
    tokens: tokens.list(),
    weaknesses: await weaknesses(),
    lastProve: await service.lastProve(),
    audit: locked ? null : await service.checkAuditLog(),
    files: programFiles(),
  });
}

const folders = ["bin", "dist/program", "dist/workers"];

/** SHA-256 of the program's files as they are on disk now. */
function programFiles(): { readonly name: string; readonly sha256: string }[] {
  return folders.flatMap((folder) => {
    const names = readdirSync(join(packageDirectory, folder)).filter((name) => name.endsWith(".cjs"));
    return names.sort().map((name) => {
      const bytes = readFileSync(join(packageDirectory, folder, name));
      return { name: `${folder}/${name}`, sha256: createHash("sha256").update(bytes).digest("hex") };
    });
  });
}

const stormSize = 16;

/** Checks a passphrase 16 times; a wrong one only once. The vault must be unlocked, so nothing is opened by it. */
export async function reviewStorm(service: Service, req: Request, res: Response): Promise<void> {
  mustBeOn(service);
  const { vault, passphraseLockout } = service;
  const body = await readBody(req, res, maxFieldsBytes, sharedMemory);
  const copies = Array.from({ length: stormSize }, () => copyOf(body));
  body.fill(0);
  try {
    vault.mustBeUnlocked();
    const [first, ...others] = copies;
    const began = performance.now();
    if (first !== undefined) await vault.unlock(first, () => passphraseLockout.check(req));
    await Promise.all(others.map((copy) => vault.unlock(copy, () => {})));
    sendJson(res, 200, { ok: true, unlocks: stormSize, durationMs: Math.round(performance.now() - began) });
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== "UNAUTHORIZED") throw error;
    passphraseLockout.check(req);
    passphraseLockout.fail(req);
    throw new VaultError("UNAUTHORIZED", error.message, { credential: "passphrase" });
  } finally {
    for (const copy of copies) copy.fill(0);
  }
}

function copyOf(body: Uint8Array<SharedArrayBuffer>): Uint8Array<SharedArrayBuffer> {
  const copy = new Uint8Array(new SharedArrayBuffer(body.length));
  copy.set(body);
  return copy;
}
