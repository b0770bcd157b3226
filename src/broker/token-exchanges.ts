/**
 * Exchanges of secrets for access tokens: one at a time for each secret, however many requests wait for it. Requests and responses
 * pass as bytes between the key worker, which makes and reads them, and the broker's thread, which sends them.
 */
import type { RequestToRender } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { Semaphore } from "../locks.js";
import type { VaultSecrets } from "../vault/secrets.js";
import type { Bytes, Exchanged, ExchangeRequest } from "./messages.js";

/** Where the token is used: it names the binding. */
type Place = { readonly path: string; readonly host: string; readonly port: number };

type SentExchange = ExchangeRequest & { readonly etag: string };

export type TokenExchangeDependencies = {
  readonly secrets: VaultSecrets;
  /** Sends a request to an endpoint, and returns its response. The bytes are moved. */
  readonly send: (request: ExchangeRequest) => Promise<Exchanged>;
};

/** How often a request waits, for the store of a refresh token and for exchanges: the secret may change after each of them. */
const mostWaits = 4;

/** Exchanges that hold a connection to a database of several servers. */
const mostAlone = 2;

/** The token endpoint has issued no token. */
export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  readonly code: "exchange" | "reauthorize";

  constructor(code: "exchange" | "reauthorize", message: string) {
    super(message);
    this.code = code;
  }
}

export class TokenExchanges {
  readonly #deps: TokenExchangeDependencies;
  readonly #running = new Map<string, { readonly host: string; readonly work: Promise<void> }>();
  /** Secrets for which a person has to log in again, with the etags of their blobs. */
  readonly #refused = new Map<string, string>();
  /** Secrets that the key worker may hold tokens of. */
  readonly #known = new Set<string>();
  readonly #alone = new Semaphore(mostAlone);

  constructor(deps: TokenExchangeDependencies) {
    this.#deps = deps;
    deps.secrets.watch((paths) => {
      for (const path of paths) this.#changed(path);
    });
  }

  /** Paths of the secrets whose refresh token the provider does not take. */
  get reauthorize(): readonly string[] {
    return [...this.#refused.keys()].sort();
  }

  /**
   * Returns the head of a request, once there is a token for it.
   * @param permit throws where the request is no longer permitted: an exchange may take seconds
   * @throws VaultError; ExchangeError
   */
  async render(path: string, request: RequestToRender, permit: () => void): Promise<Bytes> {
    const { secrets } = this.#deps;
    for (let waits = 0; waits < mostWaits; waits++) {
      permit();
      const rendered = await secrets.render(path, request);
      if (rendered.head !== null) return rendered.head;
      const place = { path, host: request.host, port: request.port };
      if (rendered.lacks === "store") await this.#join(place, () => secrets.storeRefreshToken(path).catch(notStored));
      else await this.#join(place, () => this.#exchange(place, rendered.etag));
    }
    throw new ExchangeError("exchange", `the token of ${path} ends before it is used: try again`);
  }

  /** Waits for the work that runs for the secret, or begins it. A failure for another host says nothing about this one. */
  #join({ path, host }: Place, begin: () => Promise<void>): Promise<void> {
    const running = this.#running.get(path);
    if (running !== undefined) return running.host === host ? running.work : running.work.catch(() => {});
    const work = begin().finally(() => this.#running.delete(path));
    this.#running.set(path, { host, work });
    return work;
  }

  async #exchange(place: Place, etag: string): Promise<void> {
    const { path } = place;
    if (this.#refused.get(path) === etag) throw reauthorize(path);
    const { secrets } = this.#deps;
    if (!secrets.space.isShared) return this.#exchangeOnce(place);
    await this.#alone.run(() => secrets.alone(path, () => this.#exchangeOnce(place)));
  }

  async #exchangeOnce(place: Place): Promise<void> {
    const { path } = place;
    this.#known.add(path);
    const started = await this.#deps.secrets.startExchange(place);
    const problem = started.request === null ? "reauthorize" : await this.#take(place, started);
    if (problem === "reauthorize") {
      if ((await this.#deps.secrets.etag(path)) === started.etag) this.#refused.set(path, started.etag);
      throw reauthorize(path);
    }
  }

  /** Sends a request for a token, and has the key worker take the token from the response. @throws VaultError; ExchangeError */
  async #take(place: Place, { etag, request, host, port, allowsPrivate }: SentExchange) {
    const endpoint = `the token endpoint at ${host}, port ${port},`;
    const exchanged = await this.#deps.send({ host, port, allowsPrivate, request });
    if (!exchanged.ok) throw new ExchangeError("exchange", `${endpoint} ${exchanged.problem}`);
    const { status, body } = exchanged;
    const problem = await this.#deps.secrets.takeToken(place, { etag, status, body }).catch(notStored);
    if (problem === "exchange") throw new ExchangeError("exchange", `${endpoint} issued no token for ${place.path}`);
    return problem;
  }

  #changed(path: string): void {
    this.#refused.delete(path);
    if (this.#known.has(path)) this.#deps.secrets.reviewTokens(path).catch(() => {}); // a lock has ended them
  }
}

function reauthorize(path: string): ExchangeError {
  return new ExchangeError(
    "reauthorize",
    `the refresh token of ${path} is missing or not valid: store one with strongroom put ${path}`,
  );
}

/** @throws VaultError UNAVAILABLE for what storage refuses */
function notStored(error: unknown): never {
  if (!(error instanceof VaultError) || ["VAULT_LOCKED", "NOT_FOUND", "FORBIDDEN"].includes(error.code)) throw error;
  const problem = "the new refresh token cannot be stored, and is kept in memory";
  throw new VaultError("UNAVAILABLE", `${problem}: ${error.message}`, { cause: error });
}
