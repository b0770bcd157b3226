/** Prometheus' text format, by prom-client's registry. Loaded with the first scrape. */
import { Gauge, type MetricType, Registry } from "prom-client";
import type { Family } from "./instruments.js";

/** Returns the metrics in the text format. */
export function print(families: readonly Family[]): Promise<string> {
  const registry = new Registry();
  for (const family of families) registry.registerMetric(new Collected(family));
  return registry.metrics();
}

/** A metric of any type whose values come from elsewhere. It is a gauge only for prom-client, which checks the names. */
class Collected extends Gauge {
  readonly #family: Family;

  constructor(family: Family) {
    super({ name: family.name, help: family.help, registers: [] });
    this.#family = family;
  }

  override async get(): ReturnType<Gauge["get"]> {
    const { name, help, type, samples } = this.#family;
    const values = samples.map(({ suffix = "", labels, value }) => ({ metricName: name + suffix, labels, value }));
    const known = { name, help, type: type as unknown as MetricType }; // the typings have a number for the text that it is
    return { ...(await super.get()), ...known, values };
  }
}
