/** A get on the port for Vault's clients beside the native get of the same server, in turns. */
import { mustStatus, mustUnlock } from "../tools/rig/test-client.js";
import { type Finding, found, type Outcome, ratios } from "./figures.js";
import { type Loaders, type Sample, takeSample, type Workload } from "./measure.js";
import type { Options } from "./options.js";
import { totalCpu } from "./process-usage.js";
import { type StrongroomSubject, startStrongroom } from "./subjects.js";
import { filledHome, numberedPath } from "./vaults.js";
import { get, getSecrets } from "./workloads.js";

const connections = 64;

export async function* compareVaultPort(loaders: Loaders, options: Options): AsyncGenerator<Outcome> {
  const port = { STRONGROOM_VAULT_PORT: "0" };
  const home = await filledHome(getSecrets, options);
  const native = await startStrongroom(home, { nodeFlags: options.nodeFlags, environment: port });
  await mustUnlock(native.server);
  const { vaultPort } = await mustStatus(native.server);
  const forVault: StrongroomSubject = { ...native, name: "Vault's port", url: `https://127.0.0.1:${vaultPort}` };
  const samples: { readonly native: Sample; readonly forVault: Sample }[] = [];
  for (let round = -1; round < options.rounds; round++) {
    const pair = {
      native: await takeSample(loaders, native, { ...get(connections), perSecond: undefined }, options.seconds),
      forVault: await takeSample(loaders, forVault, readData, options.seconds),
    };
    if (round >= 0) samples.push(pair); // the first round is warm-up
  }
  yield { title: `get on Vault's port, 200 bytes, ${connections} connections`, findings: vaultPortFindings(samples) };
}

const readData: Workload = {
  connections,
  requests: Array.from({ length: getSecrets }, (_, n) => {
    return { method: "GET", path: `/v1/secret/data/${numberedPath(n)}` } as const;
  }),
};

function vaultPortFindings(samples: readonly { readonly native: Sample; readonly forVault: Sample }[]): Finding[] {
  const beside = (what: string, unit: "/s" | "µs", figure: (sample: Sample) => number) => {
    const [own, native] = [samples.map((pair) => figure(pair.forVault)), samples.map((pair) => figure(pair.native))];
    return [found(what, own, unit), found(`${what}, of the native get's`, ratios(own, native), "×")];
  };
  return [
    ...beside("rate", "/s", ({ perSecond }) => perSecond),
    ...beside("CPU", "µs", ({ cpu }) => totalCpu(cpu)),
    ...beside("CPU of the main thread", "µs", ({ cpu }) => cpu.main),
    ...beside("CPU of the key worker", "µs", ({ cpu }) => cpu.worker),
    found(
      "failed",
      samples.map(({ forVault }) => forVault.failed),
      "",
    ),
  ];
}
