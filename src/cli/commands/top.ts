/** `strongroom top`: the server's load, live on a terminal, elsewhere one snapshot. */
import type { Command } from "commander";
import type { StrongroomClient, VitalSigns } from "../../client/client.js";
import { duration } from "../../config/readers.js";
import { type ConnectionFlags, withClient, withConnection } from "../kit/connection/server.js";
import {
  Interval,
  type MetricSamples,
  type OperationLoad,
  parseSamples,
  type ServerLoad,
  serverLoad,
} from "../kit/connection/server-load.js";
import type { Io, OutputStream } from "../kit/io.js";
import { breakable } from "../kit/output/progress.js";
import {
  counted,
  displayWidth,
  fitted,
  type OutputFlags,
  type Paint,
  padded,
  painter,
  printable,
  printJson,
  printRows,
  withResult,
} from "../kit/output.js";

type Flags = OutputFlags & ConnectionFlags & { readonly interval?: number; readonly once?: true };

const usualMs = 2_000;
const minIntervalMs = 100;
/** Rows of a terminal that does not report its size. */
const usualRows = 24;

export function define(command: Command, io: Io): void {
  command
    .description(
      "Shows requests, their latency, key derivations, storage and event loop delay, refreshed until Ctrl-C. Without a " +
        "terminal, or with --once or --json, prints averages since the server started and exits. Needs the root token, or " +
        "a client token with the scope metrics.",
    )
    .option("--interval <duration>", "refresh interval, such as 10s (2s)", duration(3_600_000))
    .option("--once", "print once and exit");
  withResult(withConnection(command)).action((flags) => top(io, flags));
}

async function top(io: Io, flags: Flags): Promise<void> {
  const isOnce = flags.once || flags.json || flags.quiet || io.stdout.isTTY !== true;
  await withClient(io, flags, (client) => (isOnce ? showOnce(io, client, flags) : showLive(io, client, flags)));
}

async function showOnce(io: Io, client: StrongroomClient, flags: Flags): Promise<void> {
  const load = serverLoad(new Interval(null, await scrape(io, client)));
  if (flags.json) return printJson(io, load);
  printRows(io, `${loadText(load, painter(io), false, null).join("\n")}\n`);
}

async function showLive(io: Io, client: StrongroomClient, { interval = usualMs }: Flags): Promise<void> {
  const screen = io.stdout;
  screen.write("\u001b[?25l"); // hides the cursor
  try {
    await breakable(io, async (signal) => {
      for (let before: MetricSamples | null = null; !signal.aborted; ) {
        const began = io.clock.elapsed();
        const [after, vitals] = await Promise.all([scrape(io, client), client.vitals({ signal })]);
        draw(screen, loadText(serverLoad(new Interval(before, after)), painter(io), before !== null, vitals));
        before = after;
        const left = interval - (io.clock.elapsed() - began);
        await io.sleep(Math.max(minIntervalMs, left), signal).catch(() => {});
      }
    });
  } finally {
    screen.write("\u001b[?25h");
  }
}

async function scrape(io: Io, client: StrongroomClient): Promise<MetricSamples> {
  return parseSamples(await client.metrics(), io.clock.elapsed());
}

/** Draws over what is there, line by line, so that nothing flickers. */
function draw(screen: OutputStream, lines: readonly string[]): void {
  const shown = fitted(lines.join("\n"), screen)
    .split("\n")
    .slice(0, Math.max(1, (screen.rows || usualRows) - 1));
  screen.write(`\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
}

/** Lines without line feeds. `live`: the interval is the time since the text before, else since the server's start. */
function loadText(load: ServerLoad, paint: Paint, live: boolean, vitals: VitalSigns | null): string[] {
  const state = load.unlocked ? paint("green", "unlocked") : paint("yellow", load.initialized ? "locked" : "no vault");
  const since = live ? `the last ${counted(Math.round(load.seconds), "second")}` : "since the server started";
  const secrets = load.secrets === null ? "secrets unknown" : counted(load.secrets, "secret");
  const total = load.operations.reduce((sum, { perSecond }) => sum + perSecond, 0);
  return [
    `strongroom ${printable(load.version)}   ${state}   up ${inUnits(load.uptime)}   ${secrets}   ${since}`,
    "",
    `requests ${rate(total)}/s   CPU ${percent(load.cpu)}   memory ${Math.round(load.residentBytes / 2 ** 20)} MiB`,
    `event loop ${percent(load.eventLoop.busy)} busy, delay p99 ${time(load.eventLoop.delayP99)}   cache hits ${share(load.cacheHits)}`,
    `derivations ${load.derivations.running} running, ${load.derivations.waiting} waiting, p99 ${time(load.derivations.p99)}   key worker p99 ${time(load.keyWorkerP99)}`,
    `storage p99 ${time(load.readP99)} read, ${time(load.commitP99)} commit`,
    ...(vitals === null ? [] : vitalsText(vitals)),
    ...troubles(load).map((trouble) => paint("red", trouble)),
    "",
    ...table(load.operations),
  ];
}

function troubles({ storageErrors, wrongCredentials, lockouts, auditLost }: ServerLoad): string[] {
  const figures = [
    [storageErrors, "storage error"],
    [wrongCredentials, "wrong token or passphrase", "wrong tokens or passphrases"],
    [lockouts, "lockout"],
    [auditLost, "lost record of the audit log", "lost records of the audit log"],
  ] as const;
  const found = figures.flatMap(([count, one, many = `${one}s`]) =>
    count > 0 ? [`${count} ${count === 1 ? one : many}`] : [],
  );
  return found.length === 0 ? [] : [found.join(", ")];
}

function table(operations: readonly OperationLoad[]): string[] {
  const rows = operations.map(({ operation, perSecond, failedPerSecond, p50, p99 }) => {
    return [
      printable(operation),
      rate(perSecond),
      failedPerSecond === 0 ? "" : rate(failedPerSecond),
      time(p50),
      time(p99),
    ];
  });
  const all = [["request", "per second", "refused", "p50", "p99"], ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...all.map((row) => displayWidth(row[column] ?? ""))));
  return all.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 ? padded(cell, width) : cell.padStart(width);
      })
      .join("  ")
      .trimEnd(),
  );
}

/** The figures of the last second, which the server sends once it has passed. */
function vitalsText(signs: VitalSigns): string[] {
  const { requests, getP50, getP99, eventLoopP99, keyWorkerP99, connections } = signs;
  const ms = (value: number | null) => time(value === null ? null : value / 1000);
  return [
    `last second: ${counted(requests, "request")}, get p50 ${ms(getP50)}, p99 ${ms(getP99)}, event loop delay p99 ${ms(eventLoopP99)}`,
    `  key worker p99 ${ms(keyWorkerP99)}, ${counted(connections, "connection")}`,
  ];
}

function rate(perSecond: number): string {
  return perSecond < 10 ? perSecond.toFixed(2) : Math.round(perSecond).toLocaleString("en-US");
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function share(part: number | null): string {
  return part === null ? "-" : percent(part);
}

/** Two digits below 10 ms: a histogram is no more exact. */
function time(seconds: number | null): string {
  if (seconds === null) return "-";
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  const ms = seconds * 1000;
  return `${ms >= 10 ? Math.round(ms) : ms.toPrecision(2)} ms`;
}

function inUnits(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}
