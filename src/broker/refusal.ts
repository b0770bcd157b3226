/** Responses of the broker's own: JSON, marked, and the end of their connection. */
import { STATUS_CODES } from "node:http";
import type { ByteStream } from "./byte-stream.js";
import { EgressError } from "./egress.js";
import { HeadError } from "./head.js";
import type { BrokerRefusal } from "./messages.js";
import { UpstreamError } from "./upstream.js";

export class Refused extends Error {
  override readonly name = "Refused";
  readonly refusal: BrokerRefusal;

  constructor(refusal: BrokerRefusal) {
    super(refusal.error);
    this.refusal = refusal;
  }
}

export function badRequest(error: string): Refused {
  return new Refused({ ok: false, status: 400, code: "BAD_REQUEST", error });
}

export function forbidden(error: string): Refused {
  return new Refused({ ok: false, status: 403, code: "FORBIDDEN", error });
}

/** @param isUpstream whether what was read came from the upstream */
export function brokerRefusal(error: unknown, isUpstream: boolean): BrokerRefusal {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof EgressError) return { ok: false, status: 403, code: "FORBIDDEN", error: error.message };
  if (error instanceof UpstreamError) return { ok: false, status: 502, code: "UNAVAILABLE", error: error.message };
  if (!(error instanceof HeadError)) throw error;
  if (isUpstream) return { ok: false, status: 502, code: "UNAVAILABLE", error: error.message };
  return { ok: false, status: 400, code: "BAD_REQUEST", error: `${error.message}: send a plain HTTP/1.1 request` };
}

/** How long a client may take to read a refusal before its connection is cut, in milliseconds. */
const lingerMs = 2_000;

/** Sends a refusal and closes the connection. */
export function refuse({ socket }: ByteStream, { status, code, error, retryAfter }: BrokerRefusal): void {
  if (socket.destroyed) return;
  const body = `${JSON.stringify({ error, code })}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "Connection: close",
    "Strongroom-Broker: refused",
    ...(status === 407 ? ['Proxy-Authenticate: Basic realm="strongroom"'] : []),
    ...(retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`]),
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
