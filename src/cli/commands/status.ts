/** `strongroom status`: the report, and the exit code for the vault's state. */
import type { Command } from "commander";
import type { VaultStatus } from "../../client/client.js";
import { isStoreUrl } from "../../config/readers.js";
import { diskSpaceRemedy, missingDiskSpace } from "../../files/disk-space.js";
import { type ConnectionFlags, namesServer, withClient, withConnection } from "../kit/connection/server.js";
import { type ExitName, exitCodes } from "../kit/errors.js";
import { shellWord } from "../kit/hints.js";
import type { Io } from "../kit/io.js";
import {
  certificateEndText,
  certificateRemedy,
  counted,
  localTime,
  type OutputFlags,
  painter,
  printable,
  printJson,
  printRows,
  withHints,
  withOutput,
} from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags;

const details = `
The exit code is the state: ${exitCodes.ok} unlocked, ${exitCodes.locked} locked, ${exitCodes.notInitialized} no vault yet,
${exitCodes.unreachable} no server. This asks for the passphrase only when it is needed:
  strongroom status -q || strongroom unlock`;

export function define(command: Command, io: Io): void {
  command.description("Shows whether the server is running and the vault is unlocked. Needs no token.");
  withOutput(withConnection(command))
    .addHelpText("after", details)
    .action((flags) => status(io, flags));
}

async function status(io: Io, flags: Flags): Promise<void> {
  const found = await withClient(io, { autostart: false, ...flags }, (client) => client.status());
  const exit = vaultState(found);
  io.exitCode = exitCodes[found.storageAvailable === false ? "unexpected" : exit];
  if (flags.json) printJson(io, found);
  else if (!flags.quiet) {
    const isHere = !namesServer(io, flags) && !isStoreUrl(found.vaultPath);
    const missing = isHere ? await missingDiskSpace(found.vaultPath) : null;
    printRows(io, withHints(io, formatStatus(io, found, exit, missing)));
  }
}

type State = Extract<ExitName, "ok" | "locked" | "notInitialized">;

function vaultState({ initialized, locked }: VaultStatus): State {
  if (!initialized) return "notInitialized";
  return locked ? "locked" : "ok";
}

/** @param missing what the disk has too little of; null: nothing */
function formatStatus(io: Io, status: VaultStatus, state: State, missing: string | null): string {
  const { secretCount, vaultPath, port, version, idleTimeoutMs, lastActivity, lastLock, reauthorize = [] } = status;
  const paint = painter(io);
  const first: { readonly [S in State]: string } = {
    ok: `the vault is ${paint("green", "unlocked")}`,
    locked: `the vault is ${paint("yellow", "locked")}: unlock it with  strongroom unlock`,
    notInitialized: `there is ${paint("yellow", "no vault")} yet: create one with  strongroom init`,
  };
  const certificate = certificateEndText(status);
  const rows = [
    ["secrets", String(secretCount)],
    ["vault", vaultPath],
    ...(missing === null ? [] : ([["disk", `${missing}: ${diskSpaceRemedy}`]] as const)),
    ["port", String(port)],
    ...(certificate === null ? [] : ([["certificate", `${certificate}: ${certificateRemedy}`]] as const)),
    ...reauthorize.map((path) => ["log in again", `${path}: strongroom use login ${shellWord(path)}`] as const),
    ["version", version],
    ["locks", locksWhen(io, idleTimeoutMs, state === "ok" ? lastActivity : null)],
    ["last activity", localTime(new Date(lastActivity))],
    ["last lock", `${localTime(new Date(lastLock.at))}, ${lockReason(lastLock.reason, idleTimeoutMs)}`],
  ] as const;
  const lines = rows.map(([name, value]) => `  ${name.padEnd(13)}  ${printable(value)}\n`);
  const storage =
    status.storageAvailable === false
      ? `${paint("red", "the storage does not respond")}: ${printable(status.storageProblem ?? "see the server's log")}\n`
      : "";
  return `${storage}${first[state]}\n${lines.join("")}`;
}

type Reason = VaultStatus["lastLock"]["reason"];

function lockReason(reason: Reason, idleTimeoutMs: number): string {
  return reason === "idle" ? `after ${inWords(idleTimeoutMs)} without activity` : reasons[reason];
}

const reasons: { readonly [R in Exclude<Reason, "idle">]: string } = {
  request: "on request",
  crash: "because the server lost its key: see its log",
  start: "since the server started",
  shutdown: "because the server is stopping",
};

/** `lastActivity`: null when the vault is not unlocked. */
function locksWhen({ clock }: Io, idleTimeoutMs: number, lastActivity: string | null): string {
  if (idleTimeoutMs === 0) return "never";
  if (lastActivity === null) return `after ${inWords(idleTimeoutMs)} without activity`;
  const deadline = Date.parse(lastActivity) + idleTimeoutMs;
  const left = inWords(Math.max(0, deadline - clock.now()));
  return `in ${left} without activity, at ${localTime(new Date(deadline))}`;
}

/** Formats a duration in the largest unit of which there is at least one, rounded to the nearest number. */
function inWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return counted(seconds, "second");
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return counted(minutes, "minute");
  return minutes < 2880 ? counted(Math.round(minutes / 60), "hour") : counted(Math.round(minutes / 1440), "day");
}
