/** Damage to the vault's files under a running or stopped server, as by a failing disk or by mistake. */
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { directoryName, secretFileName } from "../../src/paths/file-name.js";
import type { TestServer } from "../../tools/rig/server.js";

/** The file of a secret, in the current vault by default. */
export function blobFile(
  { home }: Pick<TestServer, "home">,
  path: string,
  generation = currentGeneration(home),
): string {
  const segments = path.split("/");
  const directories = segments.slice(0, -1).map(directoryName);
  return join(home, "vault", generation, "secrets", ...directories, secretFileName(segments.at(-1) ?? ""));
}

export function headerFile({ home }: Pick<TestServer, "home">): string {
  return join(home, "vault", currentGeneration(home), "header.json");
}

function currentGeneration(home: string): string {
  return readFileSync(join(home, "vault", "current"), "utf8").trim();
}

/** Overwrites a file of the vault. A running server must be `uncached` to read it again. */
export function damage(file: string, bytes: Uint8Array): void {
  const descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
  // Not truncated to nothing first: ext4 would flush the file at each of thousands of damages.
  ftruncateSync(descriptor, bytes.length);
  writeSync(descriptor, bytes);
  closeSync(descriptor);
}

/** The bytes with one bit flipped. */
export function flipped(bytes: Uint8Array, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

/** The normal suite flips two bits of each byte, the long form all. */
const isFlipped = (bit: number) => process.env["STRONGROOM_SLOW"] !== undefined || (bit + (bit >> 3)) % 4 === 0;

/** Single-bit flips of every byte, every truncation, and some appended bytes. */
export function* everyDamage(bytes: Uint8Array): Generator<readonly [what: string, bytes: Buffer]> {
  for (let bit = 0; bit < 8 * bytes.length; bit++)
    if (isFlipped(bit)) yield [`bit ${bit} flipped`, flipped(bytes, bit)];
  for (let length = 0; length < bytes.length; length++) {
    yield [`cut to ${length} bytes`, Buffer.from(bytes.subarray(0, length))];
  }
  for (const byte of [0x00, 0x0a, 0xff]) yield [`byte ${byte} added`, Buffer.concat([bytes, Uint8Array.of(byte)])];
}
