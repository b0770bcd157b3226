/** Steps of the demonstration: the states of a vault, and where its secrets are found after each. */

import { decodeKeys, type Keys } from "../rig/decoder.js";
import { hitsIn, type Snapshots, takeSnapshots } from "../rig/heap-snapshot.js";
import { type ServerProcess, startProcess } from "../rig/process.js";
import { scanProcess } from "../rig/scanner.js";
import { mustGet, mustInit, mustLock, mustPut, mustStatus, mustUnlock } from "../rig/test-client.js";
import type { Row, Step } from "./printout.js";

const passphrase = "correct horse battery staple";
const secretValue = "s3cr3t-value-that-must-not-leak";
const canary = "canary-in-the-front-end";
const idleTimeoutMs = 8_000;

/** Runs the steps on servers of its own and yields the findings of each. */
export async function* playSteps(): AsyncGenerator<Step> {
  const settings = { STRONGROOM_SERVER_NAMES: canary, STRONGROOM_SCRYPT_LOG_N: "17" };
  const server = await startProcess([], { ...settings, STRONGROOM_IDLE_TIMEOUT_MS: "0" });
  await mustInit(server, { passphrase });
  const keys = decodeKeys(server.home, passphrase);
  yield await look(server, keys, "init: a new vault, unlocked", true);
  for (let i = 0; i < 20; i++) await mustPut(server, `app/${i}`, secretValue);
  yield await look(server, keys, "20 puts", true);
  for (let i = 0; i < 20; i++) await mustGet(server, `app/${i}`);
  yield await look(server, keys, "20 gets", true);
  await mustLock(server);
  yield await look(server, keys, "lock", false);
  await mustUnlock(server, passphrase);
  yield await look(server, keys, "unlock", true);
  await mustInit(server, { passphrase: "another passphrase", force: true });
  yield await look(server, keys, "forced re-init: the secrets of the vault before it", false);
  await server.stop();
  yield await idleLock(settings);
}

/** On a server of its own: on a busy machine the scans of the other steps may take longer than the timeout. */
async function idleLock(settings: Readonly<Record<string, string>>): Promise<Step> {
  const server = await startProcess([], { ...settings, STRONGROOM_IDLE_TIMEOUT_MS: String(idleTimeoutMs) });
  await mustInit(server, { passphrase });
  await mustPut(server, "app/0", secretValue);
  const keys = decodeKeys(server.home, passphrase);
  while ((await mustStatus(server))["locked"] === false) await new Promise((resolve) => setTimeout(resolve, 100));
  await new Promise((resolve) => setTimeout(resolve, 500));
  return look(server, keys, `idle lock, after ${idleTimeoutMs / 1000} s without activity`, false);
}

async function look(server: ServerProcess, keys: Keys, step: string, unlocked: boolean): Promise<Step> {
  const wanted = {
    "master key": keys.masterKey,
    KEK: keys.kek,
    passphrase: Buffer.from(passphrase),
    "secret value": Buffer.from(secretValue),
    "canary (a server name)": Buffer.from(canary),
  };
  const found = scanProcess(server.child.pid ?? 0, new Map<string, Uint8Array>(Object.entries(wanted)));
  const snapshots = await takeSnapshots(server);
  const rows = Object.entries(wanted).map(([secret, bytes]) => {
    const { full, half } = found.get(secret) ?? { full: -1, half: -1 };
    return judge({ secret, process: full, halves: half, ...hits(snapshots, bytes) }, unlocked);
  });
  return { step, rows };
}

function hits({ frontEnd, keyWorker }: Snapshots, secret: Uint8Array): Pick<Row, "frontEnd" | "keyWorker"> {
  const text = Buffer.from(secret).toString("utf8");
  const form = Buffer.from(text).equals(secret) ? text : secret;
  return { frontEnd: hitsIn(frontEnd, form), keyWorker: hitsIn(keyWorker, form) };
}

function judge(found: Omit<Row, "expected" | "holds">, unlocked: boolean): Row {
  const { secret, frontEnd, keyWorker, process, halves } = found;
  const inHeaps = (frontEnd ?? 0) + (keyWorker ?? 0);
  if (secret.startsWith("canary")) {
    return { ...found, expected: "found, or nothing here counts", holds: (frontEnd ?? 0) > 0 && process > 0 };
  }
  if (secret === "secret value") {
    return { ...found, expected: "never a string; bytes may pass through", holds: inHeaps === 0 };
  }
  const copies = secret === "master key" && unlocked ? 1 : 0;
  const expected = copies === 1 ? "once, as bytes of the key worker" : "nowhere";
  return { ...found, expected, holds: inHeaps === 0 && process === copies && halves === 0 };
}
