/**
 * An Express 5 app that does Strongroom's work with the same libraries, as a competent developer would write it without
 * regard to speed. Files are read and replaced durably, entries are sealed and opened with AES-256-GCM in piscina's worker
 * threads, and every request passes helmet, a rate limit and a token check.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import express, { type RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import helmet from "helmet";
import { Piscina } from "piscina";
import { replaceDurably } from "./durable-replace.js";
import { listen, mustHave } from "./listen.js";
import type { Entry } from "./naive-worker.js";

const secrets = mustHave("BENCH_SECRETS");
const token = mustHave("BENCH_TOKEN");

/** One lasting thread per CPU: piscina's default ends and starts threads all the time, an unfair comparison. */
const pool = new Piscina({
  minThreads: availableParallelism(),
  maxThreads: availableParallelism(),
  filename: new URL("./naive-worker.js", import.meta.url).href,
  workerData: { key: randomBytes(32) },
});

const app = express();
app.use(helmet());
app.use(rateLimit({ windowMs: 60_000, limit: 1e9 })); // never reached: a refused request does no work
app.get("/v1/status", (_req, res) => {
  res.json({ initialized: true, locked: false, secretCount: 0, serverRunning: true });
});
app.use(requireToken());
app.use(express.json({ limit: "10mb", type: () => true }));

app.get("/v1/secrets/*path", async (req, res) => {
  const path = joinPath(req.params.path);
  res.json({ path, ...(await readEntry(path)) });
});

app.put("/v1/secrets/*path", async (req, res) => {
  const path = joinPath(req.params.path);
  const { value, type, description } = req.body as { value: string; type?: string; description?: string };
  const now = new Date().toISOString();
  const previous = await readEntry(path).catch(() => null);
  const entry = { value, metadata: { type, description }, createdAt: previous?.createdAt ?? now, updatedAt: now };
  await store(secretFile(path), await pool.run({ path, entry }, { name: "seal" }));
  res.json({ ok: true, path, bytes: Buffer.byteLength(value), metadata: entry.metadata });
});

listen(app);

function requireToken(): RequestHandler {
  return (req, res, next) => {
    const [, presented = ""] = /^Bearer (.+)$/i.exec(req.headers.authorization ?? "") ?? [];
    if (timingSafeEqual(sha256(presented), sha256(token))) return next();
    res.status(401).json({ error: "the token is missing or wrong", code: "UNAUTHORIZED" });
  };
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function joinPath(segments: string | string[]): string {
  return [segments].flat().join("/");
}

function secretFile(path: string): string {
  return join(secrets, ...path.split("/").map(encodeURIComponent));
}

async function readEntry(path: string): Promise<Entry> {
  const blob = await readFile(secretFile(path));
  return pool.run({ path, blob }, { name: "open" });
}

async function store(file: string, blob: Uint8Array): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await replaceDurably(file, blob);
}
