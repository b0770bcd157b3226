/** Exchanges of a secret for an access token: what each kind of binding sends to which endpoint, and what comes back. */
import { concat } from "../memory.js";
import type { Binding, Bytes, Refusal, ResultOf, TokenProblem } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { githubEndpoint, githubHeaders } from "./github-app.js";
import { authority, type HeadRequest, headWithCredential } from "./head.js";
import { oauthEndpoint, readGrant, refreshParameters, tokenRequest } from "./oauth.js";
import {
  type Endpoint,
  type Issued,
  readGithubResponse,
  readOAuthResponse,
  type TokenResponse,
} from "./token-response.js";
import { accessToken } from "./tokens.js";

/** Inputs of a request for a token. */
type Asking = Pick<HeadRequest, "path" | "binding" | "value" | "now">;

type Pieces = { readonly lines: readonly (Uint8Array | string)[]; readonly body: Uint8Array | null };

export type Exchange = {
  readonly endpoint: (binding: Binding) => Endpoint;
  readonly ask: (asking: Asking) => Pieces | Refusal | "reauthorize";
  readonly read: (response: TokenResponse, now: number) => Issued | TokenProblem;
  /** The refresh token in a secret's value; null where it has none. */
  readonly refreshToken: (value: Uint8Array) => Uint8Array | null;
};

export const githubApp: Exchange = {
  endpoint: githubEndpoint,
  ask({ path, binding, value, now }) {
    const lines = githubHeaders(binding, value, now);
    if (lines === null) return badRequest(`the value of ${path} is not an RSA private key in PEM (PKCS #1 or #8)`);
    return { lines, body: null };
  },
  read: readGithubResponse,
  refreshToken: () => null,
};

export const oauth: Exchange = {
  endpoint: oauthEndpoint,
  ask({ path, binding, value }) {
    const grant = readGrant(value);
    if (grant === null) return noGrant(path);
    if (grant.refreshToken === null) return "reauthorize";
    return tokenRequest(binding, grant, refreshParameters(binding, grant.refreshToken));
  },
  read: readOAuthResponse,
  refreshToken: (value) => readGrant(value)?.refreshToken ?? null,
};

export function noGrant(path: string): Refusal {
  return badRequest(`the value of ${path} is not a JSON object with refreshToken`);
}

/** Names an exchange: bindings of one secret that share it share its token. */
export function exchangeId(binding: Binding, { endpoint }: Exchange): string {
  return JSON.stringify([endpoint(binding), binding.githubApp, binding.oauth]);
}

/** The whole request for a token. It holds credentials, as does the response. */
export function exchangeRequest({ host, port, path }: Endpoint, { lines, body }: Pieces): Bytes {
  const own = `User-Agent: strongroom\r\nConnection: close\r\nContent-Length: ${body?.length ?? 0}\r\n`;
  const start = `POST ${path} HTTP/1.1\r\nHost: ${authority(host, port)}\r\n${own}`;
  return concat([start, ...lines, "\r\n", ...(body === null ? [] : [body])]);
}

/** Returns the head with the secret's access token, or what has to be done before there is one. */
export function headWithToken(use: HeadRequest, exchange: Exchange): ResultOf<"render"> | Refusal {
  const { path, binding, value, now, etag, tokens } = use;
  const held = tokens.current(path, etag, exchange.refreshToken(value));
  if (held.next !== null) return { ok: true, head: null, lacks: "store", etag };
  const token = accessToken(held, exchangeId(binding, exchange), now);
  if (token === null) return { ok: true, head: null, lacks: "token", etag };
  return headWithCredential(use, token);
}
