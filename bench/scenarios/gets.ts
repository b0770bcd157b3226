/** Scenarios of reading: warm and cold, from 1 to 64 connections, and large. */
import { mustPut } from "../../test/support/test-client.js";
import { pathOf, valueBytes } from "../filled-vaults.js";
import { alternate, contender } from "../measure.js";
import { againstEach, compare, cpu, type Outcome, p50, type Target, throughput } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { type StrongroomSubject, type Subject, startFixed, startNaive } from "../subjects.js";
import { get, getCold, getLarge, getOn, type Workload } from "../workloads.js";
import { replyTo } from "./replies.js";

export const warm: Scenario = {
  name: "get",
  about: "gets of 200 bytes on 64 connections, against servers that do less and one that does the same work",
  vaults: () => [get.secrets],
  async run(bench) {
    const strongroom = await bench.strongroom(get.secrets);
    const body = await replyTo(strongroom, get);
    const bare = await startFixed("bare", body, strongroom);
    const express = await startFixed("plain-express", body, strongroom);
    const naive = await startNaive(strongroom);
    await storeInNaive(strongroom, naive);
    const series = await alternate(
      [strongroom, bare, express, naive].map((subject) => contender(bench, subject, get)),
      bench.options,
    );
    const findings = againstEach(series, [{ atLeast: 0.4 }, undefined, { atLeast: 2 }]);
    return [{ scenario: "get, 200 bytes, 64 connections", series, findings }];
  },
};

export const cold: Scenario = {
  name: "get-cold",
  about: "the same over more secrets than a cache holds (--cold-keys)",
  vaults: ({ coldKeys }) => [coldKeys],
  async run(bench) {
    const workload = getCold(bench.options);
    const strongroom = await bench.strongroom(workload.secrets);
    const scenario = `get, cold: ${workload.secrets} secrets in turn, 64 connections`;
    return [await againstBare(bench, strongroom, workload, scenario)];
  },
};

export const connections: Scenario = {
  name: "connections",
  about: "gets on 1, 4, 16 and 64 connections",
  vaults: () => [get.secrets],
  async run(bench) {
    const strongroom = await bench.strongroom(get.secrets);
    const body = await replyTo(strongroom, get);
    const bare = await startFixed("bare", body, strongroom);
    const outcomes = [await onOneConnection(bench, strongroom, bare, body)];
    for (const count of [4, 16, 64]) outcomes.push(await onConnections(bench, [strongroom, bare], count));
    return outcomes;
  },
};

/** On one connection nothing is batched; a third server shows what the hop to the key thread and back alone costs. */
async function onOneConnection(
  bench: Bench,
  strongroom: StrongroomSubject,
  bare: Subject,
  body: Uint8Array,
): Promise<Outcome> {
  const keyThread = await startFixed("key-thread", body, strongroom);
  const outcome = await onConnections(bench, [strongroom, bare, keyThread], 1, { atMost: 2 });
  const [, base, hop] = outcome.series;
  return {
    ...outcome,
    findings: [...outcome.findings, compare("p50 with a key thread, of the bare server's", hop, base, p50)],
  };
}

async function onConnections(
  bench: Bench,
  subjects: readonly Subject[],
  count: number,
  target?: Target,
): Promise<Outcome> {
  const series = await alternate(
    subjects.map((subject) => contender(bench, subject, getOn(count))),
    bench.options,
  );
  const [ours, base] = series;
  const findings = [
    compare("p50, of the bare server's", ours, base, p50, target),
    compare("throughput, of the bare server's", ours, base, throughput),
    compare("CPU a request, of the bare server's", ours, base, cpu),
  ];
  return { scenario: `get, ${count} ${count === 1 ? "connection" : "connections"}`, series, findings };
}

export const large: Scenario = {
  name: "get-large",
  about: "gets of 1 MiB on 4 connections",
  vaults: () => [getLarge.secrets],
  async run(bench) {
    const strongroom = await bench.strongroom(getLarge.secrets);
    await getLarge.prepare?.(strongroom);
    return [await againstBare(bench, strongroom, getLarge, "get, 1 MiB, 4 connections")];
  },
};

/** Against a bare server that sends the same bytes. */
export async function againstBare(
  bench: Bench,
  strongroom: StrongroomSubject,
  workload: Workload,
  scenario: string,
): Promise<Outcome> {
  const bare = await startFixed("bare", await replyTo(strongroom, workload), strongroom);
  const contenders = [strongroom, bare].map((subject) => contender(bench, subject, workload));
  const series = await alternate(contenders, bench.options);
  return { scenario, series, findings: againstEach(series, []) };
}

/** The naive app has its own files: puts the same secrets into it. */
async function storeInNaive({ server }: StrongroomSubject, naive: Subject): Promise<void> {
  const door = { ...server, url: naive.url, port: Number(new URL(naive.url).port) };
  const body = { value: "v".repeat(valueBytes), type: "api-key" };
  for (let n = 0; n < get.secrets; n++) await mustPut(door, pathOf(n), body);
}
