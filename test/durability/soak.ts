/**
 * Soak test: a server process under full load for STRONGROOM_SOAK_MINUTES (15). After the first third, the warm-up, no
 * memory, descriptor, thread or handle count may rise; after the load, descriptors and handles must be back to the start.
 * Exits 1 otherwise. Linux only: it reads /proc.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { cleanUpTo } from "../../tools/rig/clean-up.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { closeConnections, mustGet, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { startLoad } from "./soak-load.js";
import { fitTrend, rises } from "./trend.js";

const minutes = Number(process.env["STRONGROOM_SOAK_MINUTES"] ?? 15);
const sampleMs = 2_000;
const hourMs = 3_600_000;

/** Caches of the default size keep filling beyond the warm-up, which would look like a leak. */
const smallCache = String(8 * 2 ** 20);
const mebibyte = 2 ** 20;

/**
 * The slope per hour from which a measure counts as rising. At 1,000 operations a second 32 MiB an hour are 9 bytes an
 * operation, less than any leak per operation; garbage collection makes about as much noise over the 10 judged minutes.
 * One descriptor, thread or handle leaked a minute is 60 an hour; open connections and files make the noise below that.
 */
const limits = {
  "resident memory, MiB": 32,
  "front end's heap, MiB": 32,
  "outside its heap, MiB": 32,
  "file descriptors": 20,
  threads: 20,
  handles: 20,
} as const;

type Measure = keyof typeof limits;
type Reading = Readonly<Record<Measure, number>> & { readonly at: number };

const measures = Object.keys(limits) as Measure[];

async function soak(): Promise<boolean> {
  // The default cost: malloc returns scrypt's 128 MiB to the system each time, but keeps the 16 MiB of the tests' cost for
  // each thread of the pool.
  const settings = ["--log-level", "error", "--scrypt-log-n", "17", "--cache-bytes", smallCache];
  const server = await startProcess(settings);
  await mustInit(server);
  await mustPut(server, "first", "v");
  await mustGet(server, "first");
  const before = await idleReading(server);
  const load = startLoad(server);
  const readings = await readFor(server, minutes * 60_000);
  await load.end();
  const { operations, locks } = load.counts;
  const rate = Math.round(operations / minutes / 60);
  say(`${minutes} minutes, ${operations} operations (${rate} a second), ${locks} locks and unlocks\n`);
  const level = judgeTrends(readings.slice(Math.floor(readings.length / 3)));
  return (await judgeRest(server, before)) && level;
}

async function readFor(server: ServerProcess, ms: number): Promise<Reading[]> {
  const readings: Reading[] = [];
  const end = performance.now() + ms;
  while (performance.now() < end) {
    readings.push(await read(server));
    await sleep(Math.min(sampleMs, ms / 100));
  }
  return readings;
}

async function read(server: ServerProcess): Promise<Reading> {
  const proc = `/proc/${server.child.pid}`;
  const status = readFileSync(`${proc}/status`, "utf8");
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
  const holdings = await server.order({ do: "measure" });
  if (holdings === null) throw new Error("the server did not report its handles");
  return {
    at: performance.now() / hourMs,
    "resident memory, MiB": field("VmRSS") / 1024,
    "front end's heap, MiB": holdings.heapBytes / mebibyte,
    "outside its heap, MiB": holdings.externalBytes / mebibyte,
    "file descriptors": readdirSync(`${proc}/fd`).length,
    threads: field("Threads"),
    handles: holdings.handles,
  };
}

function judgeTrends(readings: readonly Reading[]): boolean {
  say(`\n${"after warm-up".padEnd(24)}${"first".padStart(9)}${"last".padStart(9)}   slope per hour\n`);
  const rising = measures.filter((measure) => {
    const trend = fitTrend(readings.map((reading) => ({ at: reading.at, value: reading[measure] })));
    const rise = rises(trend, limits[measure]);
    const ends = [readings.at(0), readings.at(-1)].map((reading) => shown(reading?.[measure]).padStart(9)).join("");
    const slope = `${shown(trend.slope)} ± ${shown(trend.spread)}`.padEnd(20);
    say(`${measure.padEnd(24)}${ends}   ${slope}${rise ? `RISES faster than ${limits[measure]}` : "level"}\n`);
    return rise;
  });
  return rising.length === 0;
}

/** Asserts that all that the load opened is closed; the server may notice with a delay. */
async function judgeRest(server: ServerProcess, before: Reading): Promise<boolean> {
  const counted = ["file descriptors", "threads", "handles"] as const;
  const after = await idleReading(server, (reading) => counted.every((measure) => reading[measure] <= before[measure]));
  say(`\n${"at rest".padEnd(24)}${"before".padStart(9)}${"after".padStart(9)}\n`);
  for (const measure of counted) {
    const kept = after[measure] > before[measure];
    const ends = [before, after].map((reading) => shown(reading[measure]).padStart(9)).join("");
    say(`${measure.padEnd(24)}${ends}   ${kept ? "NOT released" : "as before"}\n`);
  }
  return counted.every((measure) => after[measure] <= before[measure]);
}

/** With no client connected; waits for the wanted values for a while. */
async function idleReading(
  server: ServerProcess,
  wanted: (reading: Reading) => boolean = () => false,
): Promise<Reading> {
  closeConnections(server);
  for (let tries = 0; ; tries++) {
    await sleep(250);
    const reading = await read(server);
    if (wanted(reading) || tries === 20) return reading;
  }
}

function shown(value: number | undefined): string {
  return (value ?? Number.NaN).toFixed(1);
}

function say(text: string): void {
  process.stdout.write(text);
}

if (!existsSync("/proc/self/status")) {
  process.stderr.write("the soak reads /proc, which only Linux has\n");
  process.exitCode = 2;
} else {
  try {
    const level = await soak();
    say(level ? "\nverdict: level\n" : "\nverdict: NOT level\n");
    process.exitCode = level ? 0 : 1;
  } finally {
    await cleanUpTo(0);
  }
}
