/** Requests on the passphrase and the keys of a test server. */
import { setTimeout as sleep } from "node:timers/promises";
import { passphrase, type TestServer } from "../../tools/rig/server.js";
import { type ApiResponse, mustStatus, mustSucceed, type Send, send } from "../../tools/rig/test-client.js";

/** `key`: its text. */
export type Key = { readonly id: string; readonly label: string; readonly key: string };

export function unlockWith(text: string): Send {
  return { method: "POST", path: "/v1/unlock", body: { passphrase: text } };
}

export function changing(from: string, to: string): Send {
  return { method: "POST", path: "/v1/passphrase", body: { passphrase: from, newPassphrase: to } };
}

export function creating(label: string, text = passphrase): Send {
  return { method: "POST", path: "/v1/keys", body: { passphrase: text, label } };
}

export function deleting(id: string): Send {
  return { method: "DELETE", path: `/v1/keys/${id}` };
}

export async function mustCreateKey(server: TestServer, label = "recovery", text = passphrase): Promise<Key> {
  return mustSucceed(await send(server, creating(label, text))) as Key;
}

export async function mustListKeys(server: TestServer): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { keys } = mustSucceed(await send(server, { path: "/v1/keys" }));
  return keys as readonly Readonly<Record<string, unknown>>[];
}

/** Returns "200", or the status and code of a refusal. */
export function formatOutcome({ status, json }: ApiResponse): string {
  return status === 200 ? "200" : `${status} ${String(json["code"])}`;
}

export function rotating(keys: readonly string[] = [], text = passphrase): Send {
  return { method: "POST", path: "/v1/rotate", body: { passphrase: text, keys } };
}

export async function mustRotate(server: TestServer, keys: readonly string[] = []): Promise<readonly string[]> {
  return mustSucceed(await send(server, rotating(keys)))["removed"] as readonly string[];
}

/** Waits until the status says no rotation; `poll` is called each time it does. */
export async function untilRotated(server: TestServer, poll: () => void = () => {}): Promise<void> {
  while ((await mustStatus(server))["rotation"] !== undefined) {
    poll();
    await sleep(5);
  }
}
