/**
 * Exchanges of secrets for access tokens: one at a time for each secret, however many requests wait for it. Requests and responses
 * pass as bytes between the key worker, which makes and reads them, and the broker's thread, which sends them.
 */
import type { LoginProblem, RequestToRender, SharedBytes } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { Semaphore } from "../locks.js";
import type { Permit } from "../vault/conditions.js";
import type { UsePlace, VaultSecrets } from "../vault/secrets.js";
import type { Bytes, Exchanged, ExchangeRequest } from "./messages.js";

type SentExchange = ExchangeRequest & { readonly etag: string };

/** `kind`: the write that takes the tokens from a response; `permit`: throws where it may no longer be made. */
type Taking = { readonly kind: "takeToken" | "takeLogin"; readonly permit?: Permit };

const noLogin = {
  reauthorize: "the code has expired, or was used before",
  denied: "the login was refused",
  "not-lasting": "no refresh token was issued, which some services do only for a scope such as offline_access",
  changed: "the secret has changed since the login began",
} as const;

type TokenExchangeDependencies = {
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
  #join({ path, host }: UsePlace, begin: () => Promise<void>): Promise<void> {
    const running = this.#running.get(path);
    if (running !== undefined) return running.host === host ? running.work : running.work.catch(() => {});
    const work = begin().finally(() => this.#running.delete(path));
    this.#running.set(path, { host, work });
    return work;
  }

  async #exchange(place: UsePlace, etag: string): Promise<void> {
    const { path } = place;
    if (this.#refused.get(path) === etag) throw reauthorize(path);
    const { secrets } = this.#deps;
    if (!secrets.space.isShared) return this.#exchangeOnce(place);
    await this.#alone.run(() => secrets.alone(path, () => this.#exchangeOnce(place)));
  }

  async #exchangeOnce(place: UsePlace): Promise<void> {
    const { path } = place;
    this.#known.add(path);
    const started = await this.#deps.secrets.startExchange(place);
    const problem = started.request === null ? "reauthorize" : await this.#take(place, started);
    if (problem === "reauthorize") {
      if ((await this.#deps.secrets.etag(path)) === started.etag) this.#refused.set(path, started.etag);
      throw reauthorize(path);
    }
  }

  /**
   * Exchanges the code of a login for the first refresh token, and stores it.
   * @param body has a code of a login, or of a device, and is wiped
   * @param permit throws where the caller may no longer store it
   * @throws VaultError UNAVAILABLE where the endpoint issues none; BAD_REQUEST where it never will for this code
   */
  async logIn(place: UsePlace, body: SharedBytes, permit: Permit): Promise<"stored" | "pending" | "slow-down"> {
    try {
      const started = await this.#deps.secrets.startLogin(place, body);
      const problem = await this.#take(place, started, { kind: "takeLogin", permit });
      if (problem === null) return "stored";
      if (problem === "pending" || problem === "slow-down") return problem;
      throw new VaultError("BAD_REQUEST", `${noLogin[problem]}: log in again`);
    } catch (error) {
      if (error instanceof ExchangeError) throw new VaultError("UNAVAILABLE", error.message);
      throw error;
    }
  }

  /** Sends a request for a token, and has the key worker take the token from the response. @throws VaultError; ExchangeError */
  async #take(
    place: UsePlace,
    { etag, request, host, port, allowsPrivate }: SentExchange,
    { kind, permit }: Taking = { kind: "takeToken" },
  ): Promise<Exclude<LoginProblem, "exchange"> | null> {
    const endpoint = `the token endpoint at ${host}, port ${port},`;
    const exchanged = await this.#deps.send({ host, port, allowsPrivate, request });
    if (!exchanged.ok) throw new ExchangeError("exchange", `${endpoint} ${exchanged.problem}`);
    const { status, body } = exchanged;
    const problem = await this.#deps.secrets.takeResponse(kind, place, { etag, status, body }, permit).catch(notStored);
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
    `the refresh token of ${path} is missing or not valid: get one with  strongroom use login ${path}`,
  );
}

/** @throws VaultError UNAVAILABLE for what storage refuses */
function notStored(error: unknown): never {
  if (!(error instanceof VaultError) || ["VAULT_LOCKED", "NOT_FOUND", "FORBIDDEN"].includes(error.code)) throw error;
  const problem = "the new refresh token cannot be stored, and is kept in memory";
  throw new VaultError("UNAVAILABLE", `${problem}: ${error.message}`, { cause: error });
}
