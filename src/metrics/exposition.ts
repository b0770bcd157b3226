/** Prometheus' text format, printed by prom-client's registry. Loaded with the first scrape. */
import { setImmediate as nextTurn } from "node:timers/promises";
import Registry from "prom-client/lib/registry.js"; // 3 ms of the event loop; the whole of prom-client takes 50
import type { Family } from "./instruments.js";

/** Printed in one turn of the event loop, in a third of a millisecond. */
const samplesAtOnce = 128;

/** Returns the metrics in the text format. They are printed in turns, so that requests need not wait for all. */
export async function print(families: readonly Family[]): Promise<string> {
  const registry = new Registry();
  const texts: string[] = [];
  for (const family of families) {
    for (const part of partsOf(family)) {
      const text = await registry.getMetricsAsString({ get: () => part });
      texts.push(part.isFirst ? `\n${text}` : withoutHead(text));
      await nextTurn();
    }
  }
  return `${texts.join("\n").trimStart()}\n`;
}

function* partsOf({ samples, ...family }: Family): Iterable<Registry.Metric & { readonly isFirst: boolean }> {
  let isFirst = true;
  let values: Registry.Metric["values"][number][] = [];
  for (const { suffix = "", labels, value } of samples) {
    values.push({ metricName: family.name + suffix, labels, value });
    if (values.length < samplesAtOnce) continue;
    yield { ...family, values, isFirst };
    isFirst = false;
    values = [];
  }
  if (isFirst || values.length > 0) yield { ...family, values, isFirst };
}

/** The lines HELP and TYPE stand once above all series of a metric. */
function withoutHead(text: string): string {
  return text.split("\n").slice(2).join("\n");
}
