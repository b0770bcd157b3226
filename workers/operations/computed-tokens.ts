/** Operations on computed tokens: asking for one, taking it from the response, and storing a refresh token that was rotated. */
import { etagOfCurrent } from "../crypto/blob.js";
import { equal, wipe } from "../memory.js";
import type { Refusal, RequestOf, ResultOf, WriteOf, WriteResult } from "../protocol.js";
import { badRequest } from "../refusals.js";
import { exchangeId, exchangeRequest } from "../uses/exchange.js";
import { bindingKind } from "../uses/kinds.js";
import { readGrant, withRefreshToken } from "../uses/oauth.js";
import { keptCopy, putAccessToken } from "../uses/tokens.js";
import type { Context, Writing } from "./context.js";
import { openSecret, sealNext, versionContent } from "./entry.js";
import { type OpenedUse, openUse } from "./uses.js";
import { bytesOfValue, sealedText } from "./value.js";

export function startExchange(
  { keyring, computed, now }: Context,
  { path, blob, host, port }: RequestOf<"startExchange">,
): ResultOf<"startExchange"> {
  return keyring.withKey((key) => {
    const use = openUse(key, path, blob, { host, port }, now);
    if ("ok" in use) return use;
    const { binding, value } = use;
    const { exchange } = bindingKind(binding);
    if (exchange === null) return badRequest(`the binding of ${path} to ${host} exchanges nothing for a token`);
    const asked = exchange.ask({ path, binding, value, now });
    const etag = etagOfCurrent(blob);
    if (asked === "reauthorize") return { ok: true, request: null, etag };
    if ("ok" in asked) return asked;
    const refreshToken = exchange.refreshToken(value);
    const held = computed.current(path, etag, refreshToken);
    wipe(held.used);
    held.used = refreshToken && keptCopy(refreshToken);
    const endpoint = exchange.endpoint(binding);
    const request = exchangeRequest(endpoint, asked);
    return { ok: true, request, host: endpoint.host, port: endpoint.port, allowsPrivate: binding.private, etag };
  });
}

/** Holds the access token that was issued. Where the refresh token was rotated, makes the version that has the new one. */
export function takeToken(
  writing: Writing,
  { host, port, etag, status, body }: WriteOf<"takeToken">,
): WriteResult | Refusal {
  const { key, path, previous, now, computed } = writing;
  const use = openUse(key, path, previous, { host, port }, now);
  if ("ok" in use || previous === null) return "ok" in use ? use : { ok: true, blob: null };
  const { exchange } = bindingKind(use.binding);
  if (exchange === null) return { ok: true, blob: null };
  const refreshToken = exchange.refreshToken(use.value);
  const current = etagOfCurrent(previous);
  const held = computed.current(path, current, refreshToken);
  // Where the secret has changed, the response belongs to the one before. A lock has ended `used`, and leaves the secret as it is.
  if (current !== etag && !isEqual(held.used, refreshToken)) return { ok: true, blob: null };
  const issued = exchange.read({ status, body }, now);
  if (typeof issued === "string") return { ok: true, blob: null, problem: issued };
  putAccessToken(held, exchangeId(use.binding, exchange), issued.accessToken, issued.until, now);
  if (issued.refreshToken === null || isEqual(refreshToken, issued.refreshToken)) return { ok: true, blob: null };
  wipe(held.next);
  held.used ??= refreshToken && keptCopy(refreshToken);
  held.next = keptCopy(issued.refreshToken);
  return sealRefreshToken(writing, use, held.next);
}

/** Makes the version with the refresh token that was issued last, where the vault has not got it. */
export function storeRefreshToken(writing: Writing): WriteResult | Refusal {
  const { key, path, previous, now, computed } = writing;
  const current = openSecret(key, path, previous, now);
  if ("ok" in current || previous === null) return "ok" in current ? current : { ok: true, blob: null };
  const value = bytesOfValue(current.value);
  const { next } = computed.current(path, etagOfCurrent(previous), readGrant(value)?.refreshToken ?? null);
  return next === null ? { ok: true, blob: null } : sealRefreshToken(writing, { current, value }, next);
}

/** Ends what is held for a secret unless it is still in the state that the tokens belong to. */
export function reviewTokens(
  { keyring, computed, now }: Context,
  { path, blob }: RequestOf<"reviewTokens">,
): ResultOf<"reviewTokens"> {
  return keyring.withKey((key) => {
    const current = openSecret(key, path, blob, now);
    if ("ok" in current || blob === null) computed.forget(path);
    else computed.current(path, etagOfCurrent(blob), readGrant(bytesOfValue(current.value))?.refreshToken ?? null);
    return { ok: true };
  });
}

/** Makes the version of a secret that has another refresh token. */
export function sealRefreshToken(
  writing: Writing,
  { current, value }: Pick<OpenedUse, "current" | "value">,
  refreshToken: Uint8Array,
): WriteResult | Refusal {
  const text = withRefreshToken(value, refreshToken);
  return sealNext(writing, { ...versionContent(current), value: sealedText(text), valueBytes: text.length });
}

function isEqual(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a !== null && b !== null && equal(a, b);
}
