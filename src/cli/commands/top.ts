/** `strongroom top`: the server's load, live on a terminal, elsewhere one snapshot. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { StrongroomClient } from "../../client/client.js";
import { duration } from "../../config/readers.js";
import { type ConnectionFlags, withClient, withConnection } from "../session/connection.js";
import { breakable } from "../session/interrupt.js";
import { type OutputFlags, painter, printJson, withResult } from "../session/output.js";
import { loadText } from "../top/load-text.js";
import { Interval, type MetricSamples, parseSamples } from "../top/metric-samples.js";
import { loadOf } from "../top/server-load.js";

type Flags = OutputFlags & ConnectionFlags & { readonly interval?: number; readonly once?: true };

const usualMs = 2_000;
const minIntervalMs = 100;

export function define(command: Command): void {
  command
    .description(
      "Shows requests, their latency, key derivations, storage and the delay of the event loop, again and again until " +
        "Ctrl-C. Without a terminal, or with --once or --json, prints averages since the server started and ends. Needs the " +
        "root token, or a client token with the scope metrics.",
    )
    .option("--interval <duration>", "time between two looks, such as 10s (2s)", duration(3_600_000))
    .option("--once", "look once");
  withResult(withConnection(command)).action(top);
}

async function top(flags: Flags): Promise<void> {
  const isOnce = flags.once || flags.json || flags.quiet || process.stdout.isTTY !== true;
  await withClient(flags, (client) => (isOnce ? showOnce(client, flags) : showLive(client, flags)));
}

async function showOnce(client: StrongroomClient, flags: Flags): Promise<void> {
  const load = loadOf(new Interval(null, await scrape(client)));
  if (flags.json) return printJson(load);
  process.stdout.write(`${loadText(load, painter(process.stdout), false).join("\n")}\n`);
}

async function showLive(client: StrongroomClient, { interval = usualMs }: Flags): Promise<void> {
  const screen = process.stdout;
  screen.write("\u001b[?25l"); // hides the cursor
  try {
    await breakable(async (signal) => {
      for (let before: MetricSamples | null = null; !signal.aborted; ) {
        const after = await scrape(client);
        draw(screen, loadText(loadOf(new Interval(before, after)), painter(screen), before !== null));
        before = after;
        await sleep(Math.max(minIntervalMs, interval), undefined, { signal }).catch(() => {});
      }
    });
  } finally {
    screen.write("\u001b[?25h");
  }
}

async function scrape(client: StrongroomClient): Promise<MetricSamples> {
  return parseSamples(await client.metrics(), performance.now());
}

/** Draws over what is there, line by line, so that nothing flickers. */
function draw(screen: NodeJS.WriteStream, lines: readonly string[]): void {
  const shown = lines.slice(0, Math.max(1, screen.rows - 1));
  screen.write(`\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
}
