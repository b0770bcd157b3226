/** Clients from the package's own library, closed when their test ends. */
import { type ClientOptions, StrongroomClient } from "strongroom/client";
import { later } from "./clean-up.js";
import type { TestServer } from "./server.js";

/** The names of the client's methods, those of its base classes included. */
export function clientMethods(type: object = StrongroomClient.prototype): string[] {
  if (type === Object.prototype) return [];
  const own = Object.getOwnPropertyNames(type).filter((name) => name !== "constructor");
  return [...new Set([...own, ...clientMethods(Object.getPrototypeOf(type))])];
}

export function clientOf({ url, home }: TestServer, options: ClientOptions = {}): StrongroomClient {
  const client = new StrongroomClient({ address: url, home, ...options });
  later(() => client.close());
  return client;
}
