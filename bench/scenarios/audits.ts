/** Scenario of the audit log: what it costs a get. */
import { alternate, contender } from "../measure.js";
import { compare, cpu, throughput } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { get } from "../workloads.js";

/** A vault for each server: one home has one. */
const modes = { off: get.secrets, changes: get.secrets + 1, all: get.secrets + 2 } as const;

export const audit: Scenario = {
  name: "audit",
  about: "gets of 200 bytes on 64 connections, with --audit off, changes and all",
  vaults: () => Object.values(modes),
  async run(bench: Bench) {
    const subjects = [];
    for (const [mode, secrets] of Object.entries(modes)) {
      const environment = { STRONGROOM_AUDIT: mode };
      subjects.push(await bench.strongroom(secrets, { name: `--audit ${mode}`, environment }));
    }
    const series = await alternate(
      subjects.map((subject) => contender(bench, subject, get)),
      bench.options,
    );
    const [off, changes, all] = series;
    const findings = [
      compare("throughput with --audit changes, of that with off", changes, off, throughput, { atLeast: 0.97 }),
      compare("throughput with --audit all, of that with off", all, off, throughput),
      compare("CPU a get with --audit all, of that with off", all, off, cpu),
    ];
    return [{ scenario: "get, 200 bytes, 64 connections, and the audit log", series, findings }];
  },
};
