/**
 * Verification of an audit log: reads its files from the oldest to the newest, and names every place where the chain, the
 * numbers or the files do not match. Needs no key; `judgeCheckpoints` checks the MACs where the key is at hand.
 */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { CheckpointVerdict } from "../../workers/protocol.js";
import { systemCode } from "../errors.js";
import { readFileBytes, systemFiles } from "../files/durable.js";
import { logFilesIn } from "./files.js";
import {
  auditFileName,
  base64url,
  type Checkpoint,
  chainBytes,
  checkpointIn,
  type FileHeader,
  firstChain,
  keptFiles,
  type LogHead,
  longestFile,
  maxCheckpoints,
  nextChain,
  parseChainLine,
  parseHeaderLine,
} from "./format.js";
import { linesIn } from "./groups.js";
import type { AuditEvent } from "./record.js";

type ProblemCode =
  | "changed"
  | "sequence"
  | "malformed"
  | "header"
  | "missing-file"
  | "unfinished"
  | "checkpoint"
  | "head";

export type AuditProblem = { readonly code: ProblemCode; readonly file: string; readonly message: string };

type FoundCheckpoint = Checkpoint & { readonly file: string };

export type VerifiedLog = {
  readonly problems: readonly AuditProblem[];
  readonly files: number;
  readonly records: number;
  /** Number of the oldest record; null when there is none. */
  readonly firstSeq: number | null;
  /** Null when there is no record. */
  readonly head: LogHead | null;
  readonly gaps: number;
  /** Records that the gaps stand for. */
  readonly lost: number;
  readonly checkpoints: readonly FoundCheckpoint[];
  /** Records that were written while the vault was locked: no server had a key for a checkpoint of them. */
  readonly locked: readonly RecordRange[];
  /** Bytes of a group that a crash cut short, or that is being written. */
  readonly unfinished: number;
  /** The head that was given is older than the oldest file. */
  readonly headIsTooOld: boolean;
};

/** Limit of the listed problems. */
const maxProblems = 1_000;

/** Few, so that requests between two steps hardly wait. */
const linesInStep = 100;

type RecordMembers = { readonly event: AuditEvent } & { readonly [name: string]: unknown };

/** The group that is being read. */
type OpenGroup = { start: number; first: number | null; last: number; line: number };

export class LogVerifier {
  readonly #problems: AuditProblem[] = [];
  readonly #checkpoints: FoundCheckpoint[] = [];
  readonly #locked: RecordRange[] = [];
  #lockedSince: number | null = null;
  readonly #headCheck: HeadCheck;
  #previous: FileHeader | null = null;
  /** The chain's value so far, as the log claims it; null after a place where it is unknown. */
  #chain: string | null = null;
  #firstSeq: number | null = null;
  #nextSeq: number | null = null;
  #head: LogHead | null = null;
  #files = 0;
  #oldest = 0;
  #newest = 0;
  #records = 0;
  #gaps = 0;
  #lost = 0;
  #unfinished = 0;

  /** `head`: an earlier head, kept where the log's files are not. */
  constructor(head: LogHead | null = null) {
    this.#headCheck = new HeadCheck(head);
  }

  /** Reads one file; `file` is its number. Files are added in ascending order. */
  add(file: number, bytes: Uint8Array): void {
    const steps = this.steps(file, bytes);
    while (!steps.next().done);
  }

  /** Like `add`, in steps of a few lines. */
  *steps(file: number, bytes: Uint8Array): Generator<void, void> {
    if (this.#unfinished > 0)
      this.#problem("unfinished", `the end of the file is missing, ${this.#unfinished} bytes are left`);
    this.#unfinished = 0;
    if (this.#files === 0) this.#oldest = file;
    else this.#missingBetween(this.#newest + 1, file);
    this.#newest = file;
    this.#files++;
    yield* this.#readLines(file, bytes);
  }

  /** Names a file whose number is far from all others. */
  addStray(file: number): void {
    const message = "its number does not belong to the log, which is not continued there: move it away";
    this.#problems.push({ code: "header", file: auditFileName(file), message });
  }

  end(): VerifiedLog {
    this.#missingBetween(Math.max(1, this.#newest - keptFiles + 1), this.#oldest);
    const oldest = { log: this.#log, firstSeq: this.#firstSeq };
    this.#problemOfHead(this.#headCheck.atEnd(this.#head?.seq ?? 0, oldest));
    return {
      problems: this.#problems,
      files: this.#files,
      records: this.#records,
      firstSeq: this.#firstSeq,
      head: this.#head,
      gaps: this.#gaps,
      lost: this.#lost,
      checkpoints: this.#checkpoints,
      locked: [
        ...this.#locked,
        ...(this.#lockedSince === null ? [] : [{ first: this.#lockedSince, last: this.#head?.seq ?? 0 }]),
      ],
      unfinished: this.#unfinished,
      headIsTooOld: this.#headCheck.isTooOld(oldest),
    };
  }

  *#readLines(file: number, bytes: Uint8Array): Generator<void, void> {
    const group: OpenGroup = { start: 0, first: null, last: 0, line: 1 };
    let number = 1;
    for (const { text, start, next } of linesIn(bytes)) {
      const chain = parseChainLine(text);
      if (number === 1) this.#header(file, text);
      else if (chain === null) this.#record(text, number, group);
      else {
        this.#endGroup(bytes.subarray(group.start, start), chain, number, group);
        [group.start, group.first, group.line] = [next, null, number + 1];
      }
      number++;
      if (number % linesInStep === 0) yield;
    }
    this.#unfinished = bytes.length - group.start;
  }

  #header(file: number, line: string): void {
    const header = parseHeaderLine(line);
    if (header === null) {
      this.#problem("header", "its first line is missing, was changed, or is of a later version");
      this.#chain = null;
      this.#nextSeq = null;
      return;
    }
    if (header.file !== file) this.#problem("header", `it is file ${header.file} of the log, renamed`);
    this.#compareWithBefore(header);
    this.#previous = header;
    this.#chain = header.chain;
    this.#firstSeq ??= header.seq;
    this.#nextSeq = header.seq;
  }

  #compareWithBefore(header: FileHeader): void {
    if (this.#previous === null) {
      const isFirst = base64url(firstChain(header.log)) === header.chain;
      if (isFirst !== (header.seq === 1)) this.#problem("header", "the chain before it was changed");
      return;
    }
    if (header.log !== this.#previous.log) {
      this.#problem("header", "it belongs to another log");
      return;
    }
    if (this.#chain !== null && header.chain !== this.#chain)
      this.#problem("header", "it does not continue the file before: one of them was replaced or cut");
    if (this.#nextSeq !== null && header.seq !== this.#nextSeq)
      this.#problem("header", `it begins with record ${header.seq} instead of ${this.#nextSeq}`);
  }

  #record(line: string, number: number, group: OpenGroup): void {
    const record = parseRecord(line);
    if (record === null) {
      this.#problem("malformed", `line ${number} is not a record`);
      return;
    }
    const { seq } = record;
    if (this.#nextSeq !== null && seq !== this.#nextSeq)
      this.#problem("sequence", `line ${number} has record ${seq} instead of ${this.#nextSeq}`);
    this.#nextSeq = seq + 1;
    this.#records++;
    this.#followLock(record);
    if (record.members.event === "gap") this.#gap(record.members);
    if (record.members.event === "checkpoint") this.#checkpoint(record, number, group);
    if (record.members.event === "mismatch") this.#mismatch(record);
    group.first ??= seq;
    group.last = seq;
  }

  /** The key is there from a successful unlock or init to the next lock, stop or crash, after which a server starts locked. */
  #followLock({ seq, members: { event, status } }: ParsedRecord): void {
    const isDone = typeof status !== "number" || status < 400;
    if (["start", "lock", "locked"].includes(event) && isDone) this.#lockedSince ??= seq;
    if (!["unlock", "init"].includes(event) || !isDone || this.#lockedSince === null) return;
    this.#locked.push({ first: this.#lockedSince, last: seq - 1 });
    this.#lockedSince = null;
  }

  #gap({ count }: RecordMembers): void {
    this.#gaps++;
    this.#lost += typeof count === "number" ? count : 0;
  }

  #checkpoint({ members }: ParsedRecord, number: number, group: OpenGroup): void {
    const checkpoint = checkpointIn(members, this.#log, this.#chain ?? "");
    if (checkpoint === null || group.first !== null) this.#problem("malformed", `line ${number} is not a checkpoint`);
    else if (this.#chain !== null) this.#checkpoints.push({ ...checkpoint, file: auditFileName(this.#newest) });
  }

  /** The server that wrote this record checked the log before it signed it. */
  #mismatch({ seq, members: { reason } }: ParsedRecord): void {
    const found = `in record ${seq} the server says that the log before it was changed`;
    this.#problem("checkpoint", typeof reason === "string" ? `${found} (${reason})` : found);
  }

  #endGroup(content: Uint8Array, claimed: string, number: number, { first, last, line }: OpenGroup): void {
    if (first === null) this.#problem("malformed", `line ${number} ends a group without records`);
    if (this.#chain !== null && base64url(nextChain(chainBytes(this.#chain), content)) !== claimed)
      this.#problem(
        "changed",
        `${named(first, last)}, lines ${line} to ${number}, or those before them, were changed, added or removed`,
      );
    this.#chain = claimed;
    if (first === null) return;
    this.#head = { log: this.#log, seq: last, chain: claimed };
    this.#problemOfHead(this.#headCheck.atGroup(this.#head));
  }

  #problemOfHead(message: string | null): void {
    if (message !== null) this.#problem("head", message);
  }

  /** DANGER: the numbers come from file names, and may be far apart. */
  #missingBetween(first: number, end: number): void {
    for (let file = first; file < end && this.#problems.length < maxProblems; file++)
      this.#problems.push({ code: "missing-file", file: auditFileName(file), message: "it is missing" });
  }

  #problem(code: ProblemCode, message: string): void {
    if (this.#problems.length < maxProblems) this.#problems.push({ code, file: auditFileName(this.#newest), message });
  }

  get #log(): string {
    return this.#previous?.log ?? "";
  }
}

type ParsedRecord = { readonly seq: number; readonly members: RecordMembers };

function parseRecord(line: string): ParsedRecord | null {
  try {
    const members = JSON.parse(line) as RecordMembers;
    const { seq, time, event } = members;
    const isRecord = Number.isSafeInteger(seq) && typeof time === "string" && typeof event === "string";
    return isRecord ? { seq: Number(seq), members } : null;
  } catch {
    return null;
  }
}

function named(first: number | null, last: number): string {
  if (first === null) return "a group without records";
  return first === last ? `record ${first}` : `records ${first} to ${last}`;
}

class HeadCheck {
  /** Null: nothing to check. */
  readonly #wanted: LogHead | null;
  #isFound = false;

  constructor(wanted: LogHead | null) {
    this.#wanted = wanted;
  }

  /** At the end of each group. */
  atGroup(found: LogHead): string | null {
    const wanted = this.#wanted;
    if (wanted?.seq !== found.seq) return null;
    this.#isFound = true;
    if (wanted.log === found.log && wanted.chain === found.chain) return null;
    return `up to record ${wanted.seq}, this is not the log of the head that was given`;
  }

  /** At the end of the log; `lastSeq`: number of its last record, 0 when it has none. */
  atEnd(lastSeq: number, oldest: OldestPart): string | null {
    const wanted = this.#wanted;
    if (wanted === null || this.#isFound || this.isTooOld(oldest)) return null;
    if (lastSeq < wanted.seq) return `the log was cut: it ends with record ${lastSeq}, and once had ${wanted.seq}`;
    return `record ${wanted.seq} is no longer a group boundary: the log was modified`;
  }

  /** Whether the head is older than all that is left of the log. */
  isTooOld({ log, firstSeq }: OldestPart): boolean {
    const wanted = this.#wanted;
    return wanted !== null && wanted.log === log && firstSeq !== null && wanted.seq < firstSeq;
  }
}

/** `firstSeq`: number of the oldest record; null when no file can be read. */
type OldestPart = { readonly log: string; readonly firstSeq: number | null };

/** Attempts while a server removes the oldest file. */
const maxAttempts = 3;

/** `pause` is awaited after each step. */
type Pause = () => Promise<void>;

const noPause: Pause = async () => {};

export async function verifyLog(
  directory: string,
  head: LogHead | null = null,
  pause: Pause = noPause,
): Promise<VerifiedLog> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await verifyOnce(directory, head, pause);
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || attempt === maxAttempts) throw error;
    }
  }
}

async function verifyOnce(directory: string, head: LogHead | null, pause: Pause): Promise<VerifiedLog> {
  const verifier = new LogVerifier(head);
  const { numbers, strays } = await logFilesIn(systemFiles, directory);
  for (const file of strays) verifier.addStray(file);
  for (const file of numbers) {
    const path = join(directory, auditFileName(file));
    const bytes = await readFileBytes(systemFiles, path, longestFile);
    if (bytes === null) throw Object.assign(new Error(`${path} is gone`), { code: "ENOENT", path });
    const steps = verifier.steps(file, bytes);
    while (!steps.next().done) await pause();
  }
  return verifier.end();
}

export async function lengthOfLog(directory: string): Promise<number> {
  const { numbers } = await logFilesIn(systemFiles, directory);
  const sizes = await Promise.all(numbers.map(async (file) => (await stat(join(directory, auditFileName(file)))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Checks the MACs of checkpoints. */
export type CheckpointJudge = (checkpoints: readonly Checkpoint[]) => Promise<readonly CheckpointVerdict[]>;

/** Whether a range of records was written while the vault was locked. */
export function isWithinLocked({ first, last }: RecordRange, { locked }: Pick<VerifiedLog, "locked">): boolean {
  return locked.some((range) => range.first <= first && last <= range.last);
}

/**
 * `covered`: the last record that a checkpoint of the vault covers; 0: none. `uncovered`: records before it that no checkpoint
 * of their own server covers: written just before a crash, or changed while no server ran.
 */
export type JudgedLog = {
  readonly problems: readonly AuditProblem[];
  readonly covered: number;
  readonly uncovered: readonly RecordRange[];
};

type RecordRange = { readonly first: number; readonly last: number };

/** Judges the checkpoints' MACs, see `format.ts`. One under an unknown key, and before no bridge, is a problem. */
export async function judgeCheckpoints(
  { checkpoints, firstSeq }: VerifiedLog,
  judge: CheckpointJudge,
): Promise<JudgedLog> {
  const verdicts: CheckpointVerdict[] = [];
  for (let from = 0; from < checkpoints.length; from += maxCheckpoints)
    verdicts.push(...(await judge(checkpoints.slice(from, from + maxCheckpoints))));
  const found = checkpoints.map((checkpoint, i) => ({ ...checkpoint, verdict: verdicts[i] ?? "wrong" }));
  const problems = found.flatMap((checkpoint, i) => {
    const message = problemIn(checkpoint, found.slice(0, i), found.slice(i + 1));
    if (message === null) return [];
    const problem = { file: checkpoint.file, message: `the checkpoint in record ${checkpoint.seq} ${message}` };
    return [{ code: "checkpoint" as const, ...problem }];
  });
  const covering = found.filter((one, i) => one.verdict === "valid" || isBridged(one, found.slice(i + 1), ["key"]));
  const covered = found.findLast(({ verdict }) => verdict === "valid")?.seq ?? 0;
  return { problems, covered, uncovered: gapsBetween(covering, firstSeq ?? 1, covered) };
}

type JudgedCheckpoint = FoundCheckpoint & { readonly verdict: CheckpointVerdict };

const bridges = ["key", "init"];

function problemIn(
  checkpoint: JudgedCheckpoint,
  before: readonly JudgedCheckpoint[],
  after: readonly JudgedCheckpoint[],
): string | null {
  const { verdict, key } = checkpoint;
  if (verdict === "wrong") return "is not the vault's: the log was changed before it";
  if (verdict === "unknown")
    return isBridged(checkpoint, after, bridges)
      ? null
      : "was made under another key, and none of the vault's vouches for it";
  return isReplaced(key, before) ? "was made under a key that had been replaced" : null;
}

/** While the master key is being rotated, the old key's MACs are known as well: it must not be used after the bridge. */
function isReplaced(key: string, before: readonly JudgedCheckpoint[]): boolean {
  const first = before.findIndex((one) => one.key === key);
  const isBridge = (one: JudgedCheckpoint) => one.verdict === "valid" && bridges.includes(one.reason ?? "");
  return first >= 0 && before.slice(first).some((one) => isBridge(one) && one.key !== key);
}

/** Whether a later checkpoint of the vault's key vouches for one under an unknown key; as in an earlier version, any did. */
function isBridged(
  { verdict, from }: JudgedCheckpoint,
  after: readonly JudgedCheckpoint[],
  reasons: readonly string[],
) {
  const vouches = (one: JudgedCheckpoint) =>
    one.from === undefined ? from === undefined : reasons.includes(one.reason ?? "");
  return verdict === "unknown" && after.some((one) => one.verdict === "valid" && vouches(one));
}

/** The records from the first to the last that are in none of the checkpoints' ranges. */
function gapsBetween(covering: readonly FoundCheckpoint[], first: number, last: number): readonly RecordRange[] {
  const gaps: RecordRange[] = [];
  let next = first;
  const ranges = covering.map(({ from = first, seq }) => ({ from, seq })).sort((a, b) => a.from - b.from);
  for (const { from, seq } of ranges) {
    if (from > next) gaps.push({ first: next, last: Math.min(from - 1, last) });
    next = Math.max(next, seq + 1);
  }
  return gaps;
}
