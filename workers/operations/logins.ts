/** Operations on logins: the first refresh token is issued for the code of a login, and goes into the vault. */
import { etagOfCurrent } from "../crypto/blob.js";
import type { Refusal, RequestOf, ResultOf, WriteOf, WriteResult } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { exchangeRequest, noGrant } from "../uses/exchange.js";
import { loginParameters, oauthEndpoint, readGrant, tokenRequest } from "../uses/oauth.js";
import { readLoginResponse } from "../uses/token-response.js";
import { sealRefreshToken } from "./computed-tokens.js";
import type { Context, Writing } from "./context.js";
import { openUse } from "./uses.js";

export function startLogin(
  { keyring, now }: Context,
  { path, blob, host, port, body }: RequestOf<"startLogin">,
): ResultOf<"startLogin"> {
  return keyring.withKey((key) => {
    const use = openUse(key, path, blob, { host, port }, now);
    if ("ok" in use) return use;
    const { binding, value } = use;
    if (binding.oauth === undefined) return badRequest(`the binding of ${path} to ${host} has no token endpoint`);
    const [grant, parameters] = [readGrant(value), loginParameters(body)];
    if (grant === null) return noGrant(path);
    if (parameters === null) return badRequest("the body must have code, codeVerifier and redirectUri, or deviceCode");
    const endpoint = oauthEndpoint(binding);
    const request = exchangeRequest(endpoint, tokenRequest(binding, grant, parameters));
    const { host: to, port: at } = endpoint;
    return { ok: true, request, host: to, port: at, allowsPrivate: binding.private, etag: etagOfCurrent(blob) };
  });
}

/** Makes the version with the refresh token that was issued. The access token is not used. */
export function takeLogin(
  writing: Writing,
  { host, port, etag, status, body }: WriteOf<"takeLogin">,
): WriteResult | Refusal {
  const { key, path, previous, now } = writing;
  const use = openUse(key, path, previous, { host, port }, now);
  if ("ok" in use) return use;
  if (previous === null || etagOfCurrent(previous) !== etag) return { ok: true, blob: null, problem: "changed" };
  const issued = readLoginResponse({ status, body }, now);
  if (typeof issued === "string") return { ok: true, blob: null, problem: issued };
  if (issued.refreshToken === null) return { ok: true, blob: null, problem: "not-lasting" };
  return sealRefreshToken(writing, use, issued.refreshToken);
}
