/** Owns the scenario of status, which needs no token and touches nothing. */
import { alternate, contender } from "../measure.js";
import { againstEach } from "../outcome.js";
import type { Scenario } from "../scenario.js";
import { startFixed } from "../subjects.js";
import { replyTo } from "./replies.js";
import { status as requests } from "./requests.js";

export const status: Scenario = {
  name: "status",
  about: "status on 64 connections",
  vaults: () => [0],
  async run(bench) {
    const strongroom = await bench.strongroom(0);
    const bare = await startFixed("bare", await replyTo(strongroom, requests), strongroom);
    const series = await alternate(
      [strongroom, bare].map((subject) => contender(bench.loader, subject, 64, requests)),
      bench.options,
    );
    return [{ scenario: "status, 64 connections", series, findings: againstEach(series, []) }];
  },
};
