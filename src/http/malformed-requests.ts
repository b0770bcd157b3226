/**
 * Owns answers to what never becomes a request: broken HTTP, headers that are too large or too slow, CONNECT. They go
 * onto the socket by hand, since there is no response object, and are JSON like every other error.
 */

import type { ServerResponse } from "node:http";
import type { Server } from "node:https";
import type { Duplex } from "node:stream";
import { systemCode } from "../errors.js";

const messages: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "the request's headers are larger than the limit of 8192 bytes",
  ERR_HTTP_REQUEST_TIMEOUT: "the request took too long: headers within 10 s, all of it within 30 s",
};

/** A connection's latest response, and the one before it; Node finishes them in their order. */
type Latest = { readonly response?: ServerResponse | undefined; readonly before?: ServerResponse | undefined };

export function answerBrokenRequests(server: Server): void {
  const responses = new WeakMap<Duplex, Latest>();
  for (const event of ["request", "checkContinue", "checkExpectation"] as const) {
    server.prependListener(event, (req, res) => {
      responses.set(req.socket, { response: res, before: responses.get(req.socket)?.response });
    });
  }
  server.on("clientError", (error: Error, socket: Duplex) => {
    const message = messages[systemCode(error) ?? ""] ?? "the request is not valid HTTP/1.1";
    refuseInTurn(socket, message, responses.get(socket));
  });
  server.on("connect", (_req, socket: Duplex) => {
    refuseInTurn(socket, "CONNECT is not supported: this is not a proxy", responses.get(socket));
  });
}

/** Whole requests before the broken one must get their own answers first. The latest may be the broken one itself. */
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

function refuse(socket: Duplex, message: string): void {
  if (!socket.writable) return void socket.destroy();
  const body = JSON.stringify({ error: message, code: "BAD_REQUEST" });
  socket.end(
    "HTTP/1.1 400 Bad Request\r\n" +
      "Content-Type: application/json; charset=utf-8\r\n" +
      "Cache-Control: no-store\r\n" +
      "X-Content-Type-Options: nosniff\r\n" +
      `Content-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
