/** Results of a scenario: series of samples, and findings, some with a target. */
import type { Sample, Series } from "./measure.js";
import { ratios, type Spread, spreadOf } from "./statistics.js";
import { totalCpu } from "./usage.js";

export type Target = { readonly atLeast: number } | { readonly atMost: number };

/** One figure with its spread over the rounds. */
export type Finding = {
  readonly what: string;
  readonly value: Spread;
  readonly unit: "×" | "ms" | "MiB" | "KiB" | "";
  readonly target?: Target;
};

/** A separate table: a row of headings, then rows of figures. */
export type Grid = readonly (readonly string[])[];

export type Outcome = {
  readonly scenario: string;
  readonly series: readonly Series[];
  readonly findings: readonly Finding[];
  readonly grid?: Grid;
};

export function isReached({ value, target }: Finding): boolean | null {
  if (target === undefined) return null;
  return "atLeast" in target ? value.median >= target.atLeast : value.median <= target.atMost;
}

/** The ratio of the first series to another, round by round. */
export function compare(
  what: string,
  series: Series | undefined,
  to: Series | undefined,
  figure: (sample: Sample) => number,
  target?: Target,
): Finding {
  if (series === undefined || to === undefined) throw new Error(`${what}: there is nothing to compare`);
  const value = spreadOf(ratios(series.samples.map(figure), to.samples.map(figure)));
  return { what, value, unit: "×", ...(target && { target }) };
}

export const throughput = (sample: Sample): number => sample.perSecond;
export const p50 = ({ latency }: Sample): number => latency?.p50 ?? Number.NaN;
export const p99 = ({ latency }: Sample): number => latency?.p99 ?? Number.NaN;
export const cpu = (sample: Sample): number => totalCpu(sample.cpu);
export const mainCpu = (sample: Sample): number => sample.cpu.main;

/** Throughput and CPU of the first series compared with each of the others. */
export function againstEach(
  [first, ...others]: readonly Series[],
  targets: readonly (Target | undefined)[],
): Finding[] {
  return others.flatMap((other, i) => [
    compare(`throughput, of the ${other.subject}'s`, first, other, throughput, targets[i]),
    compare(`CPU a request, of the ${other.subject}'s`, first, other, cpu),
    compare(`CPU a request in the main thread, of the ${other.subject}'s`, first, other, mainCpu),
  ]);
}
