/** Audit logs without a server, with a key of the test's own, and an attacker's tools for them. */
import { createHmac } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  auditFileName,
  auditFileNumber,
  base64url,
  type Checkpoint,
  chainBytes,
  chainLine,
  type FileHeader,
  headerLine,
  nextChain,
  parseChainLine,
  parseHeaderLine,
  signedCheckpoint,
} from "../../src/audit/format.js";
import { auditRecordText } from "../../src/audit/record.js";
import { AuditWriter, type Signer, type WriterOptions } from "../../src/audit/writer.js";
import type { ChangeEvent, ReadEvent } from "../../src/contract/audit-events.js";
import { systemFiles } from "../../src/files/durable.js";
import { createLog } from "../../src/log.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import type { CheckpointVerdict, SignedCheckpoint } from "../../workers/protocol.js";
import { FakeClock } from "../support/manual-clock.js";

/** By number. */
export type LogBytes = ReadonlyMap<number, Buffer>;

export function isSame(log: LogBytes, other: LogBytes): boolean {
  return log.size === other.size && [...log].every(([file, bytes]) => other.get(file)?.equals(bytes) === true);
}

const keyName = "AAAAAAAAAAAA";

export const sign: Signer = async (text) => ({ key: keyName, mac: computeMac(text) });

export async function judge(checkpoints: readonly Checkpoint[]): Promise<CheckpointVerdict[]> {
  return checkpoints.map(signedCheckpoint).map(checkMac);
}

function checkMac({ text, key, mac }: SignedCheckpoint): CheckpointVerdict {
  if (key !== keyName) return "unknown";
  return mac === computeMac(text) ? "valid" : "wrong";
}

function computeMac(text: string): string {
  return createHmac("sha256", "the test's key").update(text).digest("base64url");
}

export type TestWriter = { readonly writer: AuditWriter; readonly directory: string; readonly logged: () => string };

export function newWriter(options: Partial<WriterOptions> = {}): TestWriter {
  const directory = options.directory ?? join(temporaryDirectory(), "audit");
  const lines: string[] = [];
  const log = createLog("debug", (line) => lines.push(line), Date.now);
  const writer = new AuditWriter({ clock: new FakeClock(), files: systemFiles, log, ...options, directory });
  writer.setSigner(sign, (checkpoints) => Promise.resolve(checkpoints.map(checkMac)));
  return { writer, directory, logged: () => lines.join("") };
}

export function record(n: number, event: ChangeEvent | ReadEvent = "get"): string {
  const time = new Date(Date.UTC(2026, 2, 1) + n).toISOString();
  return auditRecordText(time, { event, token: "root", address: "127.0.0.1", path: `app/${n}`, status: 200 });
}

/** Writes a log of several files; the last group is no checkpoint. */
export async function sampleLog(): Promise<LogBytes> {
  const { writer, directory } = newWriter({ limits: { maxFileBytes: 12_000 } });
  for (let n = 0; n < 400; n++) {
    writer.add(record(n));
    if (n % 7 === 6) await writer.flush();
    if (n % 31 === 30) writer.checkpoint("time");
    if (n === 200)
      writer.add(
        auditRecordText("2026-03-01T00:00:00.200Z", { event: "gap", since: "2026-01-01T00:00:00.000Z", count: 3 }),
      );
  }
  await writer.close();
  return readLog(directory);
}

export function readLog(directory: string): LogBytes {
  const numbers = readdirSync(directory)
    .map((name) => auditFileNumber(name) ?? 0)
    .sort((a, b) => a - b);
  return new Map(numbers.map((file) => [file, readFileSync(join(directory, auditFileName(file)))]));
}

export function writeLog(directory: string, log: LogBytes): void {
  for (const [file, bytes] of log) writeFileSync(join(directory, auditFileName(file)), bytes, { mode: 0o600 });
}

/** `lines`: without line feeds, and without the first line of a file. */
export type ParsedGroup = { readonly file: number; readonly lines: readonly string[] };

export function parseLog(log: LogBytes): { readonly header: FileHeader; readonly groups: readonly ParsedGroup[] } {
  const groups: ParsedGroup[] = [];
  let first: FileHeader | null = null;
  for (const [file, bytes] of log) {
    const [header = "", ...lines] = bytes.toString().trimEnd().split("\n");
    first ??= parseHeaderLine(header);
    let group: string[] = [];
    for (const line of lines) {
      if (parseChainLine(line) === null) group.push(line);
      else {
        groups.push({ file, lines: group });
        group = [];
      }
    }
  }
  if (first === null) throw new Error("the log has no first line");
  return { header: first, groups };
}

/** Makes a log of these groups as someone would who has no key: numbers and chain are right. */
export function rebuilt(header: FileHeader, groups: readonly ParsedGroup[]): LogBytes {
  const texts = new Map<number, string>();
  let chain = chainBytes(header.chain);
  let { seq } = header;
  for (const { file, lines } of groups) {
    const start = texts.has(file) ? "" : headerLine({ log: header.log, file, seq, chain: base64url(chain) });
    const content = start + lines.map((line) => `${line.replace(/^\{"seq":\d+/, `{"seq":${seq++}`)}\n`).join("");
    chain = nextChain(chain, Buffer.from(content));
    texts.set(file, (texts.get(file) ?? "") + content + chainLine(chain));
  }
  return new Map([...texts].map(([file, text]) => [file, Buffer.from(text)]));
}
