/** How autocannon's connections share a list of requests, each a part of its own. */
import type { Client } from "autocannon";
import type { Request } from "./load.js";

/** Returns autocannon's `setupClient`. Where all sent the same list, puts of one path would wait for each other. */
export function shareRequests(requests: readonly Request[], connections: number): (client: Client) => void {
  let next = 0;
  return (client) => {
    const first = next++ % requests.length;
    client.setRequests(requests.filter((_, i) => i % connections === first).map((one) => ({ ...one })));
  };
}
