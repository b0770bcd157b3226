/**
 * HTTP over TLS or a Unix socket, to one server; connections are kept and reused, and TLS trusts that server's certificate
 * only. A request that may have reached the server is not sent again, except a read whose kept connection closed before the
 * response began (`StaleConnection`). A request that was not sent because the Unix socket accepts no connection
 * (`SocketUnavailable`), also a change, can be sent over TCP instead.
 */
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { AgentOptions, RequestOptions } from "node:https";
import { connect as connectSocket, type OnReadOpts, Socket } from "node:net";
import { finished } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { locationName, type ServerLocation, type TlsLocation } from "./discovery.js";
import { StrongroomError, systemCode } from "./errors.js";
import { type Lifetime, uncertainty } from "./lifetime.js";
import { receiveOwned, UnreadableResponse } from "./owned-response.js";
import { type ApiRequest, isRead, mostBytesOfContent, mostResponseBytes } from "./request.js";
import type { Received } from "./response.js";

const maxConnections = 32;

/**
 * Time after which an idle connection is closed, in milliseconds. Shorter than the server's: a change that is sent while the
 * server closes the connection fails, and must not be repeated.
 */
export const idleMs = 15_000;

/** Connects to the server, with a buffer of ours to read into. */
type Connect = (onread: OnReadOpts) => Socket;

/** OpenSSL's SSL_OP_CLEANSE_PLAINTEXT, for which Node has no name: wipes the record buffer once it has been read. */
const cleansePlaintext = 0x2;

export class Transport {
  readonly location: ServerLocation;
  readonly #agent: Agent;
  readonly #open: typeof httpRequest;
  readonly #connect: Connect;
  readonly #maxResponseBytes: number;
  readonly #running = new Set<Lifetime>();

  private constructor(
    location: ServerLocation,
    agent: Agent,
    { open, connect }: { readonly open: typeof httpRequest; readonly connect: Connect },
    maxResponseBytes: number,
  ) {
    this.location = location;
    this.#agent = agent;
    this.#open = open;
    this.#connect = connect;
    this.#maxResponseBytes = maxResponseBytes;
    this.#connectForRunningOnly();
  }

  static async to(
    location: ServerLocation,
    maxResponseBytes = mostBytesOfContent,
    timeout = idleMs, // the agent closes only connections without a request
  ): Promise<Transport> {
    const kept: AgentOptions = { keepAlive: true, maxSockets: maxConnections, timeout };
    if (location.socket === null) return Transport.#overTls(location, maxResponseBytes, kept);
    const agent = new Agent(kept);
    const { socket: path } = location;
    const connect: Connect = (onread) => connectSocket({ path, onread });
    return new Transport(location, agent, { open: httpRequest, connect }, maxResponseBytes);
  }

  static async #overTls(location: TlsLocation, maxResponseBytes: number, kept: AgentOptions): Promise<Transport> {
    warnOfIgnoredVariable();
    const { Agent, request } = await import("node:https"); // slow to load, and not needed for a socket
    const { connect: connectTls } = await import("node:tls");
    const trust: AgentOptions & { allowPartialTrustChain: true } = {
      ca: location.certificate,
      rejectUnauthorized: true, // the default, except with NODE_TLS_REJECT_UNAUTHORIZED=0
      allowPartialTrustChain: true, // trusts a certificate that an authority signed, but not the authority
      minVersion: "TLSv1.2",
    };
    const agent = new Agent({ ...trust, ...kept });
    const wiping = { ...trust, ...target(location), secureOptions: cleansePlaintext };
    const connect: Connect = (onread) => connectTls({ ...wiping, onread } as ConnectionOptions);
    return new Transport(location, agent, { open: request, connect }, maxResponseBytes);
  }

  /** @throws StrongroomError without a complete response; SocketUnavailable */
  async send(request: ApiRequest, token: string | null, lifetime: Lifetime): Promise<Received> {
    try {
      return await this.#sendOnce(request, token, lifetime);
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error;
      await this.#dropIdleConnections();
      return this.#sendOnce(request, token, lifetime);
    }
  }

  /** Closes all connections. The lifetimes of running requests must have ended. */
  close(): void {
    this.#agent.destroy();
  }

  /** Lets running requests finish and keeps no connection afterwards. */
  retire(): void {
    this.#agent.maxFreeSockets = 0;
    void this.#dropIdleConnections();
  }

  async #dropIdleConnections(): Promise<void> {
    for (const socket of Object.values(this.#agent.freeSockets).flat()) socket?.destroy();
    await nextTurn();
  }

  /** The agent also opens connections for requests that ended while they waited for one, even after destroy(). */
  #connectForRunningOnly(): void {
    const connect = this.#agent.createConnection.bind(this.#agent);
    this.#agent.createConnection = (options, callback) => {
      if (this.#running.size > 0) return connect(options, callback);
      callback?.(new Error("no request waits for a connection"), new Socket());
      return null;
    };
  }

  async #sendOnce(request: ApiRequest, token: string | null, lifetime: Lifetime): Promise<Received> {
    lifetime.mustLast();
    this.#running.add(lifetime);
    try {
      if (request.ownsResponse) return await this.#receiveOwned(request, token, lifetime);
      const sent = this.#open(this.#requestOptions(request, token));
      const received = receive(sent, request, this.location, this.#maxResponseBytes);
      if (request.body === undefined || this.location.socket !== null) sent.end(request.body);
      else endOverTls(sent, request.body);
      return await lifetime.wait(received, () => {
        this.#running.delete(lifetime);
        sent.destroy();
      });
    } finally {
      this.#running.delete(lifetime);
    }
  }

  async #receiveOwned(request: ApiRequest, token: string | null, lifetime: Lifetime): Promise<Received> {
    const { method, path } = request;
    const credential = token === null ? "" : `authorization: Bearer ${token}\r\n`;
    const lines = `host: ${this.location.address?.host ?? "localhost"}\r\naccept: application/json\r\n${credential}`;
    const head = `${method} ${path} HTTP/1.1\r\n${lines}connection: close\r\n\r\n`;
    const { socket, received } = receiveOwned(this.#connect, head, this.#maxResponseBytes);
    const failed = (error: Error) => {
      if (this.location.socket !== null && "syscall" in error && error.syscall === "connect")
        throw new SocketUnavailable();
      throw requestFailure(error, socket, request, this.location);
    };
    return lifetime.wait(received.catch(failed), () => socket.destroy());
  }

  #requestOptions({ method, path, body, headers }: ApiRequest, token: string | null): RequestOptions {
    return {
      ...target(this.location),
      agent: this.#agent,
      method,
      path,
      headers: {
        ...headers,
        accept: "application/json",
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body && { "content-type": "application/json", "content-length": body.length }),
      },
    };
  }
}

/**
 * Writes the body by itself, after the head and the handshake.
 * DANGER: TLS in Node copies what is written before the handshake has ended, or in one piece with something else, and frees the
 * copy without wiping it.
 */
function endOverTls(sent: ClientRequest, body: Uint8Array): void {
  sent.flushHeaders();
  sent.once("socket", (socket) => {
    const end = () => void sent.end(body);
    if ((socket as TLSSocket).authorized)
      process.nextTick(end); // a kept connection: the head is written after this event
    else socket.once("secureConnect", end);
  });
}

let warned = false;

function warnOfIgnoredVariable(): void {
  if (warned || process.env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return;
  warned = true;
  process.emitWarning("NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: the server's certificate is checked; unset it", {
    type: "StrongroomWarning",
  });
}

function target({ address, socket }: ServerLocation): RequestOptions {
  if (address === null) return { socketPath: socket, servername: "" }; // without a name, Node spares its test for an address
  const { hostname, port } = address;
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? 443 : port };
}

/** The Unix socket accepts no connection, so nothing was sent. */
export class SocketUnavailable extends Error {}

/** A kept connection closed before the response to a read began: the read can be sent again. */
class StaleConnection extends Error {}

class ResponseTooLarge extends Error {
  readonly most: number;

  constructor(most: number) {
    super();
    this.most = most;
  }
}

function receive(
  sent: ClientRequest,
  request: ApiRequest,
  location: ServerLocation,
  maxResponseBytes: number,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    let responding = false;
    sent.on("error", (error) => {
      if (location.socket !== null && "syscall" in error && error.syscall === "connect")
        reject(new SocketUnavailable());
      const stale = sent.reusedSocket && !responding && ["ECONNRESET", "EPIPE"].includes(systemCode(error));
      reject(stale && isRead(request) ? new StaleConnection() : requestFailure(error, sent.socket, request, location));
    });
    sent.on("response", (response) => {
      responding = true;
      const most = mostResponseBytes(request, response.statusCode ?? 0, maxResponseBytes);
      collect(response, most).then(resolve, (error) => reject(requestFailure(error, sent.socket, request, location)));
    });
  });
}

/** @throws ResponseTooLarge */
async function collect(response: IncomingMessage, most: number): Promise<Received> {
  const chunks: Buffer[] = [];
  let left = most;
  response.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    chunks.push(chunk); // iteration would read copies
    if (left < 0) response.destroy(new ResponseTooLarge(most));
  });
  if (Number(response.headers["content-length"]) > most) response.destroy(new ResponseTooLarge(most));
  try {
    await finished(response);
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
  } finally {
    for (const chunk of chunks) chunk.fill(0);
  }
}

const notListening = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "ETIMEDOUT"];

/** Error codes of getaddrinfo(3). */
const unknownHost = ["ENOTFOUND", "EAI_AGAIN"];

/** Returns the error for a request without a response: its code, and what the caller can do. */
function requestFailure(
  error: Error,
  socket: Socket | null,
  request: ApiRequest,
  location: ServerLocation,
): StrongroomError {
  if (error instanceof StrongroomError) return error;
  const code = systemCode(error);
  const at = locationName(location);
  if (error instanceof ResponseTooLarge) {
    const message = `the response of ${at} has more than ${error.most} bytes and is not read: ask for less at once, or check the address`;
    return new StrongroomError("PROTOCOL", `${message}${uncertainty(request)}`);
  }
  if (location.socket === null && (socket as TLSSocket | null)?.authorizationError) {
    return new StrongroomError("UNTRUSTED_CERTIFICATE", untrusted(code, location), { cause: error });
  }
  if (error instanceof UnreadableResponse) {
    return new StrongroomError(
      "PROTOCOL",
      `the response of ${at} is not one of a Strongroom server: check the address`,
    );
  }
  if (unknownHost.includes(code)) {
    const message = `the host of ${at} cannot be found (${code}): correct the address, as in STRONGROOM_ADDRESS`;
    return new StrongroomError("UNREACHABLE", message, { cause: error });
  }
  if (notListening.includes(code)) {
    const message = `no server responds at ${at} (${code}): start it with  strongroom up  or set its address with STRONGROOM_ADDRESS`;
    return new StrongroomError("UNREACHABLE", message, { cause: error });
  }
  if (/^(?:EPROTO|ERR_SSL|HPE_)/.test(code)) {
    const message = `what listens at ${at} does not speak ${location.socket === null ? "HTTPS" : "HTTP"} correctly (${code}): check the address`;
    return new StrongroomError("PROTOCOL", message); // the cause would quote what was received
  }
  const message = `the connection to ${at} closed before the response (${code}): check that the server is running`;
  return new StrongroomError("UNREACHABLE", `${message}${uncertainty(request)}`, { cause: error });
}

function untrusted(code: string, { address, certificateSource }: TlsLocation): string {
  if (code === "CERT_HAS_EXPIRED") {
    return `the certificate of ${address.origin} has expired: renew it, which needs no restart of the server`;
  }
  if (code === "CERT_NOT_YET_VALID") {
    return `the certificate of ${address.origin} is not valid yet: correct this machine's clock, or restart the server, which replaces one that it made while its clock was ahead`;
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `the certificate of ${address.origin} is not for that name: use one of its names, or set STRONGROOM_SERVER_NAMES for the server`;
  }
  return (
    `the certificate of ${address.origin} is not the one in ${certificateSource} (${code}): ` +
    "another server answers there, and nothing was sent to it; start yours, or name its certificate"
  );
}
