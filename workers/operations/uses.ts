/** Operations on uses: the hosts a secret is bound to, and heads of requests to them, the only place that its value goes. */
import { earlierIn, openMetadata, sealBlob } from "../crypto/blob.js";
import { type JsonValue, readObject } from "../json/json-reader.js";
import { JsonText } from "../json/json-string.js";
import { concat, fromLatin1, scratchOf, withScratch } from "../memory.js";
import type { Binding, Refusal, RequestOf, RequestToRender, ResultOf, WriteOf, WriteResult } from "../protocol.js";
import { badRequest, forbidden } from "../refusals.js";
import { toBase64 } from "../transit/base64.js";
import { headerName, JudgedRequest, overrideIn } from "../use-rules.js";
import type { Context, Writing } from "./context.js";
import { openSecret, readMetadata, sealResult, versionContent, withAttributes } from "./entry.js";
import { bytesOfValue } from "./value.js";

/** Limit of uses per secret. */
const mostUses = 64;

/** Seals the current version again, with the same value, number and times, but another etag. */
export function setUses(
  { key, path, previous, now }: Writing,
  { add, removeHost }: WriteOf<"setUses">,
): WriteResult | Refusal {
  const current = openSecret(key, path, previous, now);
  if ("ok" in current) return current;
  const { version, attributes } = readMetadata(current.metadata);
  const { uses: before = [], ...rest } = attributes.secret ?? {};
  const uses = changed(before, add, removeHost);
  if (uses === null) return notBound(path);
  if (uses.length > mostUses) return badRequest(`a secret can be bound to at most ${mostUses} hosts`);
  const secret = uses.length === 0 ? rest : { ...rest, uses };
  const content = versionContent(current);
  const metadata = withAttributes(current.metadata, { ...attributes, secret });
  const sealed = sealBlob(key, path, metadata, content.value, earlierIn(previous));
  return sealResult(path, sealed, { ...content, version });
}

/** A binding replaces the one to the same host; null when there is none to remove. */
function changed(uses: readonly Binding[], add: Binding | null, removeHost: string | null): readonly Binding[] | null {
  if (add !== null) return [...uses.filter(({ host }) => host !== add.host), add];
  const others = uses.filter(({ host }) => host !== removeHost);
  return others.length === uses.length ? null : others;
}

function notBound(path: string): Refusal {
  const detail = `${path} is not bound to this host: GET /v1/uses/${path} lists its hosts`;
  return { ok: false, code: "NOT_FOUND", detail };
}

/** A secret whose metadata does not open has none. */
export function describeUses(
  { keyring }: Context,
  { paths, heads }: RequestOf<"describeUses">,
): ResultOf<"describeUses"> {
  return keyring.withKey((key) => {
    const blobs = paths.map((path, i) => ({ path, blob: fromLatin1(heads[i] ?? "") }));
    const opened = openMetadata(key, blobs);
    return {
      ok: true,
      uses: opened.map((metadata) => (metadata && readMetadata(metadata).attributes.secret?.uses) ?? []),
    };
  });
}

/** The front end must not read the body: it may hold a passphrase. */
export function readDecision(_: Context, { body }: RequestOf<"readDecision">): ResultOf<"readDecision"> {
  return withScratch(() => {
    const found = readObject(body, ["approve", "for", "passphrase"]);
    if (found === null) return badRequest("the body must be one JSON object in UTF-8");
    const approve = found.get("approve");
    if (typeof approve !== "boolean") return badRequest("approve must be true or false");
    const duration = approvalDuration(found.get("for"));
    if (duration !== null) return { ok: true, approve, duration, hasPassphrase: found.has("passphrase") };
    return badRequest("for must be request, session, or a whole number of seconds up to 31536000");
  });
}

function approvalDuration(value: JsonValue | undefined): number | "request" | "session" | null {
  if (value === undefined) return "request";
  const text = value instanceof JsonText ? value.toString() : value;
  if (text === "request" || text === "session") return text;
  return typeof text === "number" && Number.isInteger(text) && text > 0 && text <= 31_536_000 ? text : null;
}

export function render({ keyring, now }: Context, { path, blob, ...request }: RequestOf<"render">): ResultOf<"render"> {
  return keyring.withKey((key) => {
    const current = openSecret(key, path, blob, now);
    if ("ok" in current) return current;
    const { uses = [] } = readMetadata(current.metadata).attributes.secret ?? {};
    const binding = uses.find(({ host, port }) => host === request.host && port === request.port);
    if (binding === undefined) return forbidden(`${path} is not bound to ${request.host}, port ${request.port}`);
    const reason = new JudgedRequest(request).whyNot(binding);
    if (reason !== null) return forbidden(reason);
    const lines = headerLines(request.fields);
    const problem = headerProblem(binding, lines);
    if (problem !== null) return badRequest(problem);
    const credential = formatCredential(binding, bytesOfValue(current.value));
    if (credential === null)
      return badRequest(`the value of ${path} cannot be sent in a header: it has control characters`);
    return { ok: true, head: requestHead(binding, request, lines, credential) };
  });
}

/** Why the request's header lines may not go out with the credential; null when they may. */
function headerProblem(binding: Binding, lines: readonly Uint8Array[]): string | null {
  const names = lines.map(fieldName);
  return names.every((name) => headerName.test(name)) ? overrideIn(binding, names) : "a header's name is invalid";
}

/** The header's value, in scratch memory; null when it cannot stand in a header (RFC 9110, section 5.5). */
function formatCredential({ format, basic }: Binding, value: Uint8Array): Uint8Array | null {
  if (format === null) return scratchOf("Basic ", toBase64(scratchOf(`${basic ?? ""}:`, value)));
  if (value.some((byte) => byte < 0x20 || byte === 0x7f)) return null;
  const [before = "", after = ""] = format.split("{}");
  return scratchOf(before, value, after);
}

/** Returns the head of the request, without the program's own header of the credential's name. */
function requestHead(
  { header }: Binding,
  { host, port, method, target }: RequestToRender,
  lines: readonly Uint8Array[],
  credential: Uint8Array,
) {
  const name = host.includes(":") ? `[${host}]` : host;
  const authority = port === 443 ? name : `${name}:${port}`;
  return concat([
    `${method} ${target} HTTP/1.1\r\nHost: ${authority}\r\n`,
    ...lines.filter((line) => !isNamed(line, header)),
    `${header}: `,
    credential,
    "\r\n\r\n",
  ]);
}

function headerLines(fields: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let start = 0; start < fields.length; ) {
    const feed = fields.indexOf(0x0a, start);
    const end = feed < 0 ? fields.length : feed + 1;
    lines.push(fields.subarray(start, end));
    start = end;
  }
  return lines;
}

/** Returns a line's name, which is no secret; empty where it has none. */
function fieldName(line: Uint8Array): string {
  return String.fromCharCode(...line.subarray(0, Math.max(0, line.indexOf(0x3a))));
}

/** Whether a line has this name, in lower case, as a server could read it that takes `_` for `-`. */
function isNamed(line: Uint8Array, header: string): boolean {
  if (line[header.length] !== 0x3a) return false;
  for (let i = 0; i < header.length; i++) {
    if (folded(line[i] ?? 0) !== folded(header.charCodeAt(i))) return false;
  }
  return true;
}

function folded(byte: number): number {
  if (byte === 0x5f) return 0x2d;
  return byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte;
}
