/** Scenarios of a vault in PostgreSQL: against files and the client alone, several servers, a slower network. */
import { postgresPrograms, startPostgres, urlOf } from "../../test/support/postgres.js";
import { run } from "../../test/support/process.js";
import { mustUnlock } from "../../test/support/test-client.js";
import { pathOf } from "../filled-vaults.js";
import { alternate, type Contender, contender, measure, type Sample, startLoader, stream } from "../measure.js";
import { compare, cpu, type Outcome, throughput } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { type StrongroomSubject, startBareDatabase, startProgram } from "../subjects.js";
import { totalCpu } from "../usage.js";
import { get, put, type Workload } from "../workloads.js";

const addedMs = 1;

/** The same load on files and on a database; without the fixed rate, which a busy machine may not sustain. */
const loads = [
  { ...get, what: "get, 200 bytes, 64 connections", statement: "get" },
  { ...put, what: "put, 1 KiB, 16 connections", statement: "put" },
] as const;

type Load = (typeof loads)[number];

export const postgres: Scenario = {
  name: "postgres",
  about: "gets and puts of 1, 2 and 3 servers on PostgreSQL, against files, the client alone, and 1 ms further away",
  vaults: () => [get.secrets],
  async run(bench) {
    if (postgresPrograms === null) throw new Error("PostgreSQL is not installed: install it, or leave out postgres");
    const places = await startPlaces(bench);
    const outcomes: Outcome[] = [];
    for (const load of loads) outcomes.push(await againstFiles(bench, places, load));
    for (const load of loads) outcomes.push(await severalServers(bench, places, load));
    for (const load of loads) outcomes.push(await furtherAway(bench, places, load));
    return outcomes;
  },
};

type Places = {
  readonly near: string;
  readonly far: string;
  readonly files: StrongroomSubject;
  readonly servers: readonly StrongroomSubject[];
  readonly farServer: StrongroomSubject;
};

async function startPlaces(bench: Bench): Promise<Places> {
  const cluster = await startPostgres();
  const database = await cluster.database();
  const near = urlOf(cluster.port, database);
  const migrated = await run(["migrate", "--from", bench.home(get.secrets), "--to", near]);
  if (migrated.code !== 0) throw new Error(migrated.stderr);
  const link = { BENCH_PORT: String(cluster.port), BENCH_DELAY_MS: String(addedMs) };
  const { greeting } = await startProgram("slow-link.js", link);
  const far = urlOf((greeting as { port: number }).port, database);
  const servers: StrongroomSubject[] = [];
  for (let n = 1; n <= 3; n++) servers.push(await serverOn(bench, near, `server ${n} on PostgreSQL`));
  const farServer = await serverOn(bench, far, `on PostgreSQL, ${addedMs} ms further away`);
  return { near, far, files: await bench.strongroom(get.secrets, { name: "on files" }), servers, farServer };
}

async function serverOn(bench: Bench, url: string, name: string): Promise<StrongroomSubject> {
  const subject = await bench.freshStrongroom({ name, environment: { STRONGROOM_STORE: url } });
  await mustUnlock(subject.server);
  return subject;
}

async function againstFiles(bench: Bench, { near, files, servers }: Places, load: Load): Promise<Outcome> {
  const one = { ...mustHave(servers, 0), name: "on PostgreSQL" };
  const bare = await bareContender(bench, near, load);
  const series = await alternate(
    [contender(bench, one, paceless(load)), contender(bench, files, paceless(load)), bare],
    bench.options,
  );
  const [ours, onFiles, alone] = series;
  const findings = [
    compare("throughput, of that on files", ours, onFiles, throughput),
    compare("throughput, of the client's alone", ours, alone, throughput),
    compare("CPU a request, of that on files", ours, onFiles, cpu),
    compare("CPU a request, of the client's alone", ours, alone, cpu),
  ];
  return { scenario: `${load.what}: on PostgreSQL`, series, findings };
}

async function severalServers(bench: Bench, { servers }: Places, load: Load): Promise<Outcome> {
  const contenders: Contender[] = [];
  for (let n = 1; n <= servers.length; n++) contenders.push(await together(servers.slice(0, n), load));
  const series = await alternate(contenders, bench.options);
  const [one, ...more] = series;
  const findings = more.map((each) => compare(`throughput of ${each.subject}, of one's`, each, one, throughput));
  return { scenario: `${load.what}: 1, 2 and 3 servers`, series, findings };
}

async function furtherAway(bench: Bench, { far, servers, farServer }: Places, load: Load): Promise<Outcome> {
  const one = { ...mustHave(servers, 0), name: "on PostgreSQL" };
  const bare = await bareContender(bench, far, load);
  const series = await alternate(
    [contender(bench, farServer, paceless(load)), contender(bench, one, paceless(load)), bare],
    bench.options,
  );
  const [away, near, alone] = series;
  const findings = [
    compare(`throughput, of that without the ${addedMs} ms`, away, near, throughput),
    compare("throughput, of the client's alone, as far away", away, alone, throughput),
  ];
  return { scenario: `${load.what}: ${addedMs} ms further away`, series, findings };
}

/** The client itself has as many connections as a server by default. */
async function bareContender(bench: Bench, url: string, { statement, connections }: Load): Promise<Contender> {
  const paths = Array.from({ length: get.secrets }, (_, n) => pathOf(n)).join(",");
  const settings = { BENCH_DATABASE: url, BENCH_POOL: "10", BENCH_STATEMENT: statement, BENCH_PATHS: paths };
  const subject = await startBareDatabase(settings);
  return contender({ loader: subject.child, pacer: bench.pacer }, subject, { connections, requests: [] });
}

/** The load's connections, dealt out to all servers, each with a load process of its own; the sum of their figures. */
async function together(servers: readonly StrongroomSubject[], load: Load): Promise<Contender> {
  const loaders = await Promise.all(servers.map(() => startLoader()));
  const connections = Math.ceil(load.connections / servers.length);
  const sample = async (seconds: number): Promise<Sample> => {
    const reports = await Promise.all(
      servers.map((server, i) =>
        measure(mustHave(loaders, i), server, [stream(server, { ...load, connections })], seconds),
      ),
    );
    const streams = reports.flatMap((report) => report.streams);
    const sum = (of: (stream: (typeof streams)[number]) => number) => streams.reduce((all, one) => all + of(one), 0);
    const count = sum((one) => one.count);
    const main = reports.reduce((all, { usage }) => all + totalCpu(usage.cpu), 0) / count;
    return {
      count,
      perSecond: sum((one) => one.perSecond),
      failed: sum((one) => one.failed),
      latency: null,
      cpu: { main, worker: 0, pool: 0, engine: 0 },
      peak: Math.max(...reports.map(({ usage }) => usage.peak)),
      loadBusy: Math.max(...reports.map(({ usage }) => usage.watcherBusy)),
    };
  };
  return { name: servers.length === 1 ? "1 server" : `${servers.length} servers`, sample };
}

function paceless({ connections, requests }: Workload): Pick<Workload, "connections" | "requests"> {
  return { connections, requests };
}

function mustHave<T>(items: readonly T[], at: number): T {
  const item = items[at];
  if (item === undefined) throw new Error(`there is no item ${at}`);
  return item;
}
