/** `strongroom audit`: shows the audit log's records, and verifies its files. */
import { spawn } from "node:child_process";
import { Argument, type Command } from "commander";
import { auditDirectory, type LogHead } from "../../audit/format.js";
import {
  type CheckpointJudge,
  isWithinLocked,
  type JudgedLog,
  judgeCheckpoints,
  type VerifiedLog,
  verifyLog,
} from "../../audit/verify.js";
import { type AuditRecord, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { duration, integer, Problem } from "../../config/readers.js";
import { readOneSetting } from "../../config/settings.js";
import { engineFor } from "../../engines/engines.js";
import { VaultError } from "../../errors.js";
import { homeAt } from "../../files/home.js";
import { withOfflineJudge } from "../../maintenance/offline-keys.js";
import { findHolder } from "../../storage/files/claim.js";
import { nonEmpty, onlyForActions } from "../kit/args/args.js";
import { folderPrefix } from "../kit/args/paths.js";
import { refuseStoreFlags, type StoreFlags, storeSettings, withStore } from "../kit/args/settings-flags.js";
import { type ConnectionFlags, namesServer, withClient, withConnection } from "../kit/connection/server.js";
import { CommandFailure, exitCodes, failureOfVault } from "../kit/errors.js";
import type { Io } from "../kit/io.js";
import { breakable } from "../kit/output/progress.js";
import {
  counted,
  localMillisecond,
  type OutputFlags,
  painter,
  printable,
  printableLines,
  printJson,
  printRows,
  say,
  withHints,
  withOutput,
} from "../kit/output.js";
import { isInPath } from "../kit/programs/programs.js";
import { withoutTokens } from "../kit/programs/without-tokens.js";
import { readInputFile, textOfInput } from "../kit/prompts/input.js";
import { type OpenFlags, opensVault, withPassphrase, withPassphraseTries } from "../kit/prompts/passphrase.js";

type Flags = ShowFlags & OpenFlags & StoreFlags & { readonly head?: string };

const actions = ["show", "tail", "verify", "head"] as const;

type Action = (typeof actions)[number];

const takenBy: { readonly [F in keyof Flags]?: readonly Action[] } = {
  token: ["show", "tail"],
  path: ["show", "tail"],
  since: ["show"],
  limit: ["show", "tail"],
  follow: ["tail"],
  notify: ["tail"],
  head: ["verify"],
  open: ["verify"],
  passphraseFile: ["verify"],
  passphraseFd: ["verify"],
  store: ["verify"],
  storePasswordFile: ["verify"],
};

export function define(command: Command, io: Io): void {
  command
    .description(
      "The audit log records who did what, and when. show prints the latest records, or those that the flags choose; tail " +
        "prints the end of the log. verify checks the log's files in the home: the chain needs no key, the checkpoints need " +
        "an unlocked server or, with --open, the passphrase (with --store for a vault in a database). head prints where " +
        "the log ends: keep it elsewhere, for verify --head.",
    )
    .addArgument(new Argument("<action>", "what to do with the log").choices(actions))
    .option("--token <name>", "show, tail: only what this token did", nonEmpty)
    .option("--path <path>", "show, tail: only this secret, or this subtree if it ends in a slash", nonEmpty)
    .option("--since <time>", "show: only records since then, such as 2h or 2026-03-01T12:00Z", (text) =>
      readTime(io, text),
    )
    .option("--limit <n>", "show, tail: print only the last N records", integer(1, 1_000_000))
    .option("-f, --follow", "tail: follow new records")
    .option("--notify", "tail: follow, and show new records as notifications of the desktop (notify-send)")
    .option("--head <file>", "verify: check that the log extends this saved head", nonEmpty)
    .option("--open", "verify: check the checkpoints with the passphrase; implied by --passphrase-file and -fd");
  onlyForActions(withOutput(withConnection(withPassphrase(withStore(command)))), takenBy).action((action, flags) =>
    audit(io, action, flags),
  );
}

function readTime({ clock }: Io, text: string): Date {
  if (/^\d+(?:ms|[smhd])$/.test(text)) return new Date(clock.now() - duration(100 * 365 * 86_400_000)(text));
  const time = /^\d{4}-\d\d/.test(text) ? Date.parse(text) : Number.NaN; // the parser also makes a date of 5
  if (Number.isNaN(time)) throw new Problem("a duration, such as 2h, or a time, such as 2026-03-01T12:00Z");
  return new Date(time);
}

async function audit(io: Io, action: Action, flags: Flags): Promise<void> {
  if (action === "show") return showRecords(io, flags);
  if (action === "tail") return tailRecords(io, flags);
  return action === "verify" ? verify(io, flags) : printHead(io, flags);
}

/** Prints the head that the server has in memory; without a server, that of the files. */
async function printHead(io: Io, flags: Flags): Promise<void> {
  const home = homeAt(readOneSetting("home", flags.home, io.env));
  const isServed = namesServer(io, flags) || (await findHolder(home.vault)) !== null;
  const head = isServed
    ? (await withClient(io, flags, (client) => client.audit.read({ limit: 1 }))).head
    : (await verifyLog(auditDirectory(home.path))).head;
  if (!head) throw new CommandFailure("notFound", `no audit log yet in ${printable(home.path)}`);
  printJson(io, head);
}

async function verify(io: Io, flags: Flags): Promise<void> {
  const home = homeAt(readOneSetting("home", flags.home, io.env));
  const head = flags.head === undefined ? null : await readHead(flags.head);
  const isOpened = opensVault(flags);
  if (!isOpened) refuseStoreFlags(flags, "without --open: leave it out, or add --open");
  const log = await verifyLog(auditDirectory(home.path), head);
  const judged = isOpened
    ? await judgeOffline(io, home.path, log, flags)
    : await judgeByServer(io, home.vault, log, flags);
  const problems = [...log.problems, ...(judged?.problems ?? [])];
  if (flags.json) printJson(io, { ok: problems.length === 0, ...logFacts(log, judged), problems });
  else if (!flags.quiet) printRows(io, withHints(io, formatVerification(io, log, judged)));
  io.exitCode = problems.length === 0 ? exitCodes.ok : exitCodes.findings;
}

async function readHead(file: string): Promise<LogHead> {
  const text = textOfInput(await readInputFile(file, "the file of the head"), "the file of the head");
  try {
    const { log, seq, chain } = JSON.parse(text) as LogHead;
    if (typeof log === "string" && Number.isSafeInteger(seq) && typeof chain === "string") return { log, seq, chain };
  } catch {
    // any other text is no head
  }
  throw new CommandFailure(
    "usage",
    "the file of the head is not what strongroom audit head prints: choose another file",
  );
}

async function judgeOffline(io: Io, home: string, log: VerifiedLog, flags: Flags): Promise<JudgedLog> {
  const { store, storePasswordFile } = await storeSettings(io, home, flags);
  const place = store ?? home;
  const engine = await engineFor(place);
  const header = await engine.header(place, storePasswordFile);
  if (header === null) throw noVault(engine.database === null ? "the home's files" : "the database");
  return withPassphraseTries(io, flags, "Passphrase of the vault: ", async (passphrase) => {
    try {
      return await withOfflineJudge(header, passphrase, (judge) => judgeCheckpoints(log, judge));
    } catch (error) {
      throw error instanceof VaultError ? failureOfVault(error) : error;
    }
  });
}

function noVault(place: string): CommandFailure {
  return new CommandFailure("notInitialized", `there is no vault in ${place}: choose another with --home or --store`);
}

/** Returns null when no server runs here, or its vault is locked. */
async function judgeByServer(io: Io, vaultPath: string, log: VerifiedLog, flags: Flags): Promise<JudgedLog | null> {
  if (!namesServer(io, flags) && (await findHolder(vaultPath)) === null) return null;
  return withClient(io, { ...flags, nonInteractive: true }, async (client) => {
    const judge: CheckpointJudge = async (checkpoints) => (await client.audit.verify(checkpoints)).verdicts;
    try {
      return await judgeCheckpoints(log, judge);
    } catch (error) {
      if (error instanceof StrongroomError && error.code === "VAULT_LOCKED") return null;
      throw error;
    }
  });
}

function logFacts(
  { files, records, head, gaps, lost, unfinished, headIsTooOld, checkpoints }: VerifiedLog,
  judged: JudgedLog | null,
) {
  const facts = { files, records, head, gaps, lost, unfinished, headIsTooOld, checkpoints: checkpoints.length };
  return { ...facts, covered: judged?.covered ?? null, uncovered: judged?.uncovered ?? null };
}

function formatVerification(io: Io, log: VerifiedLog, judged: JudgedLog | null): string {
  const paint = painter(io);
  const problems = [...log.problems, ...(judged?.problems ?? [])];
  const shown = problems.map(({ file, message }) => `${paint("red", "wrong")}  ${file}: ${printable(message)}\n`);
  const end = problems.length === 0 ? paint("green", "no problems found") : counted(problems.length, "problem");
  return [...about(log, judged), ...shown, `${end}\n`].join("");
}

function about(log: VerifiedLog, judged: JudgedLog | null): string[] {
  const { files, records, head, gaps, lost, unfinished, headIsTooOld, checkpoints } = log;
  if (files === 0) return ["there is no audit log\n"];
  const last = head?.seq ?? 0;
  return [
    `${counted(records, "record")} in ${counted(files, "file")}, the last is ${last}\n`,
    judged === null
      ? `${counted(checkpoints.length, "checkpoint")}, not checked: unlock the server, or use --open\n`
      : `${counted(checkpoints.length, "checkpoint")}; they cover the log up to record ${judged.covered}\n`,
    ...(judged?.uncovered ?? []).map(
      (range) =>
        `records ${range.first} to ${range.last} have no checkpoint of their server: ${
          isWithinLocked(range, log)
            ? "written while the vault was locked, when there is no key for one"
            : "written just before a crash, or changed since"
        }\n`,
    ),
    ...(gaps > 0 ? [`${counted(lost, "record")} lost in ${counted(gaps, "gap")}\n`] : []),
    ...(unfinished > 0
      ? [`${counted(unfinished, "byte")} of a group that is being written, or was cut by a crash\n`]
      : []),
    ...(headIsTooOld ? ["the head is older than the oldest file: it proves nothing\n"] : []),
  ];
}

type ShowFlags = OutputFlags &
  ConnectionFlags &
  Filter & { readonly limit?: number; readonly follow?: true; readonly notify?: true };

const defaultLimit = 100;
const tailLimit = 10;
const pollMs = 1_000;

/** The latest of the records that match; all of them when a filter is given without a limit. */
async function showRecords(io: Io, flags: ShowFlags): Promise<void> {
  const isFiltered = flags.token !== undefined || flags.path !== undefined || flags.since !== undefined;
  const limit = flags.limit ?? (isFiltered ? Number.POSITIVE_INFINITY : defaultLimit);
  const records = await withClient(io, flags, async (client) => {
    const after = isFiltered ? 0 : Math.max(0, (await lastSequenceNumber(client)) - limit);
    let found: AuditRecord[] = [];
    for await (const record of recordsAfter(client, after)) {
      if (matches(record, flags)) found.push(record);
      if (found.length >= 2 * limit) found = found.slice(-limit);
    }
    return found.slice(-limit);
  });
  if (flags.json) return printJson(io, { records });
  for (const record of records) printRecord(io, record, flags);
  if (records.length === 0 && !flags.quiet) say(io, "no records\n");
}

/** Prints the latest records, and with `follow` or `notify` also new records. */
async function tailRecords(io: Io, flags: ShowFlags): Promise<void> {
  if (flags.notify && !isInPath("notify-send", io.env["PATH"] ?? ""))
    throw new CommandFailure("unexpected", "notify-send is not installed: install libnotify, or leave out --notify"); // not at the first record
  return withClient(io, flags, async (client) => {
    const begin = Math.max(0, (await lastSequenceNumber(client)) - (flags.limit ?? tailLimit));
    let { last } = await printAfter(io, client, begin, flags);
    await breakable(io, async (signal) => {
      while ((flags.follow || flags.notify) && !signal.aborted) {
        await io.sleep(pollMs, signal).catch(() => {}); // interrupted
        const printed = await printAfter(io, client, last, flags);
        last = printed.last;
        if (flags.notify && printed.records.length > 0) await notifyRecords(io, printed.records);
      }
    });
  });
}

const mostShown = 5;

/** Shows one notification for all new records. It has no value, as no record has one. @throws CommandFailure */
async function notifyRecords(io: Io, records: readonly AuditRecord[]): Promise<void> {
  const lines = records.map(({ token, event, path, to, name, status }) =>
    [token ?? "-", event, path ?? name, to, status !== undefined && status >= 400 ? `(${status})` : undefined]
      .filter((part) => part !== undefined)
      .join(" "),
  );
  const more = lines.length > mostShown ? [`and ${lines.length - mostShown} more`] : [];
  const [summary, body] =
    lines.length === 1
      ? [lines[0] ?? "", ""]
      : [counted(lines.length, "record"), [...lines.slice(0, mostShown), ...more].join("\n")];
  const marked = body.replaceAll("&", "&amp;").replaceAll("<", "&lt;"); // the body may have markup
  const texts = [`Strongroom: ${summary}`, marked].map(printableLines);
  const env = withoutTokens(io.env);
  const child = spawn("notify-send", ["--app-name=Strongroom", "--", ...texts], { stdio: "ignore", env });
  const problem = await new Promise<string | null>((resolve) => {
    child.once("error", () => resolve("notify-send cannot be run"));
    child.once("close", (code) => resolve(code === 0 ? null : "notify-send failed: is a desktop session running?"));
  });
  if (problem !== null) throw new CommandFailure("unexpected", problem);
}

/** Returns the number of the last record, and the records that it has printed. */
async function printAfter(
  io: Io,
  client: StrongroomClient,
  after: number,
  flags: ShowFlags,
): Promise<{ readonly last: number; readonly records: readonly AuditRecord[] }> {
  const records: AuditRecord[] = [];
  let last = after;
  for await (const record of recordsAfter(client, after)) {
    last = record.seq;
    if (!matches(record, flags)) continue;
    printRecord(io, record, flags);
    records.push(record);
  }
  return { last, records };
}

async function lastSequenceNumber(client: StrongroomClient): Promise<number> {
  return (await client.audit.read({ limit: 1 })).head?.seq ?? 0;
}

type Filter = {
  readonly token?: string;
  /** A secret, or with a slash at the end a subtree. */
  readonly path?: string;
  readonly since?: Date;
};

const pageSize = 1_000;

/** Yields records behind `after` until the latest. */
async function* recordsAfter(client: StrongroomClient, after: number): AsyncGenerator<AuditRecord, void, void> {
  for (let last = after; ; ) {
    const { records } = await client.audit.read({ after: last, limit: pageSize });
    yield* records;
    last = records.at(-1)?.seq ?? last;
    if (records.length < pageSize) return;
  }
}

function matches(record: AuditRecord, { token, path, since }: Filter): boolean {
  if (token !== undefined && record.token !== token) return false;
  if (since !== undefined && Date.parse(record.time) < since.getTime()) return false;
  return path === undefined || [record.path, record.to, record.prefix].some((one) => isWithin(one, path));
}

function isWithin(path: string | undefined, wanted: string): boolean {
  if (path === undefined) return false;
  return wanted.endsWith("/") ? path.startsWith(folderPrefix(wanted)) : path === wanted;
}

function printRecord(io: Io, record: AuditRecord, { json }: OutputFlags): void {
  if (json) printJson(io, record);
  else printRows(io, `${recordLine(record)}\n`);
}

/** Time, who, what, and the outcome; then what else there is. */
function recordLine({ seq, time, event, token, address, path, status, code, ...rest }: AuditRecord): string {
  const outcome = status === undefined ? [] : [code === undefined ? String(status) : `${status} ${code}`];
  const { to, prefix, requestId: _, etag: __, batch, key: ___, mac: ____, ...more } = rest;
  const what = [path, to === undefined ? undefined : `to ${to}`, prefix].filter((part) => part !== undefined);
  const others = Object.entries(more).map(([name, value]) => `${name} ${String(value)}`);
  const parts = [
    seq,
    token ?? "-",
    address ?? "-",
    event,
    ...what,
    ...outcome,
    ...(batch ? ["in a batch"] : []),
    ...others,
  ];
  const date = new Date(time);
  const shown = Number.isNaN(date.getTime()) ? time : localMillisecond(date); // a file may have been edited
  return printable(`${shown}  ${parts.join("  ")}`);
}
