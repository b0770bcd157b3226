/** Clients from the package's own library, closed when their test ends. */
import { expect } from "chai";
import { type ClientOptions, type ErrorCode, StrongroomClient, StrongroomError } from "strongroom/client";
import { later } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";
import { startProxy } from "./proxy.js";

/** The names of the client's methods. */
export function clientMethods(): string[] {
  return Object.getOwnPropertyNames(StrongroomClient.prototype).filter((name) => name !== "constructor");
}

/** A client that reaches the server through a proxy. */
export async function proxiedClient(server: TestServer) {
  const proxy = await startProxy(server);
  return { proxy, client: makeClient(server, { address: proxy.url }) };
}

export function makeClient({ url, home }: TestServer, options: ClientOptions = {}): StrongroomClient {
  const client = new StrongroomClient({ address: url, home, ...options });
  later(() => client.close());
  return client;
}

/** Returns the error with which the work must fail. */
export async function mustFail(work: Promise<unknown>, code: ErrorCode, hint: RegExp): Promise<StrongroomError> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof StrongroomError)) return expect.fail(`no StrongroomError: ${error}`);
  expect(error.code, error.message).to.equal(code);
  expect(error.message).to.match(hint);
  return error;
}
