/** Scenario of metrics: gets while a scraper reads them each second, far more often than Prometheus does. */
import { send } from "../../test/support/test-client.js";
import { alternate, type Contender, contender } from "../measure.js";
import { compare, cpu, p99, throughput } from "../outcome.js";
import type { Scenario } from "../scenario.js";
import type { StrongroomSubject } from "../subjects.js";
import { get } from "../workloads.js";

const everyMs = 1_000;

export const scraped: Scenario = {
  name: "scraped",
  about: "gets on 64 connections, with a scrape of the metrics each second and without",
  vaults: () => [get.secrets],
  async run(bench) {
    const strongroom = await bench.strongroom(get.secrets);
    const plain = contender(bench, { ...strongroom, name: "not scraped" }, get);
    const series = await alternate([whileScraped(strongroom, plain), plain], bench.options);
    const [ours, base] = series;
    const findings = [
      compare("throughput, of that without scrapes", ours, base, throughput, { atLeast: 0.9 }),
      compare("p99, of that without scrapes", ours, base, p99),
      compare("CPU a request, of that without scrapes", ours, base, cpu),
    ];
    return [{ scenario: "get, 64 connections, scraped each second", series, findings }];
  },
};

function whileScraped({ server }: StrongroomSubject, { sample }: Contender): Contender {
  return {
    name: "scraped each second",
    async sample(seconds) {
      const scrapes: Promise<unknown>[] = [];
      const timer = setInterval(() => scrapes.push(send(server, { path: "/v1/metrics" })), everyMs);
      try {
        return await sample(seconds);
      } finally {
        clearInterval(timer);
        await Promise.all(scrapes);
      }
    },
  };
}
