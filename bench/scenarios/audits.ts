/** Scenario of the audit log: what it costs a get. */
import { compare, cpu, throughput } from "../outcome.js";
import type { Scenario } from "../scenario.js";
import { get } from "../workloads.js";
import { alternateVariants, vaultsOf } from "./variants.js";

const modes = ["off", "changes", "all"] as const;

export const audit: Scenario = {
  name: "audit",
  about: "gets of 200 bytes on 64 connections, with --audit off, changes and all",
  vaults: () => vaultsOf(get, modes),
  async run(bench) {
    const series = await alternateVariants(bench, get, "audit", modes);
    const [off, changes, all] = series;
    const findings = [
      compare("throughput with --audit changes, of that with off", changes, off, throughput, { atLeast: 0.97 }),
      compare("throughput with --audit all, of that with off", all, off, throughput),
      compare("CPU a get with --audit all, of that with off", all, off, cpu),
    ];
    return [{ scenario: "get, 200 bytes, 64 connections, and the audit log", series, findings }];
  },
};
