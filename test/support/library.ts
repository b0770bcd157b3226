/** Clients from the package's own library, closed when their test ends. */
import { type ClientOptions, StrongroomClient } from "strongroom/client";
import { later } from "./clean-up.js";
import type { TestServer } from "./server.js";

/** The names of the client's methods, those of its base class included. */
export function clientMethods(): string[] {
  const base: object = Object.getPrototypeOf(StrongroomClient.prototype);
  const names = [StrongroomClient.prototype, base].flatMap(Object.getOwnPropertyNames);
  return [...new Set(names)].filter((name) => name !== "constructor");
}

export function clientOf({ url, home }: TestServer, options: ClientOptions = {}): StrongroomClient {
  const client = new StrongroomClient({ address: url, home, ...options });
  later(() => client.close());
  return client;
}
