/** OAuth 2.0: requests to a token endpoint (RFC 6749) with a refresh token that stays in the key worker. */
import { type Member, readMembers, readObject } from "../json/json-reader.js";
import { JsonText, writeString } from "../json/json-string.js";
import { concatScratch, decodeText, scratch, utf8 } from "../memory.js";
import type { Binding } from "../protocol.js";
import { toBase64 } from "../transit/base64.js";
import { type Endpoint, urlEndpoint } from "./token-response.js";

/** The secret's value; a client without a secret is public. In scratch memory. */
type Grant = { readonly refreshToken: Uint8Array | null; readonly clientSecret: Uint8Array | null };

/** Reads the secret's value; null when it is no JSON object of texts. */
export function readGrant(value: Uint8Array): Grant | null {
  const found = readObject(value, ["refreshToken", "clientSecret"]);
  if (found === null) return null;
  const [refreshToken, clientSecret] = [found.get("refreshToken"), found.get("clientSecret")].map(nonEmpty);
  if (refreshToken === undefined || clientSecret === undefined) return null;
  return { refreshToken, clientSecret };
}

/** Returns null for a text that is missing or empty, undefined for a value that is no text. */
function nonEmpty(value: unknown): Uint8Array | null | undefined {
  if (value === undefined) return null;
  if (!(value instanceof JsonText) || !value.wellFormed) return undefined;
  return value.bytes.length === 0 ? null : value.bytes;
}

/** Returns the value with another refresh token, and all other members as they are, in scratch memory. */
export function withRefreshToken(value: Uint8Array, refreshToken: Uint8Array): Uint8Array {
  const others = (readMembers(value) ?? []).filter(({ name }) => decodeText(name) !== "refreshToken");
  const members = others.flatMap(({ name, value: text }: Member) => ['"', name, '":', text, ","]);
  return concatScratch("{", ...members, '"refreshToken":', writeString(refreshToken), "}");
}

export function oauthEndpoint({ oauth }: Binding): Endpoint {
  const url = new URL(oauth?.tokenUrl ?? "");
  return urlEndpoint(url, `${url.pathname}${url.search}`);
}

/** Parameters of a request, as bytes. */
type Parameters = readonly (readonly [name: string, value: Uint8Array])[];

/** Returns the parameters of a refresh (RFC 6749, section 6). */
export function refreshParameters({ oauth }: Binding, refreshToken: Uint8Array): Parameters {
  const scope = oauth?.scope;
  return [
    ["grant_type", utf8("refresh_token")],
    ["refresh_token", refreshToken],
    ...(scope === undefined ? [] : [["scope", utf8(scope)] as const]),
  ];
}

/** Grants of a login, and the members of a body that has one: an authorization code (RFC 7636), a device code (RFC 8628). */
const logins = [
  { type: "authorization_code", members: { code: "code", code_verifier: "codeVerifier", redirect_uri: "redirectUri" } },
  { type: "urn:ietf:params:oauth:grant-type:device_code", members: { device_code: "deviceCode" } },
];

/** Returns the parameters of a login's grant; null where the body has none. */
export function loginParameters(body: Uint8Array): Parameters | null {
  const found = readObject(body, ["code", "codeVerifier", "redirectUri", "deviceCode"]);
  for (const { type, members } of logins) {
    const texts = Object.entries(members).map(([name, member]) => [name, nonEmpty(found?.get(member))] as const);
    const given = texts.flatMap(([name, text]) => (text == null ? [] : [[name, text] as const]));
    if (given.length === texts.length) return [["grant_type", utf8(type)], ...given];
  }
  return null;
}

/**
 * Returns the header lines and the body of a request to the token endpoint, in scratch memory. A client with a secret
 * authenticates by Basic, with both of its parts form-encoded (RFC 6749, section 2.3.1); another one names itself in the body.
 */
export function tokenRequest({ oauth }: Binding, { clientSecret }: Grant, grant: Parameters) {
  const clientId = utf8(oauth?.clientId ?? "");
  const parameters = [...grant, ...(clientSecret === null ? [["client_id", clientId] as const] : [])];
  const pieces = parameters.flatMap(([name, value], i) => [`${i > 0 ? "&" : ""}${name}=`, formEncoded(value)]);
  const body = concatScratch(...pieces);
  const lines = ["Accept: application/json\r\nContent-Type: application/x-www-form-urlencoded\r\n"];
  if (clientSecret === null) return { lines, body };
  const pair = toBase64(concatScratch(formEncoded(clientId), ":", formEncoded(clientSecret)));
  return { lines: [...lines, "Authorization: Basic ", pair, "\r\n"], body };
}

const hex = utf8("0123456789ABCDEF");
const [space, plus, percent] = [0x20, 0x2b, 0x25];

/** Encodes as application/x-www-form-urlencoded, in scratch memory. */
function formEncoded(bytes: Uint8Array): Uint8Array {
  const text = scratch(3 * bytes.length);
  let at = 0;
  for (const byte of bytes) {
    if (byte === space) text[at++] = plus;
    else if (isUnreserved(byte)) text[at++] = byte;
    else {
      text[at++] = percent;
      text[at++] = hex[byte >> 4] ?? 0;
      text[at++] = hex[byte & 15] ?? 0;
    }
  }
  return text.subarray(0, at);
}

function isUnreserved(byte: number): boolean {
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
  return isLetter || (byte >= 0x30 && byte <= 0x39) || [0x2a, 0x2d, 0x2e, 0x5f].includes(byte);
}
