/** Access tokens that were computed from secrets, and refresh tokens that are not stored yet: bytes that are wiped when they end. */
import { concat, equal, mapped, wipe } from "../memory.js";
import type { Bytes } from "../protocol.js";

/** `until`: when its use ends, in milliseconds since 1970. */
type AccessToken = { readonly bytes: Bytes; readonly until: number };

/** Tokens of one secret, with the etags that they belong to. */
type Held = {
  /** Etag of the blob to which the tokens belong. */
  etag: string;
  /** Etag of the blob before a refresh token was stored: a request may still have read that one. */
  before: string | null;
  /** The refresh token of the last exchange. */
  used: Bytes | null;
  /** The refresh token that the provider has issued for it, until the vault has it. */
  next: Bytes | null;
  /** Access tokens by the exchange that issues them. */
  readonly access: Map<string, AccessToken>;
};

export class ComputedTokens {
  readonly #held = new Map<string, Held>();

  /**
   * Returns what is held for a secret in this state. A put, or a change of its bindings, has ended it; where that was the store of a
   * refresh token, it stays.
   * @param refreshToken the one in the secret's value
   */
  current(path: string, etag: string, refreshToken: Uint8Array | null): Held {
    const held = this.#held.get(path);
    if (held !== undefined && (held.etag === etag || held.before === etag)) return held;
    if (held !== undefined && holds(held.next, refreshToken)) {
      wipe(held.used);
      return Object.assign(held, { etag, before: held.etag, used: held.next, next: null });
    }
    if (held !== undefined && holds(held.used, refreshToken)) {
      if (held.next === null) endAccess(held);
      return Object.assign(held, { etag });
    }
    this.forget(path);
    const fresh: Held = { etag, before: null, used: null, next: null, access: new Map() };
    this.#held.set(path, fresh);
    return fresh;
  }

  forget(path: string): void {
    const held = this.#held.get(path);
    if (held === undefined) return;
    endAccess(held);
    wipe(held.used, held.next);
    this.#held.delete(path);
  }

  clear(): void {
    for (const path of this.#held.keys()) this.forget(path);
  }
}

/** Copies bytes, which are in scratch memory or are wiped by their owner, into memory that is gone with the thread. */
export function keptCopy(bytes: Uint8Array): Bytes {
  return mapped(concat([bytes]));
}

/** A longer delay would be none. */
const longestDelayMs = 2 ** 31 - 1;

/** Holds a token until its use ends, also when nothing asks for it then. `now`: milliseconds since 1970. */
export function putAccessToken(
  { access }: Held,
  exchange: string,
  token: Uint8Array,
  until: number,
  now: number,
): void {
  wipe(access.get(exchange)?.bytes);
  const put = { bytes: keptCopy(token), until };
  access.set(exchange, put);
  const end = () => {
    if (access.get(exchange) === put) endToken(access, exchange);
  };
  setTimeout(end, Math.min(until - now, longestDelayMs)).unref();
}

/** Returns the token for an exchange; null when there is none, or it ends. */
export function accessToken({ access }: Held, exchange: string, now: number): Uint8Array | null {
  const token = access.get(exchange);
  if (token === undefined) return null;
  if (now < token.until) return token.bytes;
  endToken(access, exchange);
  return null;
}

function endToken(access: Held["access"], exchange: string): void {
  wipe(access.get(exchange)?.bytes);
  access.delete(exchange);
}

function endAccess({ access }: Held): void {
  for (const exchange of access.keys()) endToken(access, exchange);
}

function holds(kept: Bytes | null, refreshToken: Uint8Array | null): boolean {
  return kept !== null && refreshToken !== null && equal(kept, refreshToken);
}
