/**
 * Connections to one server: kept alive and reused; over TLS, trusting its certificate and no other. A request that may have reached
 * the server is never sent again, except a read whose kept connection closed before a response began (`StaleConnection`). One that
 * was not sent, because the socket accepts no connection (`SocketUnavailable`), is the caller's to send over TCP, a write too.
 */
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { AgentOptions, RequestOptions } from "node:https";
import { Socket } from "node:net";
import { finished } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { systemCode } from "./client-error.js";
import type { Received } from "./decode-response.js";
import type { Place, TlsPlace } from "./discovery.js";
import { type ApiRequest, isRead } from "./request.js";
import { failureOf } from "./request-failure.js";
import type { Lifetime } from "./request-lifetime.js";

const maxConnections = 32;

export class Transport {
  readonly place: Place;
  readonly #agent: Agent;
  readonly #open: typeof httpRequest;
  readonly #running = new Set<Lifetime>();

  private constructor(place: Place, agent: Agent, open: typeof httpRequest) {
    this.place = place;
    this.#agent = agent;
    this.#open = open;
    this.#connectForRunningOnly();
  }

  static async to(place: Place): Promise<Transport> {
    if (place.socket === null) return Transport.#overTls(place);
    return new Transport(place, new Agent({ keepAlive: true, maxSockets: maxConnections }), httpRequest);
  }

  static async #overTls(place: TlsPlace): Promise<Transport> {
    const { Agent, request } = await import("node:https"); // slow to load, and not needed for a socket
    const trust: AgentOptions & { allowPartialTrustChain: true } = {
      ca: place.certificate,
      allowPartialTrustChain: true, // trusts a certificate that an authority signed, but not the authority
      minVersion: "TLSv1.2",
    };
    return new Transport(place, new Agent({ ...trust, keepAlive: true, maxSockets: maxConnections }), request);
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
      const sent = this.#open(this.#optionsOf(request, token));
      const received = receive(sent, request, this.place);
      sent.end(request.body);
      return await lifetime.wait(received, () => {
        this.#running.delete(lifetime);
        sent.destroy();
      });
    } finally {
      this.#running.delete(lifetime);
    }
  }

  #optionsOf({ method, path, body, headers }: ApiRequest, token: string | null): RequestOptions {
    return {
      ...target(this.place),
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

function target({ address, socket }: Place): RequestOptions {
  if (address === null) return { socketPath: socket };
  const { hostname, port } = address;
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? 443 : port };
}

/** The Unix socket accepts no connection, so nothing was sent. */
export class SocketUnavailable extends Error {}

/** A kept connection closed before the response to a read began: the read can be sent again. */
class StaleConnection extends Error {}

function receive(sent: ClientRequest, request: ApiRequest, place: Place): Promise<Received> {
  return new Promise((resolve, reject) => {
    let responding = false;
    sent.on("error", (error) => {
      if (place.socket !== null && "syscall" in error && error.syscall === "connect") reject(new SocketUnavailable());
      const stale = sent.reusedSocket && !responding && ["ECONNRESET", "EPIPE"].includes(systemCode(error));
      reject(stale && isRead(request) ? new StaleConnection() : failureOf(error, sent, request, place));
    });
    sent.on("response", (response) => {
      responding = true;
      collect(response).then(resolve, (error) => reject(failureOf(error, sent, request, place)));
    });
  });
}

async function collect(response: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  response.on("data", (chunk: Buffer) => chunks.push(chunk)); // iteration would read copies
  try {
    await finished(response);
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
  } finally {
    for (const chunk of chunks) chunk.fill(0);
  }
}
