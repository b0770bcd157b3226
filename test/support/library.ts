/** Clients from the package's own library, closed when their test ends. */
import { type ClientOptions, StrongroomClient } from "strongroom/client";
import { later } from "./clean-up.js";
import type { TestServer } from "./server.js";

export function clientOf({ url, home }: TestServer, options: ClientOptions = {}): StrongroomClient {
  const client = new StrongroomClient({ address: url, home, ...options });
  later(() => client.close());
  return client;
}
