/** Client methods for tokens. All but `self` need the root token. */
import type { NewToken, Revoked, Token, TokenList, TokenRequest } from "../api-types.js";
import { StrongroomError } from "../client-error.js";
import type { CallOptions } from "../request.js";
import type { Requester } from "../requester.js";

export type CreateTokenOptions = CallOptions & {
  /** Default: list and get. */
  readonly can?: TokenRequest["can"] | undefined;
  /** Secrets, or with a slash at the end subtrees; default: all. */
  readonly paths?: TokenRequest["paths"] | undefined;
  /** 0: without end; default: 90 days. */
  readonly ttlSeconds?: number | undefined;
};

export class Tokens {
  readonly #requester: Requester;

  /** Use `client.tokens`. */
  constructor(requester: Requester) {
    this.#requester = requester;
  }

  /**
   * Creates a client token; `token` is its text, which is never shown again. Default: it can list and get, everywhere, for
   * 90 days. `paths` that end in a slash are subtrees.
   * @throws StrongroomError ALREADY_EXISTS for a name that is taken; VAULT_LOCKED; FORBIDDEN; INTEGRITY; INTERNAL;
   * BAD_REQUEST for an invalid name, scope, path or time
   * @example
   * ```ts
   * const { token } = await client.tokens.create("ci", { paths: ["app/"], ttlSeconds: 30 * 86_400 });
   * ```
   */
  create(name: string, { can, paths, ttlSeconds, ...options }: CreateTokenOptions = {}): Promise<NewToken> {
    return this.#requester.send("POST", "/v1/tokens", options, { fields: { name, can, paths, ttlSeconds } });
  }

  /**
   * Lists the client tokens, without their texts; those that have expired, for 30 days.
   * @throws StrongroomError FORBIDDEN
   * @example
   * ```ts
   * const { tokens } = await client.tokens.list();
   * ```
   */
  list(options: CallOptions = {}): Promise<TokenList> {
    return this.#requester.send("GET", "/v1/tokens", options);
  }

  /**
   * Returns the token that this client uses; the root token's name is `root`.
   * @throws StrongroomError as every method
   * @example
   * ```ts
   * const { name, can, paths, expiresAt } = await client.tokens.self();
   * ```
   */
  self(options: CallOptions = {}): Promise<Token> {
    return this.#requester.send("GET", "/v1/tokens/self", options);
  }

  /**
   * Gives a token a new text, valid for as long as the first one was to be; the old one stays valid for `overlapSeconds`
   * (default 0). `root` is the root token: the server writes its file, too.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; FORBIDDEN; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { token } = await client.tokens.rotate("ci", { overlapSeconds: 3600 });
   * ```
   */
  async rotate(
    name: string,
    { overlapSeconds, ...options }: CallOptions & { readonly overlapSeconds?: number | undefined } = {},
  ): Promise<NewToken> {
    return this.#requester.send("POST", targetOf(name), options, { fields: { overlapSeconds } });
  }

  /**
   * Revokes a client token, also while the vault is locked. After UNAVAILABLE, it stays dead until the server restarts.
   * @throws StrongroomError NOT_FOUND; FORBIDDEN
   * @example
   * ```ts
   * await client.tokens.revoke("ci");
   * ```
   */
  async revoke(name: string, options: CallOptions = {}): Promise<Revoked> {
    return this.#requester.send("DELETE", targetOf(name), options);
  }
}

function targetOf(name: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name)) return `/v1/tokens/${name}`;
  throw new StrongroomError("BAD_REQUEST", "no token has this name: use 1 to 64 of a-z, 0-9, dot, dash and underscore");
}
