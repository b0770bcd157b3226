/** Statistics of one run: a median with its spread, and ratios. */

export type Spread = { readonly median: number; readonly min: number; readonly max: number };

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError("there is no median of nothing");
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/** Ratios of the figures of the same round. */
export function ratios(values: readonly number[], to: readonly number[]): number[] {
  if (values.length !== to.length) throw new RangeError("each round has both figures");
  return values.map((value, i) => value / (to[i] ?? Number.NaN));
}
