/**
 * Responses to what never becomes a request: malformed HTTP, headers that are too large or too slow, CONNECT. There is no
 * response object, so they are written to the socket directly; they are JSON like every other error.
 */

import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { systemCode, VaultError } from "../errors.js";
import { endLingering } from "./body.js";
import { endInput } from "./connections.js";
import { type ErrorForm, headersFor, nativeErrors } from "./response.js";

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

export function refuseMalformedRequests(server: Server, limits: Limits, errors: ErrorForm = nativeErrors): void {
  const refuseAs = (message: string) => {
    const { body, type } = errors(new VaultError("BAD_REQUEST", message), undefined);
    return malformedResponse(JSON.stringify(body), type);
  };
  const responses = new WeakMap<Duplex, Latest>();
  for (const event of ["request", "checkContinue", "checkExpectation"] as const) {
    server.prependListener(event, (req, res) => {
      responses.set(req.socket, { response: res, before: responses.get(req.socket)?.response });
    });
  }
  server.on("clientError", (error: Error, socket: Duplex) => {
    endInput(socket as Socket);
    refuseInTurn(socket, refuseAs(messageFor(error, limits)), responses.get(socket));
  });
  server.on("connect", (_req, socket: Duplex) => {
    endInput(socket as Socket); // DANGER: Node has detached its parser, perhaps to another connection
    refuseInTurn(socket, refuseAs("CONNECT is not supported: this is not a proxy"), responses.get(socket));
  });
}

/** Complete requests before the malformed one get their responses first. The latest may be the malformed one itself. */
function refuseInTurn(socket: Duplex, refusal: string, { response, before }: Latest = {}): void {
  if (isPending(before)) before.once("finish", () => refuseInTurn(socket, refusal, { response }));
  else if (!isPending(response)) refuse(socket, refusal);
  else if (response.req.complete) response.once("finish", () => refuse(socket, refusal));
  else if (response.headersSent) socket.destroy();
  else refuse(socket, refusal);
}

function isPending(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.writableFinished;
}

/** Lingers, because a reset for unread input could overtake the response. */
function refuse(socket: Duplex, refusal: string): void {
  if (!socket.writable) return void socket.destroy();
  socket.write(refusal);
  endLingering(socket);
}

function malformedResponse(body: string, type: string | undefined): string {
  const headers = ["Date", new Date().toUTCString(), ...headersFor(body.length, type), "Connection", "close"];
  const lines = headers.map((part, at) => (at % 2 === 0 ? `${part}: ` : `${part}\r\n`));
  return `HTTP/1.1 400 Bad Request\r\n${lines.join("")}\r\n${body}`;
}
