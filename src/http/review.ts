/** The review page: its files, and the endpoints of its token and of what it shows. Nothing here can show a secret. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SharedBytes } from "../../workers/protocol.js";
import { copySecret } from "../../workers/registers.js";
import type { Caller } from "../access/credentials.js";
import type { ReviewAccess } from "../access/review.js";
import { change } from "../audit/record.js";
import { VaultError } from "../errors.js";
import { weaknesses } from "../hardening.js";
import { readPackageFile } from "../manifest.js";
import { packageDirectory } from "../program-files.js";
import { fields, passphrase } from "./body.js";
import { type BasicCall, endpoint, json, type Lines, none, type Page, type Service, type Whole } from "./endpoint.js";
import { parseQuery } from "./routes.js";
import { startGets } from "./storm-gets.js";

/** Scripts and styles of the page's own files only; no markup from text (Trusted Types); requests to this server only. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const pageFiles: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/review/": ["dist/program/review/index.html", "text/html; charset=utf-8"],
  "/review/review.css": ["dist/program/review/review.css", "text/css; charset=utf-8"],
  "/review/review.js": ["dist/program/review/review.js", "text/javascript; charset=utf-8"],
};

/** Returns a file of the page, which needs no token; null when the path is none, or while the page is off. */
export function reviewPage({ review }: Service, method: string, path: string): Page | null {
  const found = method === "GET" ? pageFiles[path] : undefined;
  if (!review?.isOn || found === undefined) return null;
  const [file, type] = found;
  return { type, policy, body: Buffer.from(readPackageFile(file)) };
}

const maxCodeBytes = 1024;
const stormSize = 16;

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const reviewRows = [
  endpoint({
    operation: "createReview", at: "POST /v1/review", scope: "root", guard: "key", audit: change("review"),
    subject: none, body: null, conditional: false, reads: false,
    handle({ service }) {
      const { code, expiresInSeconds } = mustBeOn(service).createCode();
      return json({ ok: true, code, expiresInSeconds, url: `https://localhost:${service.port}/review/#${code}` });
    },
  }),
  endpoint({
    operation: "tradeReviewCode", at: "POST /v1/review/token", scope: "login", guard: "none", audit: null,
    subject: none, body: fields(maxCodeBytes), conditional: false, reads: false,
    handle: ({ service, body }) => json({ ok: true, ...mustBeOn(service).trade(codeIn(body)) }),
  }),
  endpoint({
    operation: "reviewFacts", at: "GET /v1/review", scope: "page", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: async ({ service }) => json(await facts(service)),
  }),
  endpoint({
    operation: "reviewStorm", at: "POST /v1/review/storm", scope: "page", guard: "passphrase", audit: change("review-storm"),
    subject: none, body: passphrase, conditional: false, reads: false,
    handle: storm,
  }),
  endpoint({
    operation: "vitals", at: "GET /v1/vitals", scope: "metrics", guard: "none", audit: null,
    subject: none, body: null, conditional: false, query: readLines, reads: true,
    handle: showVitals,
  }),
];

/** @throws VaultError NOT_FOUND */
function mustBeOn({ review }: Service): ReviewAccess {
  if (review !== null) return review;
  throw new VaultError("NOT_FOUND", "the review page is off: start the server without --review-page off");
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
function showVitals({
  service,
  caller,
  query: wanted,
}: BasicCall & { readonly caller: Caller; readonly query: number }): Lines {
  const session = caller !== "root" && caller.session ? caller.key : null;
  return {
    type: "application/x-ndjson",
    lines(send, end) {
      let left = wanted;
      if (session !== null) service.review?.opened(session);
      const unwatch = service.vitals.watch((line) => {
        send(line);
        if (--left === 0) end();
      });
      return () => {
        unwatch();
        if (session !== null) service.review?.closed(session);
      };
    },
  };
}

/** @throws VaultError BAD_REQUEST */
function readLines(query: string): number {
  const text = parseQuery(query, ["lines"]).get("lines");
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= 3600) return Number(text);
  throw new VaultError("BAD_REQUEST", "the parameter lines must be a whole number from 1 to 3600");
}

/** Who holds what, ways in, tokens, hardening and the files of the program. */
async function facts(service: Service): Promise<object> {
  mustBeOn(service);
  const { vault, tokens, version } = service;
  const { locked } = await vault.report.status();
  return {
    version,
    node: process.version,
    keys: { frontEnd: 0, keyWorker: locked ? 0 : 1 },
    slots: vault.report.slots(),
    tokens: tokens.list(),
    weaknesses: await weaknesses(),
    lastProve: await service.lastProve(),
    audit: locked ? null : await service.checkAuditLog(),
    files: programFiles(),
  };
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

/**
 * Checks a passphrase 16 times, while gets run beside that; a wrong passphrase is checked once. The vault must be unlocked, so
 * that nothing is opened by it.
 */
async function storm({ service, vault, body, permit }: BasicCall & { readonly body: SharedBytes }): Promise<Whole> {
  const review = mustBeOn(service);
  const copies = Array.from({ length: stormSize }, () => sharedCopy(body));
  try {
    vault.mustBeUnlocked();
    const [first, ...others] = copies;
    const began = performance.now();
    if (first !== undefined) await vault.unlock(first, permit);
    const reader = review.createReader();
    const endGets = await startGets(service.socket, reader.token, service.vitals);
    const unlocks = await Promise.allSettled(others.map((copy) => vault.unlock(copy, () => {})));
    const durationMs = Math.round(performance.now() - began);
    const figures = await endGets();
    reader.end();
    for (const unlock of unlocks) if (unlock.status === "rejected") throw unlock.reason;
    return json({ ok: true, unlocks: stormSize, durationMs, ...figures });
  } finally {
    for (const copy of copies) copy.fill(0);
  }
}

function sharedCopy(body: SharedBytes): SharedBytes {
  const copy = new Uint8Array(new SharedArrayBuffer(body.length));
  copySecret(copy, body);
  return copy;
}
