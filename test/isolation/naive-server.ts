/**
 * A server as it is usually written: a JSON body parser, a passphrase in a string, a key on V8's heap that is wiped
 * with fill(0). The isolation tests must catch it.
 */

import { createDecipheriv, createHmac, scryptSync } from "node:crypto";
import { createServer } from "node:http";
import express from "express";

const app = express();
let key: Uint8Array | null = null;

app.post("/unlock", express.json(), (req, res) => {
  const { passphrase } = req.body as { passphrase: string };
  const kek = scryptSync(passphrase, "salt", 32, { N: 16384 });
  key = new Uint8Array(32);
  key.set(createHmac("sha256", kek).update("key").digest());
  createDecipheriv("aes-256-gcm", key, Buffer.alloc(12), { authTagLength: 16 });
  res.json({ ok: true });
});

app.post("/lock", (_req, res) => {
  key?.fill(0);
  key = null;
  res.json({ ok: true });
});

const server = createServer(app).listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.stdout.write(`${typeof address === "object" ? address?.port : ""}\n`);
});
