/** One request and its response on their way through the broker: only the head that carries a credential is changed. */
import { type BodyReader, bodyReader } from "./body.js";
import type { ByteStream } from "./byte-stream.js";
import { HeadError, maxResponseBytes, type RequestHead, type ResponseHead, readResponseHead } from "./head.js";
import type { Bytes } from "./messages.js";
import { brokerRefusal, Refused } from "./refusal.js";

/** Meant only for the connection to this proxy, or written by the broker itself (RFC 9110, section 7.6.1). */
const dropped = new Set([
  "connection",
  "content-length",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Returns the header lines that go to the upstream, each ended by CR LF.
 * @param alsoDropped names of headers that carry the broker's own token
 */
export function fieldsFor(head: RequestHead, alsoDropped: ReadonlySet<string>): Bytes {
  const kept = head.fields.filter(({ name }) => !dropped.has(name) && !alsoDropped.has(name));
  const lines = [...kept.map(({ line }) => line), ...ownFields(head).map((line) => Buffer.from(line))];
  const bytes = new Uint8Array(new ArrayBuffer(lines.reduce((sum, line) => sum + line.length + 2, 0)));
  let at = 0;
  for (const line of lines) {
    bytes.set(line, at);
    bytes.set([0x0d, 0x0a], at + line.length);
    at += line.length + 2;
  }
  return bytes;
}

/** Headers that frame the message: the broker writes them itself, as it understood them. */
function ownFields({ body, hasBody, asksWebSocket, asksClose }: RequestHead): string[] {
  const length = body === "chunked" ? "Transfer-Encoding: chunked" : `Content-Length: ${body}`;
  return [
    ...(hasBody ? [length] : []),
    ...(asksWebSocket ? ["Connection: Upgrade", "Upgrade: websocket"] : []),
    ...(asksClose && !asksWebSocket ? ["Connection: close"] : []),
  ];
}

/**
 * Sends the request's body, relays the response, and returns whether both connections can carry another request.
 * @param answered called with the upstream's status
 */
export async function relay(
  client: ByteStream,
  upstream: ByteStream,
  head: RequestHead,
  answered: (status: number) => void,
): Promise<boolean> {
  const abort = () => upstream.socket.destroy();
  client.socket.once("close", abort);
  if (client.socket.destroyed) abort();
  const body = new RequestBody(client, upstream, head);
  try {
    const response = await relayResponse(upstream, client, head, answered);
    if (response === "upgraded") return await joinStreams(client, upstream);
    // An upstream may answer before it has read the whole body: the rest has no one to go to.
    return response === "whole" && (await within(body.sent)) && !head.asksClose;
  } catch (error) {
    throw body.problem === null ? error : new Refused(brokerRefusal(body.problem, false));
  } finally {
    client.socket.off("close", abort);
  }
}

/** How long one direction may take to end after the other has, in milliseconds. */
const endMs = 1_000;

/** Returns false when it takes too long. */
async function within<T>(ending: Promise<T>): Promise<T | false> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, endMs, false);
  });
  return Promise.race([ending, late]).finally(() => clearTimeout(timer));
}

/** The request's body on its way. An invalid or cut off one ends the upstream's connection. */
class RequestBody {
  /** Whether it was sent whole. */
  readonly sent: Promise<boolean>;
  /** Why it is invalid. */
  problem: HeadError | null = null;

  constructor(client: ByteStream, upstream: ByteStream, head: RequestHead) {
    this.sent = this.#send(client, upstream, head);
  }

  async #send(client: ByteStream, upstream: ByteStream, head: RequestHead): Promise<boolean> {
    try {
      if (await pump(client, upstream, bodyReader(head.body, "request"))) return true;
    } catch (error) {
      if (!(error instanceof HeadError)) throw error;
      this.problem = error;
    }
    upstream.socket.destroy();
    return false;
  }
}

type Relayed = "whole" | "cut" | "upgraded";

async function relayResponse(
  upstream: ByteStream,
  client: ByteStream,
  request: RequestHead,
  answered: (status: number) => void,
): Promise<Relayed> {
  for (;;) {
    const { raw, response } = await nextResponse(upstream, request);
    const isInterim = response.status < 200 && response.status !== 101;
    if (!isInterim) answered(response.status);
    if (!(await client.write(raw))) return "cut";
    if (response.status === 101) return "upgraded";
    if (!isInterim) return await relayBody(upstream, client, response);
  }
}

/** @throws HeadError for no response, or a response that clients could read in two ways; nothing of it is sent then */
async function nextResponse(upstream: ByteStream, { method, asksWebSocket }: RequestHead) {
  const raw = await upstream.readHead(maxResponseBytes);
  if (raw === null) throw new HeadError("the upstream closed the connection without a response");
  const response = readResponseHead(raw, method);
  if (response.status === 101 && !asksWebSocket) throw new HeadError("the upstream upgraded a connection unasked");
  return { raw, response };
}

async function relayBody(upstream: ByteStream, client: ByteStream, { body, closes }: ResponseHead): Promise<Relayed> {
  const isWhole = await pump(upstream, client, bodyReader(body, "response"));
  return isWhole && !closes ? "whole" : "cut";
}

/** Returns whether the body ended where it said; a body that lasts until the connection closes does not. */
async function pump(from: ByteStream, to: ByteStream, reader: BodyReader): Promise<boolean> {
  while (!reader.ended) {
    const piece = await from.read();
    if (piece === null) return false;
    const { taken, passed } = reader.take(piece);
    from.unread(piece.subarray(taken));
    for (const bytes of passed) if (bytes.length > 0 && !(await to.write(bytes))) return false;
  }
  return true;
}

/** After an upgrade: bytes in both directions until one side ends, and what it has sent before. */
async function joinStreams(client: ByteStream, upstream: ByteStream): Promise<false> {
  const endless = () => bodyReader("until-close", "response");
  const toUpstream = pump(client, upstream, endless());
  const toClient = pump(upstream, client, endless());
  await Promise.race([toUpstream, toClient]);
  for (const { socket } of [upstream, client]) socket.end();
  await within(Promise.all([toUpstream, toClient]));
  return false;
}
