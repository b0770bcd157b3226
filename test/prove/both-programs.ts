/** The two programs that judge dumps: `strongroom prove --dump` and `tools/prove.py`. */
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { copyMemory } from "../../prove/memory.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import type { ServerProcess } from "../../tools/rig/process.js";
import { pythonFile } from "../../tools/rig/python.js";
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
    const [, name = ""] = /^copies of the (.*)/.exec(what) ?? [];
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
  const { stdout, code } = await promisify(execFile)(pythonFile() ?? "python3", args).then(
    (ended) => ({ ...ended, code: 0 }),
    (error: { stdout: string; code: number }) => error,
  );
  const nothing = { attacker: -1, known: {} }; // the dump could not be read
  return { ...(stdout === "" ? nothing : (JSON.parse(stdout) as Omit<Result, "code">)), code };
}

/** `kind`: 1, memory, unless given; `inMemory`: its length there, when not that of the bytes. */
type Segment = {
  readonly address: number;
  readonly bytes: Uint8Array;
  readonly kind?: number;
  readonly inMemory?: number;
};

/** A core dump (ELF) of writable segments with these contents. */
export function makeCore(segments: readonly Segment[]): Buffer {
  const head = Buffer.alloc(64 + 56 * segments.length);
  head.write("7f454c460201", "hex");
  head.writeUInt16LE(4, 16);
  head.writeBigUInt64LE(64n, 32);
  head.writeUInt16LE(56, 54);
  head.writeUInt16LE(segments.length, 56);
  let offset = head.length;
  for (const [i, { address, bytes, kind = 1, inMemory = bytes.length }] of segments.entries()) {
    const at = 64 + 56 * i;
    head.writeUInt32LE(kind, at);
    head.writeUInt32LE(6, at + 4);
    for (const [field, value] of [
      [8, offset],
      [16, address],
      [32, bytes.length],
      [40, inMemory],
    ] as const) {
      head.writeBigUInt64LE(BigInt(value), at + field);
    }
    offset += bytes.length;
  }
  return Buffer.concat([head, ...segments.map(({ bytes }) => bytes)]);
}

/** Copies a server's memory into a file, as a core dump; with `sought`, only a part: see `selectPieces`. */
export async function takeDump({ child }: ServerProcess, sought?: readonly Uint8Array[]): Promise<string> {
  const { bytes, regions } = await copyMemory(child.pid ?? 0);
  const segments = regions.map(({ address, offset, length }) => {
    return { address, bytes: bytes.subarray(offset, offset + length) };
  });
  return file("core", makeCore(sought === undefined ? segments : selectPieces(segments, sought)));
}

const pieceBytes = 64 * 1024;

/** Returns the pieces in which the bytes sought begin, the piece behind each of these, and one in forty of the others. */
function selectPieces(segments: readonly Segment[], sought: readonly Uint8Array[]): Segment[] {
  return segments.flatMap(({ address, bytes }) => {
    const held = new Set(sought.flatMap((each) => [...piecesWith(bytes, each)]));
    const cuts = Array.from({ length: Math.ceil(bytes.length / pieceBytes) + 1 }, (_, piece) => piece);
    const isKept = (piece: number) => piece >= 0 && piece < cuts.length - 1 && (held.has(piece) || piece % 40 === 0);
    const begins = cuts.filter((piece) => isKept(piece) && !isKept(piece - 1));
    const ends = cuts.filter((piece) => !isKept(piece) && isKept(piece - 1));
    return begins.map((from, i) => {
      const at = from * pieceBytes;
      return { address: address + at, bytes: bytes.subarray(at, (ends[i] ?? 0) * pieceBytes) };
    });
  });
}

function piecesWith(bytes: Uint8Array, sought: Uint8Array): ReadonlySet<number> {
  const memory = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = new Set<number>();
  for (let at = memory.indexOf(sought); at >= 0; at = memory.indexOf(sought, at + 1)) {
    const piece = Math.floor(at / pieceBytes);
    found.add(piece).add(piece + 1);
  }
  return found;
}
