/**
 * Latency of status and get while 16 clients unlock without a pause. The baseline is the same beside a process that keeps
 * one CPU busy, as any key derivation does.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { temporaryDirectory } from "../tools/rig/clean-up.js";
import { passphrase } from "../tools/rig/server.js";
import { mustInit, mustPut } from "../tools/rig/test-client.js";
import { type Finding, found, type Outcome, ratios } from "./figures.js";
import { type Loaders, pacedStream, sendLoad, sendPaced, settle } from "./measure.js";
import type { Options } from "./options.js";
import { processMemory } from "./process-usage.js";
import type { PacedReport, PacedStream } from "./programs/paced-load.js";
import { type Hog, type StrongroomSubject, startHog, startStrongroom } from "./subjects.js";
import { numberedPath } from "./vaults.js";

export const unlocks = {
  connections: 16,
  requests: [{ method: "POST" as const, path: "/v1/unlock", body: JSON.stringify({ passphrase }) }],
};

/** Rate of status and of get, each: a request every 5 ms. */
const perSecond = 200;

/** A p99.9 needs a thousand requests. */
const leastSeconds = 5;

/** Times in milliseconds, memory above idle in MiB. */
type Round = {
  readonly busy: readonly PacedReport[];
  readonly stormy: readonly PacedReport[];
  readonly memory: number;
  readonly unlocksPerSecond: number;
  readonly failed: number;
};

export async function* measureStorm(loaders: Loaders, options: Options): AsyncGenerator<Outcome> {
  const subject = await startStormSubject(options);
  const hog = await startHog();
  const idle = processMemory(subject.pid).now;
  const rounds: Round[] = [];
  for (let round = -1; round < options.rounds; round++) {
    const one = await stormRound(loaders, subject, hog, Math.max(leastSeconds, options.seconds), idle);
    if (round >= 0) rounds.push(one); // the first is warm-up
  }
  yield { title: `16 clients unlocking, ${perSecond} status and get a second`, findings: stormFindings(rounds) };
}

/** Starts a server with one secret, whose derivations cost what they cost by default. */
export async function startStormSubject({ nodeFlags }: Options): Promise<StrongroomSubject> {
  const home = join(temporaryDirectory(), "home");
  const subject = await startStrongroom(home, { environment: { STRONGROOM_SCRYPT_LOG_N: "17" }, nodeFlags });
  await mustInit(subject.server);
  await mustPut(subject.server, numberedPath(0), "v".repeat(200));
  return subject;
}

async function stormRound(
  { loader, pacer }: Loaders,
  subject: StrongroomSubject,
  hog: Hog,
  seconds: number,
  idle: number,
): Promise<Round> {
  const load = { url: subject.url, paced: probeStreams(subject), seconds };
  hog.go();
  const busy = await sendPaced(pacer, load);
  hog.halt();
  const unlocking = sendLoad(loader, subject, unlocks, seconds + 2); // longer than the probes
  await sleep(1000); // the queue is full
  const stormy = await sendPaced(pacer, load);
  const { perSecond: unlocksPerSecond, failed: unlocksFailed, usage } = await unlocking;
  await settle(subject); // derivations still in the queue are done although their clients have gone
  const failed = [...busy, ...stormy].reduce((sum, report) => sum + report.failed, unlocksFailed);
  return { busy, stormy, memory: usage.peak - idle, unlocksPerSecond, failed };
}

function probeStreams(subject: StrongroomSubject): PacedStream[] {
  const of = (path: string) => pacedStream(subject, { connections: 8, requests: [{ method: "GET", path }] }, perSecond);
  return [of("/v1/status"), of(`/v1/secrets/${numberedPath(0)}`)];
}

function stormFindings(rounds: readonly Round[]): Finding[] {
  const latencies = ["status", "get"].flatMap((name, stream) =>
    (["p50", "p99", "p999", "max"] as const).flatMap((figure) => {
      const of = (part: "busy" | "stormy") => rounds.map((round) => round[part][stream]?.[figure] ?? Number.NaN);
      const [stormy, busy] = [of("stormy"), of("busy")];
      const what = `${name} ${figure}`;
      return [
        found(`${what} in the storm`, stormy, "ms"),
        found(`${what}, of that beside a busy process`, ratios(stormy, busy), "×"),
      ];
    }),
  );
  return [
    ...latencies,
    found(
      "peak memory above idle",
      rounds.map(({ memory }) => memory),
      "MiB",
    ),
    found(
      "unlocks",
      rounds.map(({ unlocksPerSecond }) => unlocksPerSecond),
      "/s",
    ),
    found(
      "failed requests in a round",
      rounds.map(({ failed }) => failed),
      "",
    ),
  ];
}
