/** Steps shared by the tests with faults from outside: requests, expected errors, temp files, restart. */
import { readdirSync } from "node:fs";
import { expect } from "chai";
import type { ServerProcess } from "../../tools/rig/process.js";
import { passphrase, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { type ApiResponse, mustUnlock, secretTarget, send } from "../../tools/rig/test-client.js";

/** A secret's value; null when there is no such secret. */
export type State = string | null;

/** A put of the value, or a delete. */
export function change(server: TestServer, path: string, wanted: State): Promise<ApiResponse> {
  const target = { path: secretTarget(path) };
  return wanted === null
    ? send(server, { ...target, method: "DELETE" })
    : send(server, { ...target, method: "PUT", body: { value: wanted } });
}

export async function readState(server: TestServer, path: string): Promise<State> {
  const { status, json, text } = await send(server, { path: secretTarget(path) });
  expect(status, text).to.be.oneOf([200, 404]);
  return status === 200 ? String(json["value"]) : null;
}

export function mustBeClear({ status, json, text }: ApiResponse): void {
  expect(`${status} ${json["code"] ?? "ok"}`, text).to.be.oneOf(["200 ok", "503 UNAVAILABLE"]);
}

export function tempFiles({ vaultPath }: TestServer): string[] {
  return readdirSync(vaultPath, { recursive: true, encoding: "utf8" }).filter((name) => name.includes(".tmp-"));
}

export async function kill({ child, ended }: ServerProcess): Promise<void> {
  child.kill("SIGKILL");
  await ended;
}

/** Kills the server and starts another on its home; no temp file is left, and every secret is unchanged. */
export async function mustSurviveRestart(
  server: ServerProcess,
  states: ReadonlyMap<string, State>,
  passphraseNow = passphrase,
): Promise<TestServer> {
  await kill(server);
  const again = await startTestServer({ home: server.home });
  await mustHold(again, states, passphraseNow);
  return again;
}

/** Unlocks a server that was just started: no temp file is left, and every secret is unchanged. */
export async function mustHold(server: TestServer, states: ReadonlyMap<string, State>, passphraseNow = passphrase) {
  expect(tempFiles(server)).to.deep.equal([]);
  await mustUnlock(server, passphraseNow);
  for (const [path, state] of states) expect(await readState(server, path), path).to.equal(state);
}
