/** Cost of watching a server: by an open review page, and by `strongroom prove`, which copies its memory. */
import { request } from "node:https";
import { later } from "../tools/rig/clean-up.js";
import { run } from "../tools/rig/process.js";
import { mustSucceed, mustUnlock, send } from "../tools/rig/test-client.js";
import { type Finding, found, type Outcome, ratios } from "./figures.js";
import { type Loaders, pacedStream, type Sample, sendPaced, takeSample } from "./measure.js";
import type { Options } from "./options.js";
import { totalCpu } from "./process-usage.js";
import type { PacedReport } from "./programs/paced-load.js";
import { type Hog, type StrongroomSubject, startHog, startStrongroom } from "./subjects.js";
import { filledHome, numberedPath } from "./vaults.js";
import { get, getSecrets } from "./workloads.js";

const connections = 64;
/** Rate of gets while the memory is copied and judged. */
const perSecond = 200;
/** Longer than a `prove` takes to copy. */
const proveSeconds = 15;
/** The size of server that the time to judge is given for. */
const mebibytes = 200;

export async function* measureEvidence(loaders: Loaders, options: Options): AsyncGenerator<Outcome> {
  const home = await filledHome(getSecrets, options);
  const subject = await startStrongroom(home, {
    nodeFlags: options.nodeFlags,
    environment: { STRONGROOM_REVIEW_PAGE: "on" },
  });
  await mustUnlock(subject.server);
  const page = await besidePage(loaders, subject, options);
  yield { title: `get beside an open review page, ${connections} connections`, findings: page };
  const hog = await startHog();
  const runs: ProveRun[] = [];
  for (let round = 0; round < options.rounds; round++) runs.push(await proveRun(loaders, subject, hog));
  yield { title: `strongroom prove beside ${perSecond} gets a second`, findings: findingsOfProve(runs) };
}

type Pair = { readonly alone: Sample; readonly watched: Sample };

async function besidePage(loaders: Loaders, subject: StrongroomSubject, options: Options): Promise<Finding[]> {
  const workload = { ...get(connections), perSecond: undefined };
  const pairs: Pair[] = [];
  for (let round = -1; round < options.rounds; round++) {
    const alone = await takeSample(loaders, subject, workload, options.seconds);
    const close = await openPage(subject);
    const watched = await takeSample(loaders, subject, workload, options.seconds);
    close();
    if (round >= 0) pairs.push({ alone, watched }); // the first round is warm-up
  }
  return [
    ...compared(pairs, "rate", "/s", (sample) => sample.perSecond),
    ...compared(pairs, "CPU", "µs", ({ cpu }) => totalCpu(cpu)),
  ];
}

function findingsOfProve(runs: readonly ProveRun[]): Finding[] {
  const of = (figure: (run: ProveRun) => number) => runs.map(figure);
  const latencies = of(({ watched }) => watched.p99);
  const besideHog = of(({ busy }) => busy.p99);
  return [
    found(
      "stand-still",
      of(({ stoodStillMs }) => stoodStillMs),
      "ms",
    ),
    found(
      "memory",
      of(({ memoryMiB }) => memoryMiB),
      "MiB",
    ),
    found(
      `whole run, for ${mebibytes} MiB`,
      of(({ seconds, memoryMiB }) => (seconds * mebibytes) / memoryMiB),
      "s",
    ),
    found("get p99 beside it", latencies, "ms"),
    found("get p99, of that beside a busy process", ratios(latencies, besideHog), "×"),
    found(
      "longest get beside it",
      of(({ watched }) => watched.max),
      "ms",
    ),
    found(
      "failed",
      of(({ watched }) => watched.failed),
      "",
    ),
  ];
}

function compared(
  samples: readonly Pair[],
  what: string,
  unit: "/s" | "µs",
  figure: (sample: Sample) => number,
): Finding[] {
  const [watched, alone] = [samples.map((pair) => figure(pair.watched)), samples.map((pair) => figure(pair.alone))];
  return [found(what, watched, unit), found(`${what}, of that without the page`, ratios(watched, alone), "×")];
}

/** Opens what a browser keeps open; returns what closes it. */
async function openPage({ server }: StrongroomSubject): Promise<() => void> {
  const { code } = mustSucceed(await send(server, { method: "POST", path: "/v1/review" }));
  const trade = { method: "POST", path: "/v1/review/token", body: { code }, token: null };
  const { token } = mustSucceed(await send(server, trade));
  const { port, certificate } = server;
  const headers = { authorization: `Bearer ${String(token)}` };
  return new Promise((resolve, reject) => {
    const options = { host: "localhost", port, ca: certificate, path: "/v1/vitals", headers, agent: false };
    const stream = request(options, (response) => {
      response.on("error", () => {}).resume();
      resolve(() => void stream.destroy());
    });
    stream.once("error", reject).end();
    later(() => void stream.destroy());
  });
}

type Machine = { readonly stoodStillMs: number; readonly memoryMiB: number; readonly seconds: number };
type ProveRun = Machine & { readonly watched: PacedReport; readonly busy: PacedReport };

/** Gets beside a process that only keeps a processor busy, then beside `prove`. */
async function proveRun({ pacer }: Loaders, subject: StrongroomSubject, hog: Hog): Promise<ProveRun> {
  const requests = [{ method: "GET" as const, path: `/v1/secrets/${numberedPath(0)}` }];
  const paced = [pacedStream(subject, { connections: 8, requests }, perSecond)];
  const load = { url: subject.url, paced, seconds: proveSeconds };
  hog.go();
  const [busy] = await sendPaced(pacer, load);
  hog.halt();
  const proving = run(["prove", "--as-attacker", "--json"], { STRONGROOM_HOME: subject.server.home });
  const [watched] = await sendPaced(pacer, load);
  const { code, stdout, stderr } = await proving;
  if (code !== 0 || busy === undefined || watched === undefined) throw new Error(`prove ended with ${code}: ${stderr}`);
  const { machine } = JSON.parse(stdout) as { readonly machine: Machine };
  return { ...machine, busy, watched };
}
