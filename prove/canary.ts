/** Random values that are put, read, restored and deleted, encrypted and decrypted: afterwards no copy of them may be left. */
import { randomBytes } from "node:crypto";
import type { Secret } from "./search.js";
import { type Server, target } from "./server.js";

/** Sends the values through the server's operations; returns them, to be searched for. */
export async function followCanary(server: Server): Promise<Secret[]> {
  const path = `strongroom-prove/${randomBytes(8).toString("hex")}`;
  const values = [1, 2, 3].map(() => randomBytes(24).toString("base64url"));
  const json = (object: object) => Buffer.from(JSON.stringify(object));
  const [first = "", second = "", plaintext = ""] = values;
  try {
    await server.must("PUT", target("/v1/secrets", path), json({ value: first }));
    await server.must("GET", target("/v1/secrets", path));
    await server.must("PUT", target("/v1/secrets", path), json({ value: second }));
    await server.must("POST", "/v1/batch", json({ operations: [{ get: path }] }));
    await server.must("POST", target("/v1/versions", path), json({ version: 1 }));
  } finally {
    await server.send("DELETE", target("/v1/secrets", path));
  }
  await followPlaintext(server, path, plaintext);
  return values.map((value) => ({
    name: "the value that was followed",
    bytes: Buffer.from(value),
    isText: false,
    pieceBytes: 8,
  }));
}

/** Uses a transit key of its own, which is deleted afterwards. */
async function followPlaintext(server: Server, name: string, plaintext: string): Promise<void> {
  const post = (root: string, body: object) =>
    server.must("POST", target(`/v1/transit/${root}`, name), Buffer.from(JSON.stringify(body)));
  await post("keys", { type: "aes256-gcm96" });
  try {
    const { ciphertext } = await post("encrypt", { plaintext: Buffer.from(plaintext).toString("base64") });
    await post("decrypt", { ciphertext });
  } finally {
    const key = target("/v1/transit/keys", name);
    await server.send("POST", `${key}/config`, Buffer.from('{"deletionAllowed":true}'));
    await server.send("DELETE", key);
  }
}
