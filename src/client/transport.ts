/**
 * Connections to one server: kept alive and reused; over TLS, trusting its certificate and no other. A request that may have reached
 * the server is never sent again, except a read whose kept connection closed before a response began.
 */
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { AgentOptions, RequestOptions } from "node:https";
import { setImmediate as nextTurn } from "node:timers/promises";
import { StrongroomError, systemCode } from "./client-error.js";
import type { Received } from "./decode-response.js";
import type { Place, TlsPlace } from "./discovery.js";
import { type ApiRequest, type CallOptions, isRead } from "./request.js";
import { afterwards, failureOf } from "./request-failure.js";

const defaultTimeoutMs = 30_000;
const maxConnections = 32;

export class Transport {
  readonly place: Place;
  readonly #agent: Agent;
  readonly #open: typeof httpRequest;
  #closed = false;

  private constructor(place: Place, agent: Agent, open: typeof httpRequest) {
    this.place = place;
    this.#agent = agent;
    this.#open = open;
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

  /** @throws StrongroomError without a complete response. */
  async send(request: ApiRequest, token: string | null, call: CallOptions): Promise<Received> {
    try {
      return await this.#sendOnce(request, token, call);
    } catch (error) {
      if (this.#closed) throw closed();
      if (!(error instanceof StaleConnection)) throw error;
      await this.#dropIdleConnections();
      return this.#sendOnce(request, token, call);
    }
  }

  /** Cancels running requests. */
  close(): void {
    this.#closed = true;
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

  async #sendOnce(
    request: ApiRequest,
    token: string | null,
    { signal, timeoutMs = defaultTimeoutMs }: CallOptions,
  ): Promise<Received> {
    if (this.#closed) throw closed();
    if (signal?.aborted) throw aborted(request, signal);
    return new Promise((resolve, reject) => {
      const sent = this.#open(this.#optionsOf(request, token));
      const end = (error: StrongroomError) => {
        reject(error);
        sent.destroy();
      };
      const onAbort = () => signal && end(aborted(request, signal));
      const timer = timeoutMs > 0 ? setTimeout(() => end(tooLate(request, timeoutMs)), timeoutMs) : undefined;
      const settled = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      receive(sent, request, this.place).finally(settled).then(resolve, reject);
      sent.end(request.body);
    });
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
  for await (const chunk of response) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  for (const chunk of chunks) chunk.fill(0);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

export function closed(): StrongroomError {
  return new StrongroomError("ABORTED", "the client is closed: create another");
}

function aborted(request: ApiRequest, { reason }: AbortSignal): StrongroomError {
  return new StrongroomError("ABORTED", `the request was cancelled by its caller${afterwards(request)}`, {
    cause: reason,
  });
}

function tooLate(request: ApiRequest, timeoutMs: number): StrongroomError {
  return new StrongroomError(
    "TIMEOUT",
    `there was no response within ${timeoutMs} ms: wait longer, or check the server${afterwards(request)}`,
  );
}
