/** Trend test: a least-squares line through samples and the standard error of its slope. */

export type Sample = { readonly at: number; readonly value: number };

/** Value per unit of time; `spread` is the standard error of the slope. */
export type Trend = { readonly slope: number; readonly spread: number };

/** Neighbouring samples of memory are correlated; averages of groups are nearly independent, as the spread assumes. */
const blocks = 20;

export function fitTrend(samples: readonly Sample[]): Trend {
  const points = averages(samples);
  const at = mean(points.map((point) => point.at));
  const value = mean(points.map((point) => point.value));
  const width = sum(points.map((point) => (point.at - at) ** 2));
  const slope = sum(points.map((point) => (point.at - at) * (point.value - value))) / width;
  const rest = sum(points.map((point) => (point.value - value - slope * (point.at - at)) ** 2));
  return { slope, spread: Math.sqrt(rest / (points.length - 2) / width) };
}

/** Whether the value rises faster than `limit`, beyond the noise of a slope at the limit. */
export function rises({ slope, spread }: Trend, limit: number): boolean {
  return slope - 2 * spread > limit;
}

function averages(samples: readonly Sample[]): Sample[] {
  const size = Math.max(1, Math.floor(samples.length / blocks));
  const points: Sample[] = [];
  for (let n = 0; n + size <= samples.length; n += size) {
    const block = samples.slice(n, n + size);
    points.push({ at: mean(block.map(({ at }) => at)), value: mean(block.map(({ value }) => value)) });
  }
  if (points.length < 3) throw new Error("a trend needs at least three samples");
  return points;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}
