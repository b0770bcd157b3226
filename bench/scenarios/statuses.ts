/** Scenario of status, which needs no token and reads no files. */
import type { Scenario } from "../scenario.js";
import { status as workload } from "../workloads.js";
import { againstBare } from "./gets.js";

export const status: Scenario = {
  name: "status",
  about: "status on 64 connections",
  vaults: () => [workload.secrets],
  async run(bench) {
    const strongroom = await bench.strongroom(workload.secrets);
    return [await againstBare(bench, strongroom, workload, "status, 64 connections")];
  },
};
