/** Owns the scenarios of reading: warm and cold, from 1 to 256 connections, and the first request after start. */
import { mustPut } from "../../support/client.js";
import { alternate, contender } from "../measure.js";
import { againstEach, compare, cpu, type Finding, type Outcome, p50, throughput } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { type StrongroomSubject, type Subject, startFixed, startNaive } from "../subjects.js";
import { pathOf, valueBytes } from "../vaults.js";
import { replyTo } from "./replies.js";
import { gets } from "./requests.js";

const warmSecrets = 100;
const manyConnections = 64;

export const getWarm: Scenario = {
  name: "get",
  about: "gets of 200 bytes on 64 connections, against servers that do less and one that does the same",
  vaults: () => [warmSecrets],
  async run(bench) {
    const strongroom = await bench.strongroom(warmSecrets);
    const body = await replyTo(strongroom, gets(1));
    const bare = await startFixed("bare", body, strongroom);
    const express = await startFixed("plain-express", body, strongroom);
    const naive = await startNaive(strongroom);
    await storeInNaive(strongroom, naive);
    const series = await alternate(
      [strongroom, bare, express, naive].map((subject) =>
        contender(bench.loader, subject, manyConnections, gets(warmSecrets)),
      ),
      bench.options,
    );
    const findings = againstEach(series, [{ atLeast: 0.4 }, undefined, { atLeast: 2 }]);
    return [{ scenario: `get, ${valueBytes} bytes, ${manyConnections} connections`, series, findings }];
  },
};

export const getCold: Scenario = {
  name: "get-cold",
  about: "the same, going round more secrets than a cache holds (--cold-keys)",
  vaults: ({ coldKeys }) => [coldKeys],
  async run(bench) {
    const { coldKeys } = bench.options;
    const strongroom = await bench.strongroom(coldKeys);
    const bare = await startFixed("bare", await replyTo(strongroom, gets(1)), strongroom);
    const subjects = [strongroom, bare];
    const requests = gets(coldKeys);
    const contenders = subjects.map((subject) => contender(bench.loader, subject, manyConnections, requests));
    const series = await alternate(contenders, bench.options);
    const scenario = `get, cold: ${coldKeys} secrets in turn, ${manyConnections} connections`;
    return [{ scenario, series, findings: againstEach(series, []) }];
  },
};

export const connections: Scenario = {
  name: "connections",
  about: "gets on 1, 4, 16, 64 and 256 connections",
  vaults: () => [warmSecrets],
  async run(bench) {
    const strongroom = await bench.strongroom(warmSecrets);
    const bare = await startFixed("bare", await replyTo(strongroom, gets(1)), strongroom);
    const outcomes: Outcome[] = [];
    for (const count of [1, 4, 16, 64, 256]) outcomes.push(await onConnections(bench, strongroom, bare, count));
    return outcomes;
  },
};

async function onConnections(bench: Bench, strongroom: Subject, bare: Subject, count: number): Promise<Outcome> {
  const subjects = [strongroom, bare];
  const series = await alternate(
    subjects.map((subject) => contender(bench.loader, subject, count, gets(warmSecrets))),
    bench.options,
  );
  const [ours, base] = series;
  const time = compare("p50, of the bare server's", ours, base, p50, count === 1 ? { atMost: 2 } : undefined);
  const findings: Finding[] = [
    time,
    compare("throughput, of the bare server's", ours, base, throughput),
    compare("CPU a request, of the bare server's", ours, base, cpu),
  ];
  return { scenario: `get, ${count} ${count === 1 ? "connection" : "connections"}`, series, findings };
}

/** The naive app keeps secrets of its own: it is given the same ones. */
async function storeInNaive({ server }: StrongroomSubject, naive: Subject): Promise<void> {
  const door = { ...server, url: naive.url, port: Number(new URL(naive.url).port) };
  for (let n = 0; n < warmSecrets; n++) {
    await mustPut(door, pathOf(n), { value: "v".repeat(valueBytes), type: "api-key" });
  }
}
