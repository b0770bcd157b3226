/** Responses of endpoints that issue tokens. Their words are never repeated. */
import { readObject } from "../json/json-reader.js";
import { JsonText } from "../json/json-string.js";
import type { LoginProblem, TokenProblem } from "../protocol.js";
import { visibleText } from "./head.js";

/** Where a token is issued. */
export type Endpoint = { readonly host: string; readonly port: number; readonly path: string };

/** Returns the endpoint at the host and port of an https URL. */
export function urlEndpoint({ hostname, port }: URL, path: string): Endpoint {
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: port === "" ? 443 : Number(port), path };
}

/** Tokens that were issued, in scratch memory. `until`: when the use of the access token ends, in milliseconds since 1970. */
export type Issued = {
  readonly accessToken: Uint8Array;
  readonly refreshToken: Uint8Array | null;
  readonly until: number;
};

export type TokenResponse = { readonly status: number; readonly body: Uint8Array };

const minute = 60_000;

/** Returns when the use of a token ends: 5 minutes before its end, or after half its life where that is under 10 minutes. */
function endOfUse(now: number, end: number): number {
  return end - now < 10 * minute ? now + (end - now) / 2 : end - 5 * minute;
}

const usualLife = 60 * minute;

/** Reads a response of OAuth (RFC 6749, sections 5.1 and 5.2). */
export function readOAuthResponse({ status, body }: TokenResponse, now: number): Issued | TokenProblem {
  const found = readObject(body, ["access_token", "token_type", "expires_in", "refresh_token", "error"]);
  if (found === null) return "exchange";
  if (status >= 400) return shortText(found.get("error")) === "invalid_grant" ? "reauthorize" : "exchange";
  const accessToken = credential(found.get("access_token"));
  const refreshToken = found.has("refresh_token") ? credential(found.get("refresh_token")) : null;
  if (status !== 200 || accessToken === null || shortText(found.get("token_type")).toLowerCase() !== "bearer")
    return "exchange";
  if (found.has("refresh_token") && refreshToken === null) return "exchange";
  const seconds = found.get("expires_in") ?? usualLife / 1000;
  if (typeof seconds !== "number" || seconds < 1) return "exchange";
  return { accessToken, refreshToken, until: endOfUse(now, now + seconds * 1000) };
}

const loginErrors = new Map<string, LoginProblem>([
  ["authorization_pending", "pending"],
  ["slow_down", "slow-down"],
  ["access_denied", "denied"],
  ["expired_token", "reauthorize"],
]);

/** Reads the response to the grant of a login, also an error (RFC 8628, section 3.5), which GitHub sends with status 200. */
export function readLoginResponse(response: TokenResponse, now: number): Issued | LoginProblem {
  const error = shortText(readObject(response.body, ["error"])?.get("error"));
  return loginErrors.get(error) ?? readOAuthResponse(response, now);
}

/** Reads GitHub's response to a request for a token of an installation. */
export function readGithubResponse({ status, body }: TokenResponse, now: number): Issued | TokenProblem {
  const found = readObject(body, ["token", "expires_at"]);
  const accessToken = credential(found?.get("token"));
  const end = Date.parse(shortText(found?.get("expires_at")));
  if (status !== 201 || accessToken === null || Number.isNaN(end) || end <= now) return "exchange";
  return { accessToken, refreshToken: null, until: endOfUse(now, end) };
}

/** Returns a short text that is not secret; empty for any other value. */
function shortText(value: unknown): string {
  return value instanceof JsonText && value.bytes.length <= 64 ? value.toString() : "";
}

const longestCredential = 8 * 1024;

function credential(value: unknown): Uint8Array | null {
  const text = visibleText(value);
  return text === null || text.length > longestCredential ? null : text;
}
