/**
 * Owns the connections to one server: kept alive and reused, trusting its certificate and no other. What may have reached
 * the server is not sent again, but for a read whose kept connection had ended before any answer began.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent, type AgentOptions, request as httpsRequest, type RequestOptions } from "node:https";
import { setImmediate as nextTurn } from "node:timers/promises";
import { StrongroomError, systemCode } from "./client-error.js";
import type { Place } from "./discovery.js";
import type { ApiRequest, CallOptions, Received } from "./request.js";
import { afterwards, failureOf } from "./request-failure.js";

const defaultTimeoutMs = 30_000;
const maxConnections = 32;

export class Transport {
  readonly place: Place;
  readonly #agent: Agent;
  #closed = false;

  constructor(place: Place) {
    this.place = place;
    const trust: AgentOptions & { allowPartialTrustChain: true } = {
      ca: place.certificate,
      allowPartialTrustChain: true, // a certificate that somebody else has signed is trusted, and its signer is not
      minVersion: "TLSv1.2",
    };
    this.#agent = new Agent({ ...trust, keepAlive: true, maxSockets: maxConnections });
  }

  /** @throws StrongroomError when there is no whole answer. */
  async send(ask: ApiRequest, token: string | null, call: CallOptions): Promise<Received> {
    try {
      return await this.#sendOnce(ask, token, call);
    } catch (error) {
      if (this.#closed) throw closed();
      if (!(error instanceof StaleConnection)) throw error;
      await this.#dropIdleConnections();
      return this.#sendOnce(ask, token, call);
    }
  }

  /** Ends what is under way, too. */
  close(): void {
    this.#closed = true;
    this.#agent.destroy();
  }

  /** Lets what is under way end by itself, and keeps no connection any more. */
  retire(): void {
    this.#agent.maxFreeSockets = 0;
    void this.#dropIdleConnections();
  }

  async #dropIdleConnections(): Promise<void> {
    for (const socket of Object.values(this.#agent.freeSockets).flat()) socket?.destroy();
    await nextTurn();
  }

  async #sendOnce(
    ask: ApiRequest,
    token: string | null,
    { signal, timeoutMs = defaultTimeoutMs }: CallOptions,
  ): Promise<Received> {
    if (this.#closed) throw closed();
    if (signal?.aborted) throw aborted(ask, signal);
    return new Promise((resolve, reject) => {
      const request = httpsRequest(this.#optionsOf(ask, token));
      const end = (error: StrongroomError) => {
        reject(error);
        request.destroy();
      };
      const onAbort = () => signal && end(aborted(ask, signal));
      const timer = timeoutMs > 0 ? setTimeout(() => end(tooLate(ask, timeoutMs)), timeoutMs) : undefined;
      const settled = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      answerTo(request, ask, this.place).finally(settled).then(resolve, reject);
      request.end(ask.body);
    });
  }

  #optionsOf({ method, path, body }: ApiRequest, token: string | null): RequestOptions {
    const { hostname, port } = this.place.address;
    return {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? 443 : port,
      agent: this.#agent,
      method,
      path,
      headers: {
        accept: "application/json",
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body && { "content-type": "application/json", "content-length": body.length }),
      },
    };
  }
}

/** A read on a kept connection that had ended: it can be sent again, since no answer has begun. */
class StaleConnection extends Error {}

function answerTo(request: ClientRequest, ask: ApiRequest, place: Place): Promise<Received> {
  return new Promise((resolve, reject) => {
    let answering = false;
    request.on("error", (error) => {
      const stale = request.reusedSocket && !answering && ["ECONNRESET", "EPIPE"].includes(systemCode(error));
      reject(stale && ask.method === "GET" ? new StaleConnection() : failureOf(error, request, ask, place));
    });
    request.on("response", (response) => {
      answering = true;
      collect(response).then(resolve, (error) => reject(failureOf(error, request, ask, place)));
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
  return new StrongroomError("ABORTED", "the client is closed: make another");
}

function aborted(ask: ApiRequest, { reason }: AbortSignal): StrongroomError {
  return new StrongroomError("ABORTED", `the request was ended by its caller${afterwards(ask)}`, { cause: reason });
}

function tooLate(ask: ApiRequest, timeoutMs: number): StrongroomError {
  return new StrongroomError(
    "TIMEOUT",
    `there was no answer within ${timeoutMs} ms: wait longer, or see what the server is at${afterwards(ask)}`,
  );
}
