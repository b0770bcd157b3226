/** The same load on servers that differ in one setting. */
import { definitions } from "../../src/config/definitions.js";
import { alternate, contender, type Series } from "../measure.js";
import type { Bench } from "../scenario.js";
import type { Workload } from "../workloads.js";

/** Each home has one server, so each variant has a vault of its own, which may differ by a secret. */
export function vaultsOf(workload: Workload, variants: readonly unknown[]): number[] {
  return variants.map((_, i) => workload.secrets + i);
}

/** `variants`: values of the setting. Returns a series for each. */
export async function alternateVariants(
  bench: Bench,
  workload: Workload,
  setting: "audit" | "keepVersions",
  variants: readonly string[],
): Promise<readonly Series[]> {
  const { flag, variable } = definitions[setting];
  const contenders = [];
  for (const [i, secrets] of vaultsOf(workload, variants).entries()) {
    const value = variants[i] ?? "";
    const subject = await bench.strongroom(secrets, {
      name: `--${flag} ${value}`,
      environment: { [variable]: value },
    });
    contenders.push(contender(bench, subject, workload));
  }
  return alternate(contenders, bench.options);
}
