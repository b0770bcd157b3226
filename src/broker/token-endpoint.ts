/** Requests to token endpoints. What they send and receive is secret, and wiped; nothing of a response is trusted. */
import { copySecret } from "../../workers/registers.js";
import { bodyReader } from "./body.js";
import type { ByteStream } from "./byte-stream.js";
import { EgressError } from "./egress.js";
import { HeadError, headLength, latin1, readResponseHead } from "./head.js";
import type { Bytes, Exchanged, ExchangeRequest } from "./messages.js";
import { UpstreamError, type Upstreams } from "./upstream.js";

const maxHeadBytes = 16 * 1024;
const maxBodyBytes = 64 * 1024;

/** Small chunks take more bytes than they hold. */
const maxMessageBytes = maxHeadBytes + 2 * maxBodyBytes;

/**
 * Sends a request and returns the response, or why there is none that counts; the text is for the client.
 * @param longestMs how long it may take in all, in milliseconds
 */
export async function exchangeToken(
  upstreams: Upstreams,
  { request, ...target }: ExchangeRequest,
  longestMs: number,
): Promise<Exchanged> {
  let stream: ByteStream | null = null;
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    stream?.socket.destroy();
  }, longestMs);
  try {
    stream = await withDeadline(upstreams.open(target), longestMs);
    if (isLate || !(await stream.writeAndWipe(request))) return failed("closed the connection");
    return await readResponse(stream);
  } catch (error) {
    if (isLate || error === deadline) return failed(`did not answer within ${longestMs / 1000} seconds`);
    if (error instanceof HeadError) return failed(`sent no valid response: ${error.message}`);
    if (error instanceof EgressError || error instanceof UpstreamError)
      return failed(`was not reached: ${error.message}`);
    throw error;
  } finally {
    clearTimeout(late);
    request.fill(0);
    stream?.socket.destroy();
  }
}

const deadline = new Error("too late");

/** A connection that comes about too late is closed. */
function withDeadline(opening: Promise<ByteStream>, longestMs: number): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      reject(deadline);
      opening.then((stream) => stream.socket.destroy()).catch(() => {});
    }, longestMs);
    opening.then(resolve, reject).finally(() => clearTimeout(late));
  });
}

function failed(problem: string): Exchanged {
  return { ok: false, problem };
}

/** Collects the response in one place, which is wiped, as are the pieces in which it comes. */
async function readResponse(stream: ByteStream): Promise<Exchanged> {
  const space = new Uint8Array(new ArrayBuffer(maxMessageBytes));
  let length = 0;
  try {
    for (;;) {
      const piece = await stream.read();
      if (piece !== null) {
        const fits = length + piece.length <= space.length;
        if (fits) copySecret(space, piece, length);
        length += piece.length;
        piece.fill(0);
        if (!fits) return failed("sent more than 64 KiB");
      }
      const response = readMessage(space.subarray(0, length), piece === null);
      if (response !== null) return response;
    }
  } finally {
    space.fill(0);
  }
}

/** Returns null while more bytes are needed. @throws HeadError */
function readMessage(bytes: Uint8Array, hasEnded: boolean): Exchanged | null {
  const headEnd = headLength(bytes.subarray(0, maxHeadBytes + 1), maxHeadBytes);
  if (headEnd === null && hasEnded) throw new HeadError("the connection ended within it");
  if (headEnd === null) return null;
  const raw = bytes.subarray(0, headEnd);
  const { status, body } = readResponseHead(raw, "POST");
  const problem = headProblem(status, raw);
  if (problem !== null) return failed(problem);
  const reader = bodyReader(body, "response");
  const { content } = reader.take(bytes.subarray(headEnd));
  const size = content.reduce((sum, part) => sum + part.length, 0);
  if (size > maxBodyBytes || (typeof body === "number" && body > maxBodyBytes)) return failed("sent more than 64 KiB");
  const isWhole = reader.ended || (body === "until-close" && hasEnded);
  if (!isWhole && hasEnded) throw new HeadError("the connection ended within it");
  return isWhole ? { ok: true, status, body: joined(content, size) } : null;
}

function headProblem(status: number, raw: Uint8Array): string | null {
  if (status < 200 || (status >= 300 && status < 400)) return "sent a redirect or an interim response";
  return /\r\ncontent-type:[ \t]*application\/json[ \t]*[;\r]/i.test(latin1(raw)) ? null : "sent no JSON";
}

function joined(parts: readonly Uint8Array[], size: number): Bytes {
  const bytes = new Uint8Array(new ArrayBuffer(size));
  let at = 0;
  for (const part of parts) {
    copySecret(bytes, part, at);
    at += part.length;
  }
  return bytes;
}
