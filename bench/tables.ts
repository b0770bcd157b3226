/** autocannon's own tables, as load testers read them: Strongroom, bare servers and OpenBao in turn, in one run. */
import { once } from "node:events";
import { mustGet, mustUnlock } from "../tools/rig/test-client.js";
import type { Outcome } from "./figures.js";
import { closing } from "./get-and-put.js";
import { type Loaders, sendLoad, type Workload } from "./measure.js";
import { baoVersion, startRaft } from "./openbao.js";
import type { Options } from "./options.js";
import type { TableLoad } from "./programs/table.js";
import { startStormSubject, unlocks } from "./storm.js";
import { type Subject, startBare, startDurableServer, startProgram, startStrongroom } from "./subjects.js";
import { filledHome, numberedPath } from "./vaults.js";
import { get, getSecrets, put } from "./workloads.js";

const leastSeconds = 5;

/** Each load begins with a run whose table is dropped. */
const warmSeconds = 1;

/** A request every 5 ms, which every server sustains in a storm. */
const perSecond = 200;

/** OpenBao is left out where there is no `bao`. */
export async function* showTables({ loader }: Loaders, options: Options): AsyncGenerator<Outcome> {
  const { child } = await startProgram("table.js");
  const seconds = Math.max(leastSeconds, options.seconds);
  const drawTable = async ({ url, headers }: Subject, { connections, requests }: Workload, rate?: number) => {
    const load = { url, headers, connections, requests, ...(rate && { perSecond: rate }) };
    let table = "";
    for (const length of [warmSeconds, seconds]) {
      const received = once(child, "message");
      child.send({ ...load, seconds: length } satisfies TableLoad);
      ({ table } = (await received)[0] as { readonly table: string });
    }
    return table;
  };
  const strongroom = await startStrongroom(await filledHome(getSecrets), { nodeFlags: options.nodeFlags });
  await mustUnlock(strongroom.server);
  const bare = await startBare(
    Buffer.from(JSON.stringify(await mustGet(strongroom.server, numberedPath(0)))),
    strongroom,
  );
  const durable = await startDurableServer(strongroom);
  const bao = baoVersion(options.bao) === null ? [] : [await startRaft(options.bao, strongroom, getSecrets)];
  const rows = [
    { title: "get of 200 bytes, 64 connections", workload: get(64), subjects: [strongroom, bare] },
    {
      title: "get of 200 bytes, each on its own connection",
      workload: get(16),
      subjects: [strongroom, bare],
      closes: true,
    },
    { title: "put of 1 KiB, 16 connections", workload: put, subjects: [strongroom, durable] },
  ];
  for (const { title, workload, subjects, closes } of rows) {
    const drawRow = async (subject: Subject, load: Workload) => ({
      title: `${title}: ${subject.name}`,
      findings: [],
      table: await drawTable(closes ? closing(subject) : subject, load),
    });
    for (const subject of subjects) yield drawRow(subject, workload);
    for (const { subject, forKv } of bao) yield drawRow(subject, forKv(workload));
  }
  const stormy = await startStormSubject(options);
  const unlocking = sendLoad(loader, stormy, unlocks, warmSeconds + seconds + 1);
  const table = await drawTable(stormy, { ...get(8), requests: get(8).requests.slice(0, 1) }, perSecond);
  await unlocking;
  yield { title: `get, ${perSecond} a second, while ${unlocks.connections} clients unlock`, findings: [], table };
}
