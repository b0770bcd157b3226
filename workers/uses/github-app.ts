/** Apps of GitHub: a JWT that the app's private key signs is exchanged for a token of an installation. */
import { createSign } from "node:crypto";
import { asBuffer, concatScratch, scrubFreed, takeOver, utf8, wipe } from "../memory.js";
import type { Binding } from "../protocol.js";
import { fromGoBase64, toBase64 } from "../transit/base64.js";
import { authority } from "./head.js";
import { type Endpoint, urlEndpoint } from "./token-response.js";

const [secondsBefore, secondsAfter] = [60, 480];

/** `github.com` has its API at another host, and other servers at their own. */
export function githubEndpoint({ githubApp, host, port }: Binding): Endpoint {
  const { api, installation } = githubApp ?? {};
  const own = host === "github.com" ? "https://api.github.com" : `https://${authority(host, port)}`;
  const url = new URL(api ?? own);
  return urlEndpoint(url, `${url.pathname.replace(/\/$/, "")}/app/installations/${installation ?? ""}/access_tokens`);
}

/** Returns the request's header lines that prove the app, in scratch memory; null when the value is no RSA key. */
export function githubHeaders(
  { githubApp }: Binding,
  value: Uint8Array,
  now: number,
): readonly (Uint8Array | string)[] | null {
  const seconds = Math.floor(now / 1000);
  const claims = { iat: seconds - secondsBefore, exp: seconds + secondsAfter, iss: githubApp?.appId };
  const content = concatScratch(encoded({ alg: "RS256", typ: "JWT" }), ".", encoded(claims));
  const signature = sign(content, value);
  if (signature === null) return null;
  const accept = "Accept: application/vnd.github+json\r\nX-GitHub-Api-Version: 2022-11-28\r\n";
  return ["Authorization: Bearer ", content, ".", base64url(signature), `\r\n${accept}`];
}

function encoded(part: object): Uint8Array {
  return base64url(utf8(JSON.stringify(part)));
}

/** The key is parsed for this signature alone: OpenSSL clears its own copy right after it. */
function sign(content: Uint8Array, value: Uint8Array): Uint8Array | null {
  const key = readPem(value);
  if (key === null) return null;
  try {
    const signer = createSign("RSA-SHA256").update(content);
    const signature = signer.sign({ key: asBuffer(key.der), format: "der", type: key.type });
    return concatScratch(takeOver(signature));
  } catch {
    return null;
  } finally {
    scrubFreed(key.der.length);
    wipe(key.der);
  }
}

const forms = [
  { type: "pkcs1", name: "RSA PRIVATE KEY" },
  { type: "pkcs8", name: "PRIVATE KEY" },
] as const;

/** Decodes a private key in PEM (RFC 7468) into scratch memory; OpenSSL's decoder would leave copies. */
function readPem(value: Uint8Array) {
  const text = asBuffer(value);
  for (const { type, name } of forms) {
    const [begin, end] = [`-----BEGIN ${name}-----`, `-----END ${name}-----`];
    const start = text.indexOf(begin);
    const stop = text.indexOf(end, start);
    if (start < 0 || stop < 0) continue;
    const der = fromGoBase64(value.subarray(start + begin.length, stop));
    if (der !== null) return { type, der };
  }
  return null;
}

const [plus, slash, equals, dash, underscore] = [0x2b, 0x2f, 0x3d, 0x2d, 0x5f];

/** Encodes in base64url without padding, in scratch memory. */
function base64url(bytes: Uint8Array): Uint8Array {
  const text = toBase64(bytes);
  let end = text.length;
  while (end > 0 && text[end - 1] === equals) end--;
  for (let i = 0; i < end; i++) {
    if (text[i] === plus) text[i] = dash;
    if (text[i] === slash) text[i] = underscore;
  }
  return text.subarray(0, end);
}
