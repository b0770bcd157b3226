/** HTTPS server: TLS, limits, timeouts, listening and draining. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { StartError, systemCode } from "../errors.js";
import type { Log } from "../log.js";
import type { MessageClasses } from "./express-prototypes.js";
import { refuseMalformedRequests } from "./malformed-requests.js";
import { cleansePlaintext, wipeReceived } from "./plaintext-hygiene.js";
import { UnusedConnections } from "./unused-connections.js";

type Handle = (req: IncomingMessage, res: ServerResponse) => void;

export type Credentials = { readonly cert: string; readonly key: string };

export type Listener = { readonly server: Server; readonly unused: UnusedConnections };

/** Times in milliseconds. */
export type Limits = {
  readonly handshakeTimeout: number;
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** How often the two above are checked. */
  readonly connectionsCheckingInterval: number;
  readonly keepAliveTimeout: number;
  /** In bytes. */
  readonly maxHeaderSize: number;
  readonly maxConnections: number;
};

export const defaultLimits: Limits = {
  handshakeTimeout: 5_000,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 30_000,
  maxHeaderSize: 8_192,
  maxConnections: 256,
};

/** @throws StartError when the certificate cannot be used. */
export function createListener(
  credentials: Credentials,
  messages: MessageClasses,
  log: Log,
  limits: Limits = defaultLimits,
): Listener {
  // requireHostHeader: Node's own refusal of a missing Host is not JSON; the host guard's is.
  const server = secureServer({
    ...credentials,
    ...messages,
    ...limits,
    minVersion: "TLSv1.2",
    requireHostHeader: false,
    secureOptions: cleansePlaintext,
  });
  server.maxConnections = limits.maxConnections;
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  server.on("secureConnection", wipeReceived);
  server.on("drop", warnOncePerMinute(log, limits.maxConnections));
  refuseMalformedRequests(server, limits);
  return { server, unused: new UnusedConnections(server) };
}

/** Sends every request to `handle`, which must be set before the event loop's next turn after `listen`. */
export function handleRequests({ server }: Pick<Listener, "server">, handle: Handle): void {
  server.on("request", handle);
  server.on("checkContinue", handle); // 100 Continue is sent when the body is read
  server.on("checkExpectation", handle);
}

/** A flood of connections must not flood the log. */
function warnOncePerMinute(log: Log, maxConnections: number): () => void {
  let next = 0;
  return () => {
    if (performance.now() < next) return;
    next = performance.now() + 60_000;
    log.warn({ event: "connection-dropped", hint: `the limit of ${maxConnections} connections is reached` });
  };
}

function secureServer(options: ServerOptions): Server {
  try {
    return createServer(options);
  } catch (error) {
    throw new StartError(`the certificate or its key cannot be used (${systemCode(error)}): choose another pair`);
  }
}

/** @throws StartError when the address cannot be used. */
export function listen({ server }: Listener, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(new StartError(whyNotListening(systemCode(error), host, port))));
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

function whyNotListening(code: string | undefined, host: string, port: number): string {
  if (code === "EADDRINUSE")
    return `port ${port} of ${host} is in use: stop the program that uses it, or choose another with --port`;
  if (code === "EACCES") return `port ${port} needs more privileges: choose one above 1023 with --port`;
  return `cannot listen on ${host}, port ${port} (${code}): choose another address with --host`;
}

/** Accepts no new connections, waits at most `graceMs` for running requests, then closes all connections. */
export async function drain({ server, unused }: Listener, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  unused.close();
  server.closeIdleConnections();
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(cut);
}
