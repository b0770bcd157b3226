/**
 * Responses to what never becomes a request: malformed HTTP, headers that are too large or too slow, CONNECT. There is no
 * response object, so they are written to the socket directly; they are JSON like every other error.
 */

import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { systemCode } from "../errors.js";
import { endLingering } from "./body.js";
import { endInput } from "./connections.js";
import { headersFor } from "./response.js";

type Limits = { readonly maxHeaderSize: number; readonly headersTimeout: number; readonly requestTimeout: number };

function messageFor(error: Error, { maxHeaderSize, headersTimeout, requestTimeout }: Limits): string {
  switch (systemCode(error)) {
    case "HPE_HEADER_OVERFLOW":
      return `the request's headers are larger than the limit of ${maxHeaderSize} bytes`;
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return `the request took too long: send its headers within ${headersTimeout / 1000} s, all of it within ${requestTimeout / 1000} s`;
    default:
      return "the request is not valid HTTP/1.1";
  }
}

/** A connection's latest response and the one before it. Node finishes them in order. */
type Latest = { readonly response?: ServerResponse | undefined; readonly before?: ServerResponse | undefined };

export function refuseMalformedRequests(server: Server, limits: Limits): void {
  const responses = new WeakMap<Duplex, Latest>();
  for (const event of ["request", "checkContinue", "checkExpectation"] as const) {
    server.prependListener(event, (req, res) => {
      responses.set(req.socket, { response: res, before: responses.get(req.socket)?.response });
    });
  }
  server.on("clientError", (error: Error, socket: Duplex) => {
    endInput(socket as Socket);
    refuseInTurn(socket, messageFor(error, limits), responses.get(socket));
  });
  server.on("connect", (_req, socket: Duplex) => {
    endInput(socket as Socket); // DANGER: Node has detached its parser, perhaps to another connection
    refuseInTurn(socket, "CONNECT is not supported: this is not a proxy", responses.get(socket));
  });
}

/** Complete requests before the malformed one get their responses first. The latest may be the malformed one itself. */
function refuseInTurn(socket: Duplex, message: string, { response, before }: Latest = {}): void {
  if (isPending(before)) before.once("finish", () => refuseInTurn(socket, message, { response }));
  else if (!isPending(response)) refuse(socket, message);
  else if (response.req.complete) response.once("finish", () => refuse(socket, message));
  else if (response.headersSent) socket.destroy();
  else refuse(socket, message);
}

function isPending(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.writableFinished;
}

/** Lingers, because a reset for unread input could overtake the response. */
function refuse(socket: Duplex, message: string): void {
  if (!socket.writable) return void socket.destroy();
  const body = JSON.stringify({ error: message, code: "BAD_REQUEST" });
  const headers = ["Date", new Date().toUTCString(), ...headersFor(body.length), "Connection", "close"];
  const lines = headers.map((part, at) => (at % 2 === 0 ? `${part}: ` : `${part}\r\n`));
  socket.write(`HTTP/1.1 400 Bad Request\r\n${lines.join("")}\r\n${body}`);
  endLingering(socket);
}
