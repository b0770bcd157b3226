/**
 * Responses to what never becomes a request: malformed HTTP, headers that are too large or too slow, CONNECT. There is no
 * response object, so they are written to the socket directly; they are JSON like every other error.
 */

import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { systemCode, VaultError } from "../errors.js";
import { endInput, endLingering, unsentResponses } from "./connections.js";
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

export function refuseMalformedRequests(server: Server, limits: Limits, errors: ErrorForm = nativeErrors): void {
  const refuseAs = (socket: Duplex, message: string) => {
    const { body, type } = errors(new VaultError("BAD_REQUEST", message), undefined);
    endInput(socket as Socket); // DANGER: after CONNECT, Node has detached its parser, perhaps to another connection
    refuseInTurn(socket as Socket, malformedResponse(JSON.stringify(body), type));
  };
  server.on("clientError", (error: Error, socket) => refuseAs(socket, messageFor(error, limits)));
  server.on("connect", (_req, socket) => refuseAs(socket, "CONNECT is not supported: this is not a proxy"));
}

/** Complete requests before the malformed one get their responses first. The latest may be the malformed one itself. */
function refuseInTurn(socket: Socket, refusal: string): void {
  const unsent = unsentResponses(socket);
  const [last, before] = [unsent.at(-1), unsent.at(-2)];
  if (before !== undefined) before.once("finish", () => refuseInTurn(socket, refusal));
  else if (last === undefined) refuse(socket, refusal);
  else if (last.req.complete) last.once("finish", () => refuse(socket, refusal));
  else if (last.headersSent) socket.destroy();
  else refuse(socket, refusal);
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
