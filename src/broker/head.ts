/**
 * Strict reader of HTTP/1.1 message heads (RFC 9112), bytes only: what two implementations could read in two ways is
 * refused, because the credential of a request is chosen by what this reader understood.
 *
 * Refused: bare CR or LF, folded lines, space before a colon, control characters, more than one Host, Content-Length or
 * Transfer-Encoding, both of the latter, any coding but chunked, any version but 1.1, requests with heads over 16 KiB or 100
 * lines, names of a request's headers with other characters than letters, digits, `-` and `_`. A response's head may be longer, as
 * far as clients read it.
 */
import { headerName } from "../../workers/use-rules.js";

/** Longest heads, their blank line included, in bytes. */
export const maxRequestBytes = 16 * 1024;
export const maxResponseBytes = 256 * 1024;

const maxLines = { request: 100, response: 1_000 } as const;
const [cr, lf, sp, tab, colon] = [0x0d, 0x0a, 0x20, 0x09, 0x3a];

/** How long a message's body is: in bytes, in chunks, or until the connection closes (responses only). */
export type BodyLength = number | "chunked" | "until-close";

export type RequestHead = {
  readonly method: string;
  /** Target as it was sent: origin form, absolute form, or an authority for CONNECT. */
  readonly target: string;
  /** Value of the Host header; null where a CONNECT has none. */
  readonly host: string | null;
  readonly body: BodyLength;
  /** Whether the head says how long the body is, which may be 0. */
  readonly hasBody: boolean;
  readonly asksWebSocket: boolean;
  readonly asksClose: boolean;
  /** Names are in lower case. DANGER: values and lines are views of the bytes that were read. */
  readonly fields: readonly Field[];
};

export type ResponseHead = {
  readonly status: number;
  readonly body: BodyLength;
  /** Whether the upstream closes the connection after this response. */
  readonly closes: boolean;
};

type Field = { readonly name: string; readonly value: Uint8Array; readonly line: Uint8Array };

/** Why a head is refused. The text never repeats any of its bytes. */
export class HeadError extends Error {
  override readonly name = "HeadError";
}

/**
 * Returns the length of the head at the start of `bytes`, its blank line included, or null when more bytes are needed.
 * @param most longest head, in bytes
 * @param known how many of the bytes were searched before, for a head that comes in pieces
 * @throws HeadError for a head that is too long
 */
export function headLength(bytes: Uint8Array, most = maxRequestBytes, known = 0): number | null {
  for (let at = bytes.indexOf(lf, Math.max(0, known - 2)); at >= 0; at = bytes.indexOf(lf, at + 1)) {
    // A bare LF ends the head here too: `readLines` refuses it then, and nothing behind it is taken for a head.
    if (bytes[at + 1] === lf) return checkedLength(at + 2, most);
    if (bytes[at + 1] === cr && bytes[at + 2] === lf) return checkedLength(at + 3, most);
  }
  checkedLength(bytes.length, most);
  return null;
}

function checkedLength(length: number, most: number): number {
  if (length > most) throw new HeadError(`the head is longer than ${most / 1024} KiB`);
  return length;
}

/** Reads a whole request head, its blank line included. @throws HeadError */
export function readRequestHead(bytes: Uint8Array): RequestHead {
  const [first, ...lines] = readLines(bytes, maxLines.request);
  const { method, target } = readRequestLine(first ?? new Uint8Array());
  const fields = lines.map(readField);
  if (!fields.every(({ name }) => headerName.test(name)))
    throw new HeadError("a header's name has other characters than letters, digits, - and _");
  if (fields.some(({ name }) => name.includes("_") && deciding.has(name.replaceAll("_", "-"))))
    throw new HeadError("a header's name is one that decides about the message, but for _ in place of -");
  const connection = connectionOptions(fields);
  const length = bodyLength(fields);
  refuseOtherExpectations(fields);
  const asksWebSocket = connection.has("upgrade") && optional(fields, "upgrade")?.toLowerCase() === "websocket";
  if (asksWebSocket && (length ?? 0) !== 0) throw new HeadError("a request for a WebSocket has no body");
  return {
    method,
    target,
    host: method === "CONNECT" ? optional(fields, "host") : ascii(one(fields, "host").value),
    body: length ?? 0,
    hasBody: length !== null,
    asksWebSocket,
    asksClose: connection.has("close"),
    fields,
  };
}

/** Servers that pass headers on as variables (CGI, WSGI) read `_` as `-`, and would read another message. */
const deciding: ReadonlySet<string> = new Set(["content-length", "transfer-encoding", "proxy-authorization"]);

/** Reads a whole response head; `method`: of its request. @throws HeadError */
export function readResponseHead(bytes: Uint8Array, method: string): ResponseHead {
  const [first, ...lines] = readLines(bytes, maxLines.response);
  const [, minor, digits] = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: .*)?$/s.exec(latin1(first ?? new Uint8Array())) ?? [];
  if (digits === undefined) throw new HeadError("the status line is invalid");
  const fields = lines.map(readField);
  const status = Number(digits);
  const options = readOptions(fields);
  const hasNoBody = method === "HEAD" || status < 200 || status === 204 || status === 304;
  const length = bodyLength(fields);
  return {
    status,
    body: hasNoBody ? 0 : (length ?? "until-close"),
    closes: options.has("close") || (minor === "0" && !options.has("keep-alive")),
  };
}

/** Splits a head into its lines, without the blank one. */
function readLines(bytes: Uint8Array, most: number): Uint8Array[] {
  const lines: Uint8Array[] = [];
  let start = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === lf) throw new HeadError("a line does not end with CR LF");
    if (byte !== cr) continue;
    if (bytes[at + 1] !== lf) throw new HeadError("a line does not end with CR LF");
    lines.push(bytes.subarray(start, at));
    start = at + 2;
    at++;
  }
  const blank = lines.pop();
  if (blank?.length !== 0 || start !== bytes.length) throw new HeadError("the head does not end with a blank line");
  if (lines.length > most) throw new HeadError(`the head has more than ${most} lines`);
  return lines;
}

/** Origin form, absolute form, or an authority; a fragment has no meaning in a request. */
const requestTarget = /^(?:\/[!"$-~]*|https?:\/\/[!"$-~]+|[0-9A-Za-z_.[\]:-]+:\d+)$/;

function readRequestLine(line: Uint8Array): { readonly method: string; readonly target: string } {
  const parts = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([!-~]+) HTTP\/(\d\.\d)$/.exec(latin1(line)) ?? [];
  const [, method, target, version] = parts;
  if (method === undefined || target === undefined) throw new HeadError("the request line is invalid");
  if (!requestTarget.test(target) || (method === "CONNECT") !== /^[^/]*$/.test(target)) {
    throw new HeadError("the request's target is invalid");
  }
  // Python before 3.12 opens its tunnels with HTTP/1.0; nothing of a CONNECT is passed on.
  if (version !== "1.1" && !(version === "1.0" && method === "CONNECT")) {
    throw new HeadError("only HTTP/1.1 is supported");
  }
  return { method, target };
}

const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** A line that begins with white space (folding) has no valid name, and neither has one with space before its colon. */
function readField(line: Uint8Array): Field {
  const end = line.indexOf(colon);
  const name = end < 0 ? "" : latin1(line.subarray(0, end));
  if (!fieldName.test(name)) throw new HeadError("a header's name is invalid");
  const value = trim(line.subarray(end + 1));
  if (value.some(isControl)) throw new HeadError("a header's value has a control character");
  return { name: name.toLowerCase(), value, line };
}

function isControl(byte: number): boolean {
  return (byte < sp && byte !== tab) || byte === 0x7f;
}

function trim(value: Uint8Array): Uint8Array {
  const isSpace = (byte: number | undefined) => byte === sp || byte === tab;
  let [start, end] = [0, value.length];
  while (start < end && isSpace(value[start])) start++;
  while (end > start && isSpace(value[end - 1])) end--;
  return value.subarray(start, end);
}

/** Returns null when no header says it: no body in a request, all until the connection closes in a response. */
function bodyLength(fields: readonly Field[]): number | "chunked" | null {
  const length = optional(fields, "content-length");
  const coding = optional(fields, "transfer-encoding");
  if (coding !== null && length !== null)
    throw new HeadError("Content-Length and Transfer-Encoding contradict each other");
  if (coding !== null && coding.toLowerCase() !== "chunked")
    throw new HeadError("only the transfer coding chunked is supported");
  if (coding !== null) return "chunked";
  if (length === null) return null;
  if (!/^(?:0|[1-9]\d{0,14})$/.test(length)) throw new HeadError("Content-Length is invalid");
  return Number(length);
}

/** Options that name no other header: a nominated header could be dropped by the next hop, the credential's included. */
const knownOptions = new Set(["close", "keep-alive", "upgrade", "te", "http2-settings"]);

function connectionOptions(fields: readonly Field[]): ReadonlySet<string> {
  const options = readOptions(fields);
  if ([...options].some((option) => !knownOptions.has(option))) throw new HeadError("Connection names another header");
  return options;
}

function readOptions(fields: readonly Field[]): ReadonlySet<string> {
  const values = fields.filter(({ name }) => name === "connection").map(({ value }) => latin1(value));
  const options = values.flatMap((value) => value.split(",")).map((option) => option.trim().toLowerCase());
  return new Set(options.filter((option) => option !== ""));
}

function refuseOtherExpectations(fields: readonly Field[]): void {
  const expectation = optional(fields, "expect")?.toLowerCase() ?? "100-continue";
  if (expectation !== "100-continue") throw new HeadError("only the expectation 100-continue is supported");
}

function one(fields: readonly Field[], name: string): Field {
  const [found, ...more] = fields.filter((field) => field.name === name);
  if (found === undefined || more.length > 0) throw new HeadError(`the head must have exactly one header ${name}`);
  return found;
}

/** Returns the value of a header that may be there once. */
function optional(fields: readonly Field[], name: string): string | null {
  if (!fields.some((field) => field.name === name)) return null;
  return ascii(one(fields, name).value);
}

function ascii(value: Uint8Array): string {
  if (value.some((byte) => byte > 0x7e)) throw new HeadError("a header that decides about the request is not ASCII");
  return latin1(value);
}

/** Text of bytes that are not secret, a character a byte. */
export function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}
