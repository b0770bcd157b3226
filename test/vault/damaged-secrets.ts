/** Secrets for the integrity tests: three kinds that are damaged, and a witness that must stay readable. */
import { expect } from "chai";
import { startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  mustGet,
  mustInit,
  mustPut,
  mustRefuse,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";

export const kinds: Readonly<Record<string, { readonly path: string; readonly body: object }>> = {
  "an empty value without metadata": { path: "empty", body: { value: "" } },
  "type, description and value beyond ASCII": {
    path: "grüße/🗝️/密码",
    body: { value: "pässwörd \u0000\u2028 🗝️", type: "password", description: "für den Schlüsselbund – 密码" },
  },
  "a longer value": { path: "a/long/one", body: { value: "0123456789abcdef".repeat(10), type: "certificate" } },
};

export const allPaths = Object.values(kinds).map(({ path }) => path);
/** A secret that is never damaged. */
export const witness = "witness/of/others";

/** A server with them, which reads its files again each time. */
export async function startPrepared(): Promise<TestServer> {
  const server = await startTestServer(uncached);
  await prepare(server);
  return server;
}

export async function prepare(server: TestServer): Promise<void> {
  await mustInit(server);
  for (const { path, body } of Object.values(kinds)) await mustPut(server, path, body);
  await mustPut(server, witness, "readable");
  for (let time = 0; time < 3; time++) for (const path of allPaths) await mustGet(server, path); // then they are remembered
}

function get(server: TestServer, path: string): Promise<ApiResponse> {
  return send(server, { path: secretTarget(path) });
}

export function put(server: TestServer, path: string, value = "overwritten"): Promise<ApiResponse> {
  return send(server, { method: "PUT", path: secretTarget(path), body: { value } });
}

/** Asserts that a get fails with INTEGRITY, names the path and a remedy, and contains no value. */
export async function mustRefuseGet(server: TestServer, path: string, what: string): Promise<void> {
  const refused = await get(server, path);
  expect(refused.text, what).not.to.contain('"value"');
  mustRefuse(refused, 500, "INTEGRITY");
  expect(refused.json["error"])
    .to.contain(path)
    .and.to.match(/backup|not a plain file/);
}
