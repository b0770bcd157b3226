/**
 * Listeners: HTTPS with its TLS, limits and timeouts, and HTTP on a Unix socket, which has no TLS, and connections of its own,
 * so that nothing on TCP takes them away; their draining.
 */
import { constants, randomFillSync } from "node:crypto";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { StartError, systemCode } from "../errors.js";
import type { Log } from "../log.js";
import { wipingSocket } from "../wiping-socket.js";
import type { MessageClasses } from "./app.js";
import {
  addPipeline,
  cleansePlaintext,
  type Handle,
  inTurn,
  isResponding,
  longestIdle,
  OpenConnections,
} from "./connections.js";
import { refuseMalformedRequests } from "./malformed.js";
import type { ErrorForm } from "./response.js";

export type TlsPair = { readonly cert: string; readonly key: string };

/** `serve` sets the handler of all requests; earlier requests wait for it. */
export type Listener = {
  readonly server: Server;
  readonly connections: OpenConnections;
  readonly serve: (handle: Handle) => void;
  /** Gives new connections another certificate. @throws StartError when it cannot be used; the old one stays. */
  readonly replacePair: (pair: TlsPair) => void;
  /** Makes every session ticket of TLS void: the next connection of each client needs a whole handshake. */
  readonly replaceTicketKeys: () => void;
};

/** Times in milliseconds. */
export type Limits = {
  readonly handshakeTimeout: number;
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** How often the two above are checked. */
  readonly connectionsCheckingInterval: number;
  readonly keepAliveTimeout: number;
  /** A response that makes no progress for so long ends its connection. */
  readonly sendTimeout: number;
  /** In bytes. */
  readonly maxHeaderSize: number;
};

/**
 * All ciphers of TLS 1.3; of Mozilla's intermediate profile for TLS 1.2, the AEAD ciphers with forward secrecy. The
 * server's order counts: ChaCha20 comes first because AES-GCM may keep the end of what it decrypts, see `keepsPlaintext`.
 */
const ciphers = [
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
];

/** Curves of the same profile. OpenSSL's own choice includes P-521 and X448. */
const curves = ["X25519", "P-256", "P-384"];

export const defaultLimits: Limits = {
  handshakeTimeout: 5_000,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 30_000,
  sendTimeout: 30_000,
  maxHeaderSize: 8_192,
};

/** TLS options of a connection, without the pair. */
const tlsOptions: SecureContextOptions = {
  ca: [], // no client certificate is asked for; without it, Node 20 reads all public authorities
  minVersion: "TLSv1.2",
  ciphers: ciphers.join(":"),
  ecdhCurve: curves.join(":"),
  secureOptions: cleansePlaintext | constants.SSL_OP_NO_RENEGOTIATION, // of TLS 1.2
};

/** `takesList`: see `addPipeline`; `errors`: how what is no request is refused. */
type ListenerApi = { readonly takesList?: boolean; readonly errors?: ErrorForm };

/** @throws StartError when the certificate cannot be used. */
export function createListener(
  pair: TlsPair,
  messages: MessageClasses,
  log: Log,
  limits: Limits & { readonly maxConnections: number },
  api: ListenerApi = {},
): Listener {
  // requireHostHeader: Node's own refusal of a missing Host is not JSON; the host guard's is.
  const server = usablePair(() =>
    createServer({ ...pair, ...tlsOptions, ...messages, ...limits, requireHostHeader: false }),
  );
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  server.on("secureConnection", (socket) => addPipeline(socket, api));
  closeStalled(server, limits.sendTimeout);
  refuseMalformedRequests(server, limits, api.errors);
  const onFull = warnOncePerMinute(log, limits.maxConnections);
  const connections = new OpenConnections(server, limits.maxConnections, onFull);
  // DANGER: the new context has nothing of the old one.
  const replacePair = (next: TlsPair) => usablePair(() => server.setSecureContext({ ...next, ...tlsOptions }));
  return {
    server,
    connections,
    serve: awaitHandler(server),
    replacePair,
    replaceTicketKeys: () => replaceTicketKeys(server),
  };
}

/** Node's number of bytes. It makes the first keys at random itself. */
const ticketKeyBytes = 48;

function replaceTicketKeys(server: Server): void {
  const keys = randomFillSync(Buffer.alloc(ticketKeyBytes));
  server.setTicketKeys(keys);
  keys.fill(0);
}

/** Node's timer sees every piece that leaves. A request that runs without one, a key derivation, is no stall. */
function closeStalled(server: HttpServer, sendTimeout: number): void {
  server.setTimeout(sendTimeout, (socket) => {
    if (!isResponding(socket) || socket.writableLength > 0) socket.destroy();
  });
}

/** `checkContinue`: 100 Continue is sent when the body is read. */
const requestEvents = ["request", "checkContinue", "checkExpectation"] as const;

/**
 * Returns the function that sets the handler of all requests. Earlier requests wait: the port is open before the application
 * knows its number, and Node never answers a request for which nothing listens.
 */
function awaitHandler(server: HttpServer): Listener["serve"] {
  let handler: Handle | null = null;
  const waiting: (() => void)[] = [];
  const wait = inTurn((req, res) => {
    if (handler !== null) handler(req, res);
    else waiting.push(() => handler?.(req, res));
  });
  for (const event of requestEvents) server.on(event, wait);
  return (handle) => {
    handler = handle;
    const serve = inTurn(handle);
    for (const event of requestEvents) server.off(event, wait).on(event, serve);
    for (const start of waiting.splice(0)) start();
  };
}

/** A flood of connections must not flood the log. */
function warnOncePerMinute(log: Log, maxConnections: number): () => void {
  let next = 0;
  return () => {
    if (performance.now() < next) return;
    next = performance.now() + 60_000;
    const quarter = `those without a valid token get a quarter of ${maxConnections}, and the oldest of them are closed`;
    const hint = `${quarter}; then those that have been idle the longest`;
    log.warn({ event: "too-many-connections", hint });
  };
}

function usablePair<T>(use: () => T): T {
  try {
    return use();
  } catch (error) {
    throw new StartError(`the certificate or its key cannot be used (${systemCode(error)}): choose another pair`);
  }
}

/** @throws StartError when the address cannot be used. `flag`: of the setting of the port. */
export function listen({ server }: Listener, host: string, port: number, flag = "--port"): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(new StartError(whyNotListening(systemCode(error), host, port, flag))));
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

function whyNotListening(code: string | undefined, host: string, port: number, flag: string): string {
  if (code === "EADDRINUSE")
    return `port ${port} of ${host} is in use: stop the program that uses it, or choose another with ${flag}`;
  if (code === "EACCES") return `port ${port} needs more privileges: choose one above 1023 with ${flag}`;
  return `cannot listen on ${host}, port ${port} (${code}): choose another address with --host`;
}

export type Drainable = Pick<Listener, "serve"> & {
  readonly server: HttpServer;
  readonly connections: Pick<OpenConnections, "closeUnused">;
};

/** Accepts no new connections, waits at most `graceMs` for running requests, then closes all connections. */
export async function drain({ server, connections }: Drainable, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  connections.closeUnused();
  server.closeIdleConnections();
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(cut);
}

/** Connection limit of the Unix socket, to which only the owner can connect. */
export const maxLocalConnections = 256;

export function createLocalListener(
  messages: MessageClasses,
  limits: Limits & { readonly maxConnections: number },
): Drainable {
  const server = createHttpServer({ ...messages, ...limits, requireHostHeader: false });
  closeStalled(server, limits.sendTimeout);
  refuseMalformedRequests(server, limits);
  const [open, unused] = [new Set<Socket>(), new Set<Socket>()];
  wrapConnections(server, wipingSocket, (socket) => {
    addPipeline(socket);
    open.add(socket);
    unused.add(socket);
    socket.once("data", () => unused.delete(socket));
    socket.once("close", () => {
      open.delete(socket);
      unused.delete(socket);
    });
    if (open.size > limits.maxConnections) (longestIdle(open, (one) => one) ?? socket).destroy();
  });
  const closeUnused = () => {
    for (const socket of unused) socket.destroy();
  };
  return { server, connections: { closeUnused }, serve: awaitHandler(server) };
}

/** Rejects with the system's error. */
export function listenLocally({ server }: Drainable, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(path, resolve);
  });
}

/** Gives Node's listener for connections another socket than the accepted one. `then` listens to it after Node. */
function wrapConnections(server: HttpServer, wrap: (accepted: Socket) => Socket, then: (socket: Socket) => void): void {
  const listeners = server.listeners("connection");
  server.removeAllListeners("connection").on("connection", (accepted) => {
    const socket = wrap(accepted);
    for (const listener of listeners) Reflect.apply(listener, server, [socket]);
    then(socket);
  });
}
