/** A random value that is put, read, put again, restored and deleted: afterwards no copy of it may be left. */
import { randomBytes } from "node:crypto";
import type { Secret } from "./search.js";
import { type Server, target } from "./server.js";

/** Sends the values through the server's operations; returns them, to be searched for. */
export async function followCanary(server: Server): Promise<Secret[]> {
  const path = `strongroom-prove/${randomBytes(8).toString("hex")}`;
  const values = [1, 2].map(() => randomBytes(24).toString("base64url"));
  const json = (object: object) => Buffer.from(JSON.stringify(object));
  const [first = "", second = ""] = values;
  try {
    await server.must("PUT", target("/v1/secrets", path), json({ value: first }));
    await server.must("GET", target("/v1/secrets", path));
    await server.must("PUT", target("/v1/secrets", path), json({ value: second }));
    await server.must("POST", "/v1/batch", json({ operations: [{ get: path }] }));
    await server.must("POST", target("/v1/versions", path), json({ version: 1 }));
  } finally {
    await server.send("DELETE", target("/v1/secrets", path));
  }
  return values.map((value) => ({
    name: "the value that was followed",
    bytes: Buffer.from(value),
    isText: false,
    pieceBytes: 8,
  }));
}
