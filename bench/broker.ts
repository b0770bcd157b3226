/** Cost of the broker to others and to a body: gets next to 1,000 open streams and to refreshes, 1 GB against a CONNECT tunnel. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { generate } from "selfsigned";
import { type Agent, bind, openTunnel, startAgent, startTls } from "../tools/rig/broker-rig.js";
import { temporaryDirectory } from "../tools/rig/clean-up.js";
import { mustInit, mustPut } from "../tools/rig/test-client.js";
import { found, type Outcome, ratios } from "./figures.js";
import { type Loaders, pacedStream, sendPaced, settle } from "./measure.js";
import type { Options } from "./options.js";
import { processCpu, processMemory, totalCpu } from "./process-usage.js";
import { type StrongroomSubject, startProgram, startStrongroom } from "./subjects.js";
import { numberedPath } from "./vaults.js";

const streams = 1000;

/** Streams of one session, which may have 64 connections. */
const streamsTogether = 50;

/** Secrets with a refresh token of their own, each refreshed once a second. */
const refreshes = 50;

const bodyBytes = 1_000_000_000;
const perSecond = 200;

/** A p99 needs a thousand requests. */
const leastSeconds = 5;

type Rig = {
  readonly port: number;
  readonly subject: StrongroomSubject;
  readonly agent: Agent;
  readonly at: string;
  readonly root: string;
};

export async function* measureBroker({ pacer }: Loaders, options: Options): AsyncGenerator<Outcome> {
  const rig = await startRig(options);
  yield await measureStreams(rig, pacer, options);
  yield await measureRefreshes(rig, pacer, options);
  yield await measureBodies(rig, options);
}

async function startRig({ nodeFlags }: Options): Promise<Rig> {
  const directory = temporaryDirectory();
  const [root, key] = [join(directory, "root.pem"), join(directory, "key.pem")];
  const altNames = [{ type: 2 as const, value: "localhost" }];
  const made = await generate([{ name: "commonName", value: "upstream" }], {
    keyType: "ec",
    extensions: [{ name: "subjectAltName", altNames }],
  });
  writeFileSync(root, made.cert);
  writeFileSync(key, made.private);
  const { greeting } = await startProgram("upstream.js", { BENCH_CERT: root, BENCH_KEY: key });
  const { port } = greeting as { readonly port: number };
  const environment = {
    ...{ STRONGROOM_BROKER_PORT: "0", STRONGROOM_UPSTREAM_CA: root },
    STRONGROOM_MAX_CONNECTIONS: String(2 * streams), // a quarter of them is for those without a token yet
  };
  const subject = await startStrongroom(join(directory, "home"), { environment, nodeFlags });
  await mustInit(subject.server);
  await mustPut(subject.server, numberedPath(0), "v".repeat(200));
  await mustPut(subject.server, "used/key", "credential-of-the-benchmark");
  await bind(subject.server, "used/key", { host: "localhost", port, private: true });
  return {
    port,
    subject,
    agent: await startAgent(subject.server, { paths: ["used/"] }),
    at: `localhost:${port}`,
    root,
  };
}

async function measureStreams(rig: Rig, pacer: Loaders["pacer"], options: Options): Promise<Outcome> {
  const p99 = () => measureGets(rig, pacer, options);
  const [alone, beside, memory]: [number[], number[], number[]] = [[], [], []];
  for (let round = -1; round < options.rounds; round++) {
    await settle(rig.subject);
    const before = processMemory(rig.subject.pid).now;
    const quiet = await p99();
    const open = await openStreams(rig);
    const used = processMemory(rig.subject.pid).now - before;
    const busy = await p99();
    for (const socket of open) socket.destroy();
    if (round < 0) continue; // the first is warm-up
    alone.push(quiet);
    beside.push(busy);
    memory.push((used * 1024) / streams);
  }
  const findings = [
    found("get p99", alone, "ms"),
    found(`get p99 beside ${streams} streams`, beside, "ms"),
    found("of that alone", ratios(beside, alone), "×"),
    found("memory a stream", memory, "KiB"),
  ];
  return { title: `${streams} streams of events through the broker, one event a second on each`, findings };
}

/** Returns the p99 of gets at a fixed rate, in milliseconds. */
async function measureGets({ subject }: Rig, pacer: Loaders["pacer"], options: Options): Promise<number> {
  const seconds = Math.max(leastSeconds, options.seconds);
  const requests = [{ method: "GET" as const, path: `/v1/secrets/${numberedPath(0)}` }];
  const paced = [pacedStream(subject, { connections: 8, requests }, perSecond)];
  return (await sendPaced(pacer, { url: subject.url, paced, seconds }))[0]?.p99 ?? Number.NaN;
}

/** Each round measures gets alone twice: what differs between these two is noise. */
async function measureRefreshes(rig: Rig, pacer: Loaders["pacer"], options: Options): Promise<Outcome> {
  const programs = await startPrograms(rig);
  const [alone, beside, again, rate, cost]: [number[], number[], number[], number[], number[]] = [[], [], [], [], []];
  const { pid, threads } = rig.subject;
  const cpu = () => totalCpu(processCpu(pid, threads));
  for (let round = -1; round < options.rounds; round++) {
    await settle(rig.subject);
    const before = cpu();
    const quiet = await measureGets(rig, pacer, options);
    const forGets = cpu() - before;
    const load = new RefreshLoad(programs, rig.at);
    const busy = await measureGets(rig, pacer, options);
    const { count, perSecond } = load.end();
    const forBoth = cpu() - before - forGets;
    await settle(rig.subject);
    const afterwards = await measureGets(rig, pacer, options);
    if (round < 0) continue; // the first is warm-up
    alone.push(quiet);
    beside.push(busy);
    again.push(afterwards);
    rate.push(perSecond);
    cost.push((forBoth - forGets) / 1_000 / count);
  }
  const findings = [
    found("get p99", alone, "ms"),
    found("get p99 beside refreshes", beside, "ms"),
    found("of that alone", ratios(beside, alone), "×"),
    found("alone again, of that alone", ratios(again, alone), "×"),
    found("refreshes", rate, "/s"),
    found("the server's CPU for one", cost, "ms"),
  ];
  return { title: `${refreshes} refreshes a second, each of which stores a rotated refresh token`, findings };
}

/** Returns the connection of a program for each secret, whose access tokens can be used for half a second. */
async function startPrograms({ subject, port, at }: Rig): Promise<TLSSocket[]> {
  const programs: TLSSocket[] = [];
  for (let i = 0; i < refreshes; i++) {
    const path = `refreshed/${i}`;
    await mustPut(subject.server, path, JSON.stringify({ refreshToken: "refresh-0" }));
    const oauth = { tokenUrl: `https://${at}/token`, clientId: "bench" };
    await bind(subject.server, path, { host: "localhost", port, private: true, oauth });
    programs.push(await openTls(await startAgent(subject.server, { paths: [path] }), at));
  }
  return programs;
}

/** One request a second on each connection. */
class RefreshLoad {
  readonly #programs: readonly TLSSocket[];
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #began = performance.now();
  #first = Number.POSITIVE_INFINITY;
  #last = 0;

  constructor(programs: readonly TLSSocket[], at: string) {
    this.#programs = programs;
    for (const [i, program] of programs.entries()) {
      program.on("data", this.#read);
      const send = () => program.write(`GET /issued HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
      const begin = () => this.#timers.push(setInterval(send, 1_000));
      setTimeout(begin, (i * 1_000) / refreshes);
    }
  }

  /** Stops sending; returns how many tokens were issued, and how many a second. */
  end(): { readonly count: number; readonly perSecond: number } {
    for (const timer of this.#timers) clearInterval(timer);
    for (const program of this.#programs) program.off("data", this.#read);
    const count = this.#last - this.#first;
    return { count, perSecond: (count * 1_000) / (performance.now() - this.#began) };
  }

  readonly #read = (piece: Buffer): void => {
    const [, issued] = /issued (\d+)/.exec(piece.toString("latin1")) ?? [];
    if (issued === undefined) return;
    this.#first = Math.min(this.#first, Number(issued));
    this.#last = Math.max(this.#last, Number(issued));
  };
}

/** Some at a time, as programs open them. */
async function openStreams(rig: Rig): Promise<TLSSocket[]> {
  const open: TLSSocket[] = [];
  while (open.length < streams) {
    const agent = await startAgent(rig.subject.server, { paths: ["used/"] });
    open.push(...(await Promise.all(Array.from({ length: streamsTogether }, () => openStream(agent, rig.at)))));
  }
  await sleep(2000);
  return open;
}

async function openTls(agent: Agent, at: string): Promise<TLSSocket> {
  const opened = await openTunnel(agent, at);
  if (typeof opened === "string") throw new Error(opened);
  return startTls(agent, opened, "localhost", "localhost");
}

async function openStream(agent: Agent, at: string): Promise<TLSSocket> {
  const socket = await openTls(agent, at);
  socket.write(`GET /events HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.resume();
  return socket;
}

async function measureBodies({ agent, at, root }: Rig, { rounds }: Options): Promise<Outcome> {
  const { greeting } = await startProgram("connect-tunnel.js");
  const { port } = greeting as { readonly port: number };
  const [tunnel, broker]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    tunnel.push(await download(`http://127.0.0.1:${port}`, root, at));
    broker.push(await download(`http://x:${agent.token}@127.0.0.1:${agent.port}`, agent.caFile, at));
  }
  const findings = [
    found("plain CONNECT tunnel", tunnel, "MB/s"),
    found("through the broker", broker, "MB/s"),
    found("of the tunnel", ratios(broker, tunnel), "×"),
  ];
  return { title: "a body of 1 GB, received by curl", findings };
}

/** Returns megabytes a second. */
async function download(proxy: string, ca: string, at: string): Promise<number> {
  const flags = [
    "-sSf",
    "-o",
    "/dev/null",
    "--proxy",
    proxy,
    "--noproxy",
    "",
    "--cacert",
    ca,
    "-w",
    "%{speed_download}",
  ];
  const { stdout } = await promisify(execFile)("curl", [...flags, `https://${at}/body/${bodyBytes}`]);
  return Number(stdout) / 1e6;
}
