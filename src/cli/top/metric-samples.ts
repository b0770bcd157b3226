/** Samples of Prometheus' text format, and what changed between two scrapes. */

export type MetricSample = { readonly labels: Readonly<Record<string, string>>; readonly value: number };

/** One scrape: samples by the name of their metric. `at`: milliseconds, of a clock that is never set. */
export type MetricSamples = { readonly at: number; readonly byName: ReadonlyMap<string, readonly MetricSample[]> };

const line = /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)$/;

export function parseSamples(text: string, at: number): MetricSamples {
  const byName = new Map<string, MetricSample[]>();
  for (const each of text.split("\n")) {
    const { name, labels = "", value } = (each.startsWith("#") ? null : line.exec(each))?.groups ?? {};
    if (name === undefined) continue;
    const samples = byName.get(name) ?? [];
    samples.push({ labels: parseLabels(labels), value: Number(value) });
    byName.set(name, samples);
  }
  return { at, byName };
}

function parseLabels(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]));
}

type Labels = Readonly<Record<string, string>>;
type Matches = (labels: Labels) => boolean;

/** What happened from one scrape to the next; without an earlier one, since the server's start. */
export class Interval {
  readonly #before: MetricSamples | null;
  readonly #after: MetricSamples;
  readonly seconds: number;

  constructor(before: MetricSamples | null, after: MetricSamples) {
    const hasRestarted = before !== null && startOf(before) !== startOf(after);
    this.#before = hasRestarted ? null : before;
    this.#after = after;
    this.seconds =
      this.#before === null ? Math.max(1, Date.now() / 1000 - startOf(after)) : (after.at - this.#before.at) / 1000;
  }

  /** The labels of all series of a metric. */
  labels(name: string): readonly Labels[] {
    return (this.#after.byName.get(name) ?? []).map(({ labels }) => labels);
  }

  /** The sum of the series now; of a gauge. */
  now(name: string): number {
    return sum(this.#after, name, () => true);
  }

  /** By how much the sum of the series grew; of a counter. */
  grown(name: string, matches: Matches = () => true): number {
    return sum(this.#after, name, matches) - (this.#before === null ? 0 : sum(this.#before, name, matches));
  }

  /** A quantile of a histogram in seconds, within its bucket as if evenly spread; NaN without observations. */
  quantile(q: number, name: string, matches: Matches = () => true): number {
    const bounds = [...new Set(this.labels(`${name}_bucket`).map(({ le = "" }) => le))];
    const buckets = bounds.map((le) => ({
      bound: le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le),
      count: this.grown(`${name}_bucket`, (labels) => labels["le"] === le && matches(labels)),
    }));
    return quantileOf(q, buckets);
  }
}

function startOf({ byName }: MetricSamples): number {
  return byName.get("process_start_time_seconds")?.[0]?.value ?? 0;
}

function sum({ byName }: MetricSamples, name: string, matches: Matches): number {
  return (byName.get(name) ?? []).reduce((total, { labels, value }) => total + (matches(labels) ? value : 0), 0);
}

/** `count`: of observations up to the bound. */
export function quantileOf(q: number, buckets: readonly { readonly bound: number; readonly count: number }[]): number {
  const ordered = [...buckets].sort((a, b) => a.bound - b.bound);
  const total = ordered.at(-1)?.count ?? 0;
  if (total === 0) return Number.NaN;
  const at = ordered.findIndex(({ count }) => count >= q * total);
  const [below, bucket] = [ordered[at - 1] ?? { bound: 0, count: 0 }, ordered[at]];
  if (bucket === undefined || bucket.bound === Number.POSITIVE_INFINITY) return below.bound;
  const share = (q * total - below.count) / (bucket.count - below.count || 1);
  return below.bound + share * (bucket.bound - below.bound);
}
