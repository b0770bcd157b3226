/** Heads of requests that carry a credential: the program's header lines, and those that the key worker adds. */
import { JsonText } from "../json/json-string.js";
import { concat, concatScratch } from "../memory.js";
import type { Binding, Bytes, Refusal, RequestToRender } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { toBase64 } from "../transit/base64.js";
import { headerName, overrideIn } from "../use-rules.js";
import type { ComputedTokens } from "./tokens.js";

/** A line of the request's header, its CR LF included. `name`: in lower case, with `-` for `_`, as some servers read it. */
export type HeaderLine = { readonly name: string; readonly line: Uint8Array };

/** Inputs of a head: a request that the binding covers, and the secret's value, in scratch memory. */
export type HeadRequest = {
  /** Path of the secret. */
  readonly path: string;
  readonly binding: Binding;
  readonly request: RequestToRender;
  readonly lines: readonly HeaderLine[];
  readonly value: Uint8Array;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Etag of the secret's blob. */
  readonly etag: string;
  readonly tokens: ComputedTokens;
};

/** Splits header lines, each ended by CR LF. Returns why they may not go out with the credential, where they may not. */
export function readHeaderLines(binding: Binding, fields: Uint8Array): readonly HeaderLine[] | Refusal {
  const lines: HeaderLine[] = [];
  const names: string[] = [];
  for (let start = 0; start < fields.length; ) {
    const feed = fields.indexOf(0x0a, start);
    const end = feed < 0 ? fields.length : feed + 1;
    const line = fields.subarray(start, end);
    const name = String.fromCharCode(...line.subarray(0, Math.max(0, line.indexOf(0x3a)))); // no secret
    if (!headerName.test(name)) return badRequest("a header's name is invalid");
    names.push(name);
    lines.push({ name: name.toLowerCase().replaceAll("_", "-"), line });
    start = end;
  }
  const override = overrideIn(binding, names);
  return override === null ? lines : badRequest(override);
}

/** Returns the head with a credential where the binding says; the program's own header of that name is left out. */
export function headWithCredential({ path, binding, request, lines }: HeadRequest, credential: Uint8Array) {
  const placed = placeCredential(binding, credential);
  if (placed === null) return badRequest(`the value of ${path} cannot be sent in a header: it has control characters`);
  const { header } = binding;
  const dropped = header.replaceAll("_", "-");
  const kept = lines.filter(({ name }) => name !== dropped);
  return { ok: true, head: joinHead(request, request.target, kept, [`${header}: `, placed, "\r\n"]) } as const;
}

/** The header's value, in scratch memory; null when it cannot stand in a header (RFC 9110, section 5.5). */
function placeCredential({ format, basic }: Binding, credential: Uint8Array): Uint8Array | null {
  if (format === null) return concatScratch("Basic ", toBase64(concatScratch(`${basic ?? ""}:`, credential)));
  if (credential.some((byte) => byte < 0x20 || byte === 0x7f)) return null;
  const [before = "", after = ""] = format.split("{}");
  return concatScratch(before, credential, after);
}

/** Returns a text of visible ASCII characters, which can stand in a header; null for any other value. */
export function visibleText(value: unknown): Uint8Array | null {
  if (!(value instanceof JsonText) || value.bytes.length === 0) return null;
  return value.bytes.every((byte) => byte > 0x20 && byte < 0x7f) ? value.bytes : null;
}

/** @param added the lines that carry the credential, each ended by CR LF */
export function joinHead(
  { host, port, method }: RequestToRender,
  target: string,
  lines: readonly HeaderLine[],
  added: readonly (Uint8Array | string)[],
): Bytes {
  return concat([
    `${method} ${target} HTTP/1.1\r\nHost: ${authority(host, port)}\r\n`,
    ...lines.map(({ line }) => line),
    ...added,
    "\r\n",
  ]);
}

/** Host and port as a Host header names them: without the port of https. */
export function authority(host: string, port: number): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === 443 ? name : `${name}:${port}`;
}
