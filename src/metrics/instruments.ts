/**
 * Counters and histograms in typed arrays, and Prometheus' text format (version 0.0.4). An observation allocates nothing and
 * looks nothing up: every request makes several.
 */
import { setImmediate as nextTurn } from "node:timers/promises";

type Labels = Readonly<Record<string, string>>;

/** `suffix`: behind the metric's name. */
export type Sample = { readonly labels: Labels; readonly value: number; readonly suffix?: string };

/** A metric with all its series, as it is printed. `samples` are read once, while they are printed. */
export type Family = {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: Iterable<Sample>;
};

/** Series of one metric by index. `shown`: whether a series that was never observed is printed, as zero. */
export type Series = { readonly count: number; readonly labels: (index: number) => Labels; readonly shown: boolean };

/** Returns a series for each value of one label; all are printed. */
export function labelSeries(label: string, values: readonly string[]): Series {
  return { count: values.length, labels: (index) => ({ [label]: values[index] ?? "" }), shown: true };
}

export class Counters {
  readonly #series: Series;
  readonly #counts: Float64Array;

  constructor(series: Series) {
    this.#series = series;
    this.#counts = new Float64Array(series.count);
  }

  add(index: number): void {
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  *samples(): Iterable<Sample> {
    const { labels, shown } = this.#series;
    for (const [index, value] of this.#counts.entries()) if (value > 0 || shown) yield { labels: labels(index), value };
  }
}

export class Histograms {
  readonly #series: Series;
  /** Upper bounds of the buckets in seconds, ascending. */
  readonly #bounds: readonly number[];
  /** For each series its buckets, the last without a bound. */
  readonly #counts: Float64Array;
  readonly #sums: Float64Array;

  constructor(series: Series, bounds: readonly number[]) {
    this.#series = series;
    this.#bounds = bounds;
    this.#counts = new Float64Array(series.count * (bounds.length + 1));
    this.#sums = new Float64Array(series.count);
  }

  observe(index: number, seconds: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && seconds > (bounds[at] ?? 0)) at++;
    const bucket = index * (bounds.length + 1) + at;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sums[index] = (this.#sums[index] ?? 0) + seconds;
  }

  *samples(): Iterable<Sample> {
    for (let index = 0; index < this.#series.count; index++) yield* this.#seriesSamples(index);
  }

  #seriesSamples(index: number): Sample[] {
    const width = this.#bounds.length + 1;
    const counts = this.#counts.subarray(index * width, (index + 1) * width);
    const count = counts.reduce((sum, one) => sum + one, 0);
    if (count === 0 && !this.#series.shown) return [];
    const labels = this.#series.labels(index);
    let total = 0;
    const buckets = [...counts].map((one, at): Sample => {
      total += one;
      return { suffix: "_bucket", labels: { ...labels, le: String(this.#bounds[at] ?? "+Inf") }, value: total };
    });
    const sum = { suffix: "_sum", labels, value: this.#sums[index] ?? 0 };
    return [...buckets, sum, { suffix: "_count", labels, value: count }];
  }
}

/** Printed in one turn of the event loop: few, so that requests hardly wait. */
const samplesAtOnce = 128;

/** Returns the metrics in the text format. They are printed in turns, so that requests need not wait for all. */
export async function print(families: readonly Family[]): Promise<string> {
  const texts: string[] = [];
  let count = 0;
  for (const { name, help, type, samples } of families) {
    texts.push(`${texts.length === 0 ? "" : "\n"}# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n`);
    for (const sample of samples) {
      texts.push(formatSample(name, sample));
      if (++count % samplesAtOnce === 0) await nextTurn();
    }
    await nextTurn();
  }
  return texts.join("");
}

function formatSample(name: string, { suffix = "", labels, value }: Sample): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`);
  return `${name}${suffix}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
