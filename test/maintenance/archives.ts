/** Shared helpers for backup and restore tests: a filled server, the two commands, and hand-made archives. */
import { createHash } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Header } from "tar";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import type { Ended } from "../../tools/rig/process.js";
import { realScryptCost, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustPut, mustUnlock } from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";

export const secrets: Readonly<Record<string, string>> = {
  "app/db/password": "s3cr3t",
  "app/db": "",
  Über: "ü".repeat(1000),
  [`${"d/".repeat(20)}end`]: "deep",
  large: "x".repeat(300_000),
  [`long/${"n".repeat(240)}`]: "a name that needs an extended header",
};

export async function startFilled(): Promise<TestServer> {
  const server = await startTestServer(realScryptCost);
  await mustInit(server);
  for (const [path, value] of Object.entries(secrets)) await mustPut(server, path, value);
  return server;
}

export function backup(home: string, file: string, ...flags: string[]): Promise<Ended> {
  return run(["backup", file, ...flags], { STRONGROOM_HOME: home });
}

export function restore(home: string, file: string, ...flags: string[]): Promise<Ended> {
  return run(["restore", file, ...flags], { STRONGROOM_HOME: home });
}

export function must({ code, stdout, stderr }: Ended): string {
  expect([code, stderr]).to.deep.equal([0, ""]);
  return stdout;
}

/** Starts a server on a restored home and reads every secret back. */
export async function mustHold(home: string, wanted: Readonly<Record<string, string>>): Promise<void> {
  const server = await startTestServer({ home });
  await mustUnlock(server);
  expect((await mustList(server)).map(({ path }) => path)).to.have.members(Object.keys(wanted));
  for (const [path, value] of Object.entries(wanted)) expect((await mustGet(server, path))["value"]).to.equal(value);
  await server.stop();
}

/** Work directories and temp files of backup and restore. */
export function leftovers(home: string): string[] {
  return readdirSync(join(home, "vault")).filter((name) => /^(?:snapshot|restore)-|tmp/.test(name));
}

export type Entry = {
  readonly name: string;
  readonly content?: string;
  readonly type?: "SymbolicLink" | "Link" | "FIFO" | "NextFileHasLongPath";
};

/** A tar file of exactly these entries. */
export function writeArchive(entries: readonly Entry[]): string {
  const file = join(temporaryDirectory(), "made.tar");
  writeFileSync(file, Buffer.concat([...entries.map(tarBlocks), Buffer.alloc(1024)]));
  return file;
}

/** An archive with correct checksums, so that only its entries can be wrong. */
export function writeSummedArchive(entries: readonly Entry[]): string {
  const lines = entries.map(({ name, content = "" }) => {
    return `${createHash("sha256").update(content).digest("hex")}  ${name}\n`;
  });
  return writeArchive([...entries, { name: "SHA256SUMS", content: lines.sort().join("") }]);
}

function tarBlocks({ name, content = "", type }: Entry): Buffer {
  const size = Buffer.byteLength(content);
  const linkpath = type === undefined ? {} : { linkpath: "/etc/hostname" };
  const header = new Header({ path: name, size, mode: 0o600, type: type ?? "File", mtime: new Date(0), ...linkpath });
  header.encode();
  const padding = Buffer.alloc((512 - (size % 512)) % 512);
  return Buffer.concat([header.block ?? Buffer.alloc(0), Buffer.from(content), padding]);
}
