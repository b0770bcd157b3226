/** Scenario of the history: what it costs a put that overwrites. */
import { compare, cpu, throughput } from "../outcome.js";
import type { Scenario } from "../scenario.js";
import { put } from "../workloads.js";
import { alternateVariants, vaultsOf } from "./variants.js";

const kept = ["10", "0"] as const;

export const overwrite: Scenario = {
  name: "overwrite",
  about: "puts of 1 KiB on 16 connections that overwrite, with --keep-versions 10 and 0",
  vaults: () => vaultsOf(put, kept),
  async run(bench) {
    const series = await alternateVariants(bench, put, "keepVersions", kept);
    const [ten, none] = series;
    const findings = [
      compare("throughput with --keep-versions 10, of that with 0", ten, none, throughput, { atLeast: 0.8 }),
      compare("CPU a put with --keep-versions 10, of that with 0", ten, none, cpu),
    ];
    return [{ scenario: "put, 1 KiB, 16 connections, and the history", series, findings }];
  },
};
