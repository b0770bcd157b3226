/** The two programs that judge dumps: `strongroom prove --dump` and `tools/prove.py`. */
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { copyMemory } from "../../prove/memory.js";
import { temporaryDirectory } from "../support/clean-up.js";
import type { ServerProcess } from "../support/process.js";
import { passphraseFile, prove } from "./run-prove.js";

const python = "tools/prove.py";
export const hasPython = existsSync("/usr/bin/python3") || existsSync("/usr/local/bin/python3");

type Result = {
  readonly attacker: number;
  readonly known: Readonly<Record<string, number>>;
  readonly code: number | null;
};

export function file(name: string, bytes: Uint8Array | string): string {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, bytes);
  return path;
}

/** By `strongroom prove --dump`. */
export async function proveDump(headerFile: string, dump: string, ...flags: readonly string[]): Promise<Result> {
  const { code, report } = await prove("/nonexistent", "--header", headerFile, "--dump", dump, ...flags);
  const attacker = report.checks.filter(({ step }) => step === "attacker").map(({ found }) => Number(found));
  const known = report.checks.flatMap(({ step, what, found }) => {
    const [, name = ""] = /^copies of the (.*), in any form/.exec(what) ?? [];
    return step === "known-keys" ? [[name, Number(found)] as const] : [];
  });
  return { attacker: attacker[0] ?? -1, known: Object.fromEntries(known), code };
}

/** By the Python file. */
export async function pythonDump(headerFile: string, dump: string, ...flags: readonly string[]): Promise<Result> {
  const args = [
    python,
    "--header",
    headerFile,
    "--dump",
    dump,
    "--passphrase-file",
    passphraseFile(),
    "--json",
    ...flags,
  ];
  const { stdout, code } = await promisify(execFile)("python3", args).then(
    (ended) => ({ ...ended, code: 0 }),
    (error: { stdout: string; code: number }) => error,
  );
  return { ...(JSON.parse(stdout) as Omit<Result, "code">), code };
}

/** A core dump (ELF) of segments with these contents. */
function coreOf(segments: readonly { readonly address: number; readonly bytes: Uint8Array }[]): Buffer {
  const head = Buffer.alloc(64 + 56 * segments.length);
  head.write("7f454c460201", "hex");
  head.writeUInt16LE(4, 16);
  head.writeBigUInt64LE(64n, 32);
  head.writeUInt16LE(56, 54);
  head.writeUInt16LE(segments.length, 56);
  let offset = head.length;
  for (const [i, { address, bytes }] of segments.entries()) {
    const at = 64 + 56 * i;
    head.writeUInt32LE(1, at);
    for (const [field, value] of [
      [8, offset],
      [16, address],
      [32, bytes.length],
    ] as const) {
      head.writeBigUInt64LE(BigInt(value), at + field);
    }
    offset += bytes.length;
  }
  return Buffer.concat([head, ...segments.map(({ bytes }) => bytes)]);
}

/** Copies a server's memory into a file, as a core dump. */
export async function dumpOf({ child }: ServerProcess): Promise<string> {
  const { bytes, regions } = await copyMemory(child.pid ?? 0);
  const segments = regions.map(({ address, offset, length }) => {
    return { address, bytes: bytes.subarray(offset, offset + length) };
  });
  return file("core", coreOf(segments));
}
