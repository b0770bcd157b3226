/** Scenario of client tokens: gets with one that may read a subtree, and with the root token. */
import { mustCreateToken } from "../../test/support/test-client.js";
import { alternate, contender } from "../measure.js";
import { compare, cpu, throughput } from "../outcome.js";
import type { Scenario } from "../scenario.js";
import { get } from "../workloads.js";

export const clientToken: Scenario = {
  name: "client-token",
  about: "gets on 64 connections with a client token that has paths, and with the root token",
  vaults: () => [get.secrets],
  async run(bench) {
    const root = await bench.strongroom(get.secrets, { name: "root token" });
    const { token } = await mustCreateToken(root.server, { name: "bench", can: ["get"], paths: ["team-00000/"] });
    const client = { ...root, name: "client token", headers: { Authorization: `Bearer ${token}` } };
    const contenders = [client, root].map((subject) => contender(bench, subject, get));
    const series = await alternate(contenders, bench.options);
    const [ours, base] = series;
    const findings = [
      compare("throughput with a client token, of that with the root token", ours, base, throughput, { atLeast: 0.9 }),
      compare("CPU a get with a client token, of that with the root token", ours, base, cpu),
    ];
    return [{ scenario: "get, 200 bytes, 64 connections, and who asks", series, findings }];
  },
};
