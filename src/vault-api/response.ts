/** Responses in the forms of Vault. */
import { randomUUID } from "node:crypto";
import { json, type Whole } from "../http/endpoint.js";

/** Some clients compare it as a whole. */
export const jsonType = "application/json";

/** Returns what a key worker made, the JSON of `data`, in Vault's envelope. */
export function data(bytes: Uint8Array, status = 200, warnings: readonly string[] | null = null): Whole {
  const start = `{"request_id":"${randomUUID()}","lease_id":"","renewable":false,"lease_duration":0,"data":`;
  const end = `,"wrap_info":null,"warnings":${JSON.stringify(warnings)},"auth":null}\n`;
  return { status, pieces: [Buffer.from(start), bytes, Buffer.from(end)], type: jsonType };
}

/** Like `data`, for an object that is not secret. `beside`: members next to `data`, such as `auth`. */
export function object(members: object | null, beside: object = {}): Whole {
  const envelope = { request_id: randomUUID(), lease_id: "", renewable: false, lease_duration: 0, data: members };
  return plain({ ...envelope, wrap_info: null, warnings: null, auth: null, ...beside });
}

/** An object without an envelope, as some of `sys` are. */
export function plain(body: object, status = 200): Whole {
  return { ...json(body, status), type: jsonType };
}

/** Done, with nothing to say. */
export const nothing: Whole = { status: 204, pieces: [] };
