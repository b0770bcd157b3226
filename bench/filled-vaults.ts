/**
 * Vaults with many secrets, made quickly: a server makes an empty one, and the key worker's own code seals the secrets
 * into its tree, without an fsync for each.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import pMap from "p-map";
import { directoryName, secretFileName } from "../src/paths/file-name.js";
import { cleanUpMark, cleanUpTo, temporaryDirectory } from "../test/support/clean-up.js";
import { passphrase } from "../test/support/server.js";
import { mustInit, mustPut } from "../test/support/test-client.js";
import { parseHeader } from "../workers/crypto/header.js";
import { openHeader } from "../workers/crypto/master-key.js";
import { findAccess } from "../workers/crypto/slots.js";
import { utf8, wipe, withScratch } from "../workers/memory.js";
import type { Context } from "../workers/operations/context.js";
import { newContext } from "../workers/operations/key-worker.js";
import { seal } from "../workers/operations/secrets.js";
import type { Bytes } from "../workers/protocol.js";
import { type StartOptions, startStrongroom } from "./subjects.js";

export const valueBytes = 200;
export const perDirectory = 100;
const value = "v".repeat(valueBytes);

/** The path of the n-th secret of a filled vault; a directory holds a hundred. */
export function pathOf(n: number): string {
  const directory = String(Math.floor(n / perDirectory)).padStart(5, "0");
  return `team-${directory}/secret-${String(n % perDirectory).padStart(2, "0")}`;
}

/** Makes a home with a vault of `count` secrets and no server; removed at the end. */
export async function filledHome(count: number): Promise<string> {
  const home = join(temporaryDirectory(), "home");
  const mark = cleanUpMark();
  const { server } = await startStrongroom(home);
  await mustInit(server);
  await server.stop();
  await cleanUpTo(mark);
  await fill(join(home, "vault", "gen-1"), count);
  return home;
}

/** As `filledHome`, by the puts of another build, which may not be able to open what this one seals. */
export async function homeFilledBy(build: StartOptions, count: number): Promise<string> {
  const home = join(temporaryDirectory(), "home");
  const mark = cleanUpMark();
  const { server } = await startStrongroom(home, build);
  await mustInit(server);
  const numbers = Array.from({ length: count }, (_, n) => n);
  await pMap(numbers, (n) => mustPut(server, pathOf(n), { value, type: "api-key" }), { concurrency: 16 });
  await server.stop();
  await cleanUpTo(mark);
  return home;
}

async function fill(generation: string, count: number): Promise<void> {
  const context = await unlocked(join(generation, "header.json"));
  const body = JSON.stringify({ value, type: "api-key" });
  const now = Date.now();
  for (let n = 0; n < count; n++) {
    const path = pathOf(n);
    const sealed = seal(context, { op: "seal", path, body: utf8(body), previous: null, now });
    if (!sealed.ok) throw new Error(`a secret cannot be sealed: ${sealed.detail}`);
    writeBlob(join(generation, "secrets"), path, sealed.blob, n % perDirectory === 0);
  }
}

async function unlocked(headerFile: string): Promise<Context> {
  const header = parseHeader(utf8(readFileSync(headerFile, "utf8")));
  const typed = utf8(passphrase);
  const access = header && (await findAccess(header, typed));
  wipe(typed);
  const keys = access && withScratch(() => openHeader(header, access));
  if (keys === null) throw new Error("the vault's header does not open");
  const settings = { maxValueBytes: 2 ** 20, keepVersions: 0, keepVersionBytes: 0 };
  const context = newContext(settings, new Int32Array(new SharedArrayBuffer(4)));
  context.keyring.load(header);
  context.keyring.unlock(keys);
  return context;
}

function writeBlob(root: string, path: string, blob: Bytes, firstOfDirectory: boolean): void {
  const segments = path.split("/");
  const directories = segments.slice(0, -1).map(directoryName);
  const file = join(root, ...directories, secretFileName(segments.at(-1) ?? ""));
  if (firstOfDirectory) mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, blob, { mode: 0o600 });
}
