/** A vault server as it is usually written: the control of the demonstration, in whose memory the search must find secrets. */
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from "node:crypto";
import type { AddressInfo } from "node:net";
import express from "express";

const app = express().use(express.json());
const sealed = new Map<string, Buffer>();
let key: string | null = null;

app.post("/unlock", (req, res) => {
  const { passphrase } = req.body as { passphrase: string };
  key = scryptSync(passphrase, "salt", 32).toString("hex");
  res.json({ ok: true });
});

app.post("/lock", (_req, res) => {
  key = null;
  res.json({ ok: true });
});

app.put("/secrets/:name", (req, res) => {
  if (key === null) return res.status(403).json({ ok: false });
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", Buffer.from(key, "hex"), nonce);
  const text = Buffer.concat([cipher.update((req.body as { value: string }).value), cipher.final()]);
  sealed.set(req.params.name, Buffer.concat([nonce, text, cipher.getAuthTag()]));
  return res.json({ ok: true });
});

app.get("/secrets/:name", (req, res) => {
  const blob = sealed.get(req.params.name);
  if (!key || !blob) return res.status(403).json({ ok: false });
  const decipher = createDecipheriv("aes-256-gcm", Buffer.from(key, "hex"), blob.subarray(0, 12));
  decipher.setAuthTag(blob.subarray(-16));
  const value = Buffer.concat([decipher.update(blob.subarray(12, -16)), decipher.final()]).toString();
  return res.json({ ok: true, value });
});

const server = app.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.stdin.on("end", () => process.exit()).resume();
