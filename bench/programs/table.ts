/** autocannon in a process of its own, with its own table as the result. */
import autocannon from "autocannon";
import type { Stream } from "./load.js";
import { shareRequests } from "./shares.js";

/** `perSecond`: a fixed rate of all connections together, at which autocannon corrects latencies for requests it left out. */
export type TableLoad = Stream & { readonly url: string; readonly seconds: number; readonly perSecond?: number };

process.on("message", async ({ url, connections, headers, requests, seconds, perSecond }: TableLoad) => {
  const setupClient = shareRequests(requests, connections);
  const rate = perSecond === undefined ? {} : { overallRate: perSecond };
  const result = await autocannon({ url, connections, headers, setupClient, duration: seconds, ...rate });
  process.send?.({ table: autocannon.printResult(result, { renderLatencyTable: perSecond !== undefined }) });
});
process.send?.({ ready: true });
