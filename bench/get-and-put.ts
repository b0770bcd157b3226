/** Cost of a get and a put next to servers that do less, and to a server that does the same work in the usual way. */
import { mustGet, mustPut, mustUnlock } from "../tools/rig/test-client.js";
import type { Outcome } from "./figures.js";
import { alternate, compareSeries, type Loaders } from "./measure.js";
import type { Options } from "./options.js";
import {
  type StrongroomSubject,
  type Subject,
  startBare,
  startDurableLoop,
  startDurableServer,
  startKeyThread,
  startNaive,
  startStrongroom,
} from "./subjects.js";
import { filledHome, numberedPath } from "./vaults.js";
import { get, getSecrets, put } from "./workloads.js";

/** On 64 connections, and on one, where nothing is batched and the hop to a key thread counts whole. */
export async function* compareGets(loaders: Loaders, options: Options): AsyncGenerator<Outcome> {
  const strongroom = await unlocked(getSecrets, options);
  const response = Buffer.from(JSON.stringify(await mustGet(strongroom.server, numberedPath(0))));
  const bare = await startBare(response, strongroom);
  const naive = await startNaive(strongroom);
  await fillNaive(strongroom, naive);
  const many = await alternate(loaders, [strongroom, bare, naive], get(64), options);
  yield { title: "get of 200 bytes, 64 connections", findings: compareSeries(many) };
  const closed = await alternate(
    loaders,
    [strongroom, bare].map(closing),
    { ...get(16), perSecond: undefined },
    options,
  );
  yield { title: "get of 200 bytes, 16 connections, a connection for each", findings: compareSeries(closed) };
  const keyThread = await startKeyThread(response, strongroom);
  const one = await alternate(loaders, [strongroom, bare, keyThread], get(1), options);
  yield { title: "get of 200 bytes, 1 connection", findings: compareSeries(one) };
}

/** The subject closes each connection after its response, as for programs without keep-alive. */
export function closing<S extends Subject>(subject: S): S {
  return { ...subject, headers: { ...subject.headers, Connection: "close" } };
}

export async function* comparePuts(loaders: Loaders, options: Options): AsyncGenerator<Outcome> {
  const strongroom = await unlocked(0, options);
  const subjects = [strongroom, await startDurableLoop(1024), await startDurableServer(strongroom)];
  const series = await alternate(loaders, subjects, put, options);
  yield { title: "put of 1 KiB, 16 connections", findings: compareSeries(series) };
}

async function unlocked(secrets: number, { nodeFlags }: Options): Promise<StrongroomSubject> {
  const subject = await startStrongroom(await filledHome(secrets), { nodeFlags });
  await mustUnlock(subject.server);
  return subject;
}

/** The naive app has its own files: puts the same secrets into it. */
async function fillNaive({ server }: StrongroomSubject, naive: Subject): Promise<void> {
  const door = { ...server, url: naive.url, port: Number(new URL(naive.url).port) };
  for (let n = 0; n < getSecrets; n++)
    await mustPut(door, numberedPath(n), { value: "v".repeat(200), type: "api-key" });
}
