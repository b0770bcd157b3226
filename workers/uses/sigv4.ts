/**
 * Signature Version 4 of AWS: the head of a request, signed with a secret access key that stays in the key worker. The client's
 * own signature is dropped: programs sign with a placeholder.
 */
import { createHash, createHmac } from "node:crypto";
import { withoutQuerySignature } from "../binding-members.js";
import { readObject } from "../json/json-reader.js";
import { asBuffer, concatScratch, decodeText, fromLatin1, utf8, wipe } from "../memory.js";
import type { Refusal, ResultOf } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { authority, type HeaderLine, type HeadRequest, joinHead, visibleText } from "./head.js";

const algorithm = "AWS4-HMAC-SHA256";
const hashHeader = "x-amz-content-sha256";
const unsignedPayload = "UNSIGNED-PAYLOAD";

/** Parts of the client's own signature. */
const replaced: ReadonlySet<string> = new Set(["authorization", "x-amz-date", "x-amz-security-token"]);

/** Headers that the broker or an intermediary may change: AWS's SDK for JavaScript does not sign them either. */
const unsigned =
  /^(?:cache-control|connection|expect|from|keep-alive|max-forwards|pragma|referer|te|trailer|transfer-encoding|upgrade|user-agent|x-amzn-trace-id|(?:proxy|sec)-.*)$/;

type AccessKey = { readonly id: Uint8Array; readonly secret: Uint8Array; readonly sessionToken: Uint8Array | null };

/** A header for the signature: its name in lower case, and its value. */
type Signed = { readonly name: string; readonly value: Uint8Array };

export function signHead(use: HeadRequest): ResultOf<"render"> | Refusal {
  const { path, binding, request, lines, now } = use;
  const { service = "", region = "" } = binding.sigv4 ?? {};
  const key = readAccessKey(use.value);
  if (key === null) return badRequest(`the value of ${path} is not a JSON object with accessKeyId and secretAccessKey`);
  const kept = lines.filter(({ name }) => !replaced.has(name));
  const own = kept.filter(({ name }) => name === hashHeader).map(({ line }) => decodeText(headerValue(line)));
  const payload = payloadHash(own, service, request.payloadHash);
  if (typeof payload !== "string") return payload;
  const time = `${new Date(now).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
  const added = addedHeaders(time, own.length === 0 && service === "s3" ? payload : null, key);
  const target = withoutQuerySignature(request.target);
  const host = { name: "host", value: utf8(authority(request.host, request.port)) };
  const signed = signedHeaders([host, ...added, ...kept.map(signedHeader)]);
  const names = signed.map(({ name }) => name).join(";");
  const canonical = canonicalRequest(request.method, target, service, signed, names, payload);
  const scope = `${time.slice(0, 8)}/${region}/${service}/aws4_request`;
  const signature = signText(`${algorithm}\n${time}\n${scope}\n${sha256(canonical)}`, key.secret, scope);
  const authorization = [`authorization: ${algorithm} Credential=`, key.id, `/${scope}, SignedHeaders=${names}, `];
  const written = added.flatMap(({ name, value }) => [`${name}: `, value, "\r\n"]);
  const credential = [...written, ...authorization, `Signature=${signature}\r\n`];
  return { ok: true, head: joinHead(request, target, kept, credential) };
}

/** Reads the secret's value; null when it is no access key. The parts are in scratch memory. */
function readAccessKey(value: Uint8Array): AccessKey | null {
  const found = readObject(value, ["accessKeyId", "secretAccessKey", "sessionToken"]);
  const id = visibleText(found?.get("accessKeyId"));
  const secret = visibleText(found?.get("secretAccessKey"));
  const sessionToken = visibleText(found?.get("sessionToken"));
  if (id === null || secret === null || (sessionToken === null && found?.has("sessionToken"))) return null;
  return { id, secret, sessionToken };
}

/**
 * Returns the hash that is signed in place of the body: the client's own, or for S3 none, or the one of the body that was read.
 * A body in signed chunks would need a signature for each of them.
 */
function payloadHash(own: readonly string[], service: string, ofBody: string | null): string | Refusal {
  const [given] = own;
  if (own.length > 1) return badRequest(`there is more than one header ${hashHeader}`);
  if (given?.startsWith("STREAMING-AWS4-"))
    return badRequest("a body in signed chunks cannot be signed again: switch chunked signing off in the client");
  if (given !== undefined)
    return /^(?:[0-9a-f]{64}|(?:STREAMING-)?UNSIGNED-PAYLOAD(?:-TRAILER)?)$/.test(given) ? given : badHash;
  if (service === "s3") return unsignedPayload;
  return ofBody ?? badRequest(`the request has neither a header ${hashHeader} nor a body that was read`);
}

const badHash = badRequest(`the header ${hashHeader} must be a SHA-256 in lower case hex, or ${unsignedPayload}`);

function addedHeaders(time: string, hash: string | null, { sessionToken }: AccessKey): readonly Signed[] {
  return [
    { name: "x-amz-date", value: utf8(time) },
    ...(hash === null ? [] : [{ name: hashHeader, value: utf8(hash) }]),
    ...(sessionToken === null ? [] : [{ name: "x-amz-security-token", value: sessionToken }]),
  ];
}

function signedHeader({ line }: HeaderLine): Signed {
  return { name: decodeText(line.subarray(0, line.indexOf(0x3a))).toLowerCase(), value: headerValue(line) };
}

function headerValue(line: Uint8Array): Uint8Array {
  const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === 0x0a;
  let [start, end] = [line.indexOf(0x3a) + 1, line.length];
  while (start < end && isSpace(line[start])) start++;
  while (end > start && isSpace(line[end - 1])) end--;
  return line.subarray(start, end);
}

/** Returns the headers that are signed, in the order of their names, values of one name joined. */
function signedHeaders(headers: readonly Signed[]): readonly Signed[] {
  const byName = new Map<string, (Uint8Array | string)[]>();
  for (const { name, value } of headers) {
    if (unsigned.test(name)) continue;
    const before = byName.get(name);
    if (before === undefined) byName.set(name, [withoutRuns(value)]);
    else before.push(",", withoutRuns(value));
  }
  const joined = [...byName].map(([name, values]) => ({ name, value: concatScratch(...values) }));
  return joined.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the value with one space for each run of them, in scratch memory. */
function withoutRuns(value: Uint8Array): Uint8Array {
  const kept = concatScratch(value);
  let length = 0;
  for (const byte of value) if (byte !== 0x20 || kept[length - 1] !== 0x20) kept[length++] = byte;
  return kept.subarray(0, length);
}

function canonicalRequest(
  method: string,
  target: string,
  service: string,
  signed: readonly Signed[],
  names: string,
  payload: string,
): Uint8Array {
  const end = target.includes("?") ? target.indexOf("?") : target.length;
  const [path, query] = [target.slice(0, end), target.slice(end + 1)];
  const uri = service === "s3" ? encode(decode(path), "/") : encode(utf8(normalized(path)), "/");
  const headers = signed.flatMap(({ name, value }) => [`${name}:`, value, "\n"]);
  return concatScratch(`${method}\n${uri}\n${canonicalQuery(query)}\n`, ...headers, `\n${names}\n${payload}`);
}

/** Removes dot segments and empty ones (RFC 3986, section 5.2.4): all services but S3 do before they compare. */
function normalized(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "." && segment !== "") segments.push(segment);
  }
  const endsInSlash = /\/(?:\.{1,2})?$/.test(path) && segments.length > 0;
  return `/${segments.join("/")}${endsInSlash ? "/" : ""}`;
}

function canonicalQuery(query: string): string {
  const parameters = query.split("&").filter((parameter) => parameter !== "");
  const pairs = parameters.map((parameter) => {
    const [name = "", ...value] = parameter.split("=");
    return [name, value.join("=")].map((part) => encode(decode(part.replaceAll("+", "%20")), "")) as [string, string];
  });
  const sorted = pairs.sort(([a, b], [c, d]) => (a === c ? compare(b, d) : compare(a, c)));
  return sorted.map((pair) => pair.join("=")).join("&");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function decode(text: string): Uint8Array {
  const latin1 = text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return fromLatin1(latin1);
}

/** Escapes all but unreserved characters and those in `plain`. */
function encode(bytes: Uint8Array, plain: string): string {
  const escaped = Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    if (/[0-9A-Za-z._~-]/.test(character) || plain.includes(character)) return character;
    return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return escaped.join("");
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Four HMACs make the key of the day, region and service, and a fifth one signs. */
function signText(text: string, secret: Uint8Array, scope: string): string {
  let key: Uint8Array = concatScratch("AWS4", secret);
  for (const part of [...scope.split("/"), text]) {
    const next = createHmac("sha256", key).update(part).digest();
    wipe(key);
    key = next;
  }
  return asBuffer(key).toString("hex");
}
