/** Random values that are put, read, restored and deleted, encrypted and decrypted: afterwards no copy of them may be left. */
import { createHash, randomBytes } from "node:crypto";
import { holdElsewhere } from "./control.js";
import { copyMemory } from "./memory.js";
import { CouldNotLook } from "./report.js";
import { type Secret, SecretSearch } from "./search.js";
import { type Server, target } from "./server.js";

/** Sends the values through the server's operations; returns them, to be searched for. */
export async function followCanary(server: Server): Promise<Secret[]> {
  const path = newPath();
  const values = [1, 2, 3].map(() => randomBytes(24).toString("base64url"));
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
  return values.map(followed);
}

function followed(value: string): Secret {
  return { name: "the value that was followed", bytes: Buffer.from(value), isText: false, pieceBytes: 8 };
}

function newPath(): string {
  return `strongroom-prove/${randomBytes(8).toString("hex")}`;
}

function json(object: object): Buffer {
  return Buffer.from(JSON.stringify(object));
}

/** A value that the server has read and must not hold, for others to search for as well; `control` is a process that holds it. */
export type Challenge = {
  readonly pid: number;
  readonly control: number;
  readonly value: string;
  readonly sha256: string;
};

/** Stores and reads a random value, lets others search while `wait` runs, and deletes it; returns it and what the control has. */
export async function challenge(
  server: Server,
  pid: number,
  wait: (challenge: Challenge) => Promise<void>,
): Promise<{ readonly secret: Secret; readonly inControl: number }> {
  const path = newPath();
  const value = randomBytes(24).toString("base64url");
  const secret = followed(value);
  const control = await holdElsewhere(secret.bytes);
  try {
    await server.must("PUT", target("/v1/secrets", path), json({ value }));
    await server.must("GET", target("/v1/secrets", path));
    const sha256 = createHash("sha256").update(value).digest("hex");
    await wait({ pid, control: control.pid, value, sha256 });
    const search = new SecretSearch([secret]);
    search.searchCopy(await copyMemory(control.pid));
    return { secret, inControl: search.take().reduce((sum, [, { copies }]) => sum + copies.length, 0) };
  } finally {
    await control.end();
    await deleteValue(server, path);
  }
}

/** @throws CouldNotLook when the vault was locked while others searched */
async function deleteValue(server: Server, path: string): Promise<void> {
  const { status } = await server.send("DELETE", target("/v1/secrets", path));
  if (status === 200 || status === 404) return;
  throw new CouldNotLook(
    `the vault was locked during the challenge: unlock it, and remove the value with  strongroom rm ${path}`,
  );
}

/** Uses a transit key of its own, which is deleted afterwards. */
async function followPlaintext(server: Server, name: string, plaintext: string): Promise<void> {
  const post = (root: string, body: object) => server.must("POST", target(`/v1/transit/${root}`, name), json(body));
  await post("keys", { type: "aes256-gcm96" });
  try {
    const { ciphertext } = await post("encrypt", { plaintext: Buffer.from(plaintext).toString("base64") });
    await post("decrypt", { ciphertext });
  } finally {
    const key = target("/v1/transit/keys", name);
    await server.send("POST", `${key}/config`, json({ deletionAllowed: true }));
    await server.send("DELETE", key);
  }
}
