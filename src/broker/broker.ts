/**
 * Broker: programs use credentials that they never see. Its thread speaks to programs and upstreams; here it is decided
 * whose token that is and which secret a request may use, and the key worker makes the request's head.
 */
import { rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { hashesBody, sentTarget } from "../../workers/binding-members.js";
import { JudgedRequest, overrideIn, tooLong } from "../../workers/use-rules.js";
import type { Caller, ClientCaller, Credentials } from "../access/credentials.js";
import type { Lockout } from "../access/lockout.js";
import { requireScope } from "../access/scopes.js";
import type { ClientTokens } from "../access/tokens.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { Clock } from "../clock.js";
import { StartError, systemCode, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { brokerThreadFile } from "../program-files.js";
import type { SecretUse } from "../vault/uses.js";
import type { Vault } from "../vault/vault.js";
import { type ApprovalOutcome, Approvals } from "./approvals.js";
import type {
  Answer,
  Ask,
  BrokerLimits,
  BrokerRefusal,
  BrokerStart,
  Exchanged,
  ExchangeRequest,
  FromBroker,
  QuestionKind,
  Session,
  ToBroker,
  Use,
} from "./messages.js";
import { findProgram } from "./peer-program.js";
import { ExchangeError, TokenExchanges } from "./token-exchanges.js";

export type BrokerDependencies = {
  readonly vault: Vault;
  readonly credentials: Credentials;
  readonly tokens: ClientTokens;
  readonly tokenLockout: Lockout;
  readonly audit: AuditLog | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: BrokerLimits;
};

/** Hosts that a session may reach besides those of its bindings. */
export type SessionRules = { readonly allowed: readonly string[]; readonly egress: "any" | "listed" };

/** Addresses of the broker: a port of loopback, and perhaps the path of a Unix socket. */
type BrokerPlace = Pick<BrokerStart, "port" | "socket">;

/** Access that a program needs to use the broker. */
export type BrokerAccess = {
  readonly port: number;
  /** Certificates of the session's authority, PEM. */
  readonly certificate: string;
  readonly uses: readonly Pick<SecretUse, "host" | "port" | "name" | "header">[];
};

export const defaultBrokerLimits = { headMs: 30_000, idleMs: 600_000, exchangeMs: 10_000 } as const;

const host = "127.0.0.1";
const onlyBound: SessionRules = { allowed: [], egress: "listed" };

/** Most hosts of a session: its certificate authority names each of them twice. */
const maxHosts = 1_000;

/** Sessions that are kept before ended ones are looked for. */
const fewestCallers = 256;

/** Before a new thread is started, in milliseconds; doubled for each that did not listen. */
const firstRestartMs = 1_000;
const lastRestartMs = 60_000;

/** `code`: why there was no token for the request. */
type PermittedUse = { readonly caller: ClientCaller; readonly use: Use; readonly path: string; code?: string };

export class Broker {
  readonly approvals: Approvals;
  readonly tokenExchanges: TokenExchanges;
  readonly #deps: BrokerDependencies;
  readonly #upstreamCa: string | null;
  #port: number;
  readonly #socket: string | null;
  #thread: Worker | null = null;
  readonly #callers = new Map<string, ClientCaller>();
  readonly #rules = new Map<string, SessionRules>();
  readonly #permits = new Map<number, PermittedUse>();
  readonly #certificates = new Map<number, (certificate: string | null) => void>();
  readonly #exchanges = new Map<number, (exchanged: Exchanged) => void>();
  #mostCallers = fewestCallers;
  #count = 0;
  #restartMs = firstRestartMs;
  #isStopped = false;

  private constructor({ port, socket }: BrokerPlace, upstreamCa: string | null, deps: BrokerDependencies) {
    this.approvals = new Approvals(deps.clock);
    this.tokenExchanges = new TokenExchanges({
      secrets: deps.vault.secrets,
      send: (exchange) => this.#exchange(exchange),
    });
    this.#port = port;
    this.#socket = socket;
    this.#upstreamCa = upstreamCa;
    this.#deps = deps;
  }

  /**
   * @param upstreamCa file of PEM certificates that are trusted beside the public roots
   * @throws StartError
   */
  static async start(place: BrokerPlace, upstreamCa: string | null, deps: BrokerDependencies): Promise<Broker> {
    const broker = new Broker(place, upstreamCa === null ? null : await readCertificates(upstreamCa), deps);
    try {
      await broker.#startThread();
    } catch (error) {
      await broker.stop();
      throw error;
    }
    deps.tokens.onRevoked((name) => broker.#endSession(name));
    return broker;
  }

  get port(): number {
    return this.#port;
  }

  /** Sets what a token may reach without a credential, until the server stops. */
  setRules(token: string, rules: SessionRules): void {
    this.#rules.set(token, rules);
  }

  /**
   * @param until when the session that begins here ends, in milliseconds since 1970
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE; BAD_REQUEST for too many hosts
   */
  async callerAccess(caller: Caller, until = 0): Promise<BrokerAccess> {
    const id = sessionId(caller);
    const uses = await this.#listUses(caller);
    const certificate = await this.#requestCertificate(id, mustBeFewHosts(uses), until);
    const shown = uses.map((use) => ({ host: use.host, port: use.port, name: use.name, header: use.header }));
    return { port: this.#port, certificate, uses: shown };
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#thread?.terminate();
    this.#removeSocket();
  }

  /** A thread that ended may have left it. */
  #removeSocket(): void {
    if (this.#socket !== null) rmSync(this.#socket, { force: true });
  }

  /** Ends the sessions whose tokens have expired; the next time when there are twice as many. */
  #forgetEnded(): void {
    for (const [id, caller] of this.#callers) {
      try {
        this.#deps.credentials.requireValid(caller);
      } catch {
        this.#endSession(id);
      }
    }
    this.#mostCallers = Math.max(fewestCallers, 2 * this.#callers.size);
  }

  /** Ends what the token has at the broker: it was revoked. */
  #endSession(token: string): void {
    this.#send({ kind: "end", session: token });
    this.approvals.end(token);
    this.#callers.delete(token);
    this.#rules.delete(token);
  }

  /** @throws StartError */
  #startThread(): Promise<void> {
    this.#removeSocket();
    const { limits } = this.#deps;
    const start: BrokerStart = { host, port: this.#port, socket: this.#socket, upstreamCa: this.#upstreamCa, limits };
    const thread = new Worker(brokerThreadFile, { workerData: start, env: {}, execArgv: [], name: "broker" });
    this.#thread = thread;
    return new Promise((resolve, reject) => {
      thread.on("error", (error) => this.#deps.log.error({ event: "broker-failed", error }));
      thread.on("exit", () => {
        reject(new StartError("the broker's thread ended before it listened: see the log"));
        this.#threadEnded();
      });
      thread.on("message", (message: FromBroker) => {
        if (message.kind === "failed") {
          reject(
            message.at === "port" ? whyNotListening(message.code, this.#port) : noSocket(message.code, start.socket),
          );
          void thread.terminate();
        } else if (message.kind === "listening") {
          this.#port = message.port;
          this.#restartMs = firstRestartMs;
          resolve();
        } else this.#take(thread, message);
      });
    });
  }

  /** The vault continues without it; programs get no response until the new thread listens. */
  #threadEnded(): void {
    this.#thread = null;
    for (const settle of this.#certificates.values()) settle(null);
    for (const settle of this.#exchanges.values()) settle(threadEnded);
    this.approvals.cancel();
    for (const permit of this.#permits.keys()) this.#used(permit, 502); // a credential may have gone out
    if (this.#isStopped) return;
    const { clock, log } = this.#deps;
    log.warn({
      event: "broker-restarts",
      hint: "running programs must be started again: they trust another certificate",
    });
    clock.after(this.#restartMs, () => {
      if (!this.#isStopped) this.#startThread().catch((error: unknown) => log.error({ event: "broker-failed", error }));
    });
    this.#restartMs = Math.min(this.#restartMs * 2, lastRestartMs);
  }

  #take(thread: Worker, message: FromBroker): void {
    if (message.kind === "used") this.#used(message.permit, message.status);
    else if (message.kind === "certificate") this.#certificates.get(message.id)?.(message.certificate);
    else if (message.kind === "exchanged") this.#exchanges.get(message.id)?.(message.exchanged);
    else if ("ask" in message) void this.#reply(thread, message.id, message.kind, message.ask);
  }

  /** DANGER: each thread counts its questions from 0. A reply to another one's would permit another request. */
  async #reply(thread: Worker, id: number, kind: QuestionKind, ask: Ask<QuestionKind>): Promise<void> {
    const answer = await this.#answer(kind, ask).catch((error: unknown) => this.#refusal(error));
    if (thread === this.#thread)
      this.#send({ kind: "answer", id, answer }, "head" in answer ? [answer.head.buffer] : []);
    else if ("head" in answer) answer.head.fill(0);
    else if ("permit" in answer) this.#permits.delete(answer.permit); // nothing was sent
  }

  #answer(kind: QuestionKind, ask: Ask<QuestionKind>): Promise<Answer<QuestionKind>> {
    if (kind === "session") return this.#session(ask as Ask<"session">);
    if (kind === "permit") return this.#permit(ask as Ask<"permit">);
    return this.#render(ask as Ask<"render">);
  }

  async #session({ token, address }: Ask<"session">): Promise<Answer<"session">> {
    const caller = await this.#authenticate(token, address);
    const id = sessionId(caller);
    this.#callers.set(id, caller);
    if (this.#callers.size > this.#mostCallers) this.#forgetEnded();
    this.#mustBeAllowed(caller);
    const uses = await this.#listUses(caller);
    mustBeFewHosts(uses); // DANGER: an authority for too many cannot be made, and the attempt ends the thread
    // An address is private only where all of a host's bindings allow it.
    const onlyPublic = new Set(uses.filter((use) => !use.private).map((use) => `${use.host} ${use.port}`));
    const bound = uses.map(({ host: to, port, name }) => ({
      host: to,
      port,
      name,
      allowsPrivate: !onlyPublic.has(`${to} ${port}`),
    }));
    const session: Session = {
      id,
      tree: this.#deps.credentials.tokenTree(caller),
      bound,
      ...(this.#rules.get(id) ?? onlyBound),
    };
    return { ok: true, session };
  }

  /** @throws VaultError UNAUTHORIZED, RATE_LIMITED; FORBIDDEN for the root token, which would reach beyond every session */
  async #authenticate(token: string, address: string): Promise<ClientCaller> {
    const { credentials, tokens, tokenLockout } = this.#deps;
    tokenLockout.checkFrom(address);
    await tokens.refresh();
    const caller = credentials.authenticate(token);
    if (caller === "root") throw new VaultError("FORBIDDEN", rootRefused);
    if (caller !== null) return caller;
    tokenLockout.failFrom(address);
    throw new VaultError("UNAUTHORIZED", "the token is wrong");
  }

  /** @throws VaultError UNAUTHORIZED, FORBIDDEN, VAULT_LOCKED */
  #mustBeAllowed(caller: ClientCaller): void {
    const { credentials, tokens, vault, audit } = this.#deps;
    credentials.requireValid(caller);
    requireScope(caller, "use");
    vault.secrets.admit(true);
    audit?.mustAccept();
    tokens.mustBeGenuine(caller);
    tokens.touch(caller);
  }

  async #permit(asked: Use): Promise<Answer<"permit">> {
    const caller = this.#callers.get(asked.session);
    if (caller === undefined) throw new VaultError("UNAUTHORIZED", "the session has ended");
    await this.#refreshed();
    this.#mustBeAllowed(caller);
    const chosen = chosenUse(await this.#listUses(caller), asked);
    const use = { ...asked, target: sentTarget(chosen, asked.target) };
    const override = overrideIn(chosen, use.headers);
    if (override !== null) throw new VaultError("BAD_REQUEST", override);
    if (chosen.ask !== "never") {
      await this.#approved(caller, chosen, use);
      await this.#refreshed(); // the approval may have taken a minute
    }
    this.#mustBeAllowed(caller);
    const permit = this.#count++;
    this.#permits.set(permit, { caller, use, path: chosen.path });
    return { ok: true, permit, hashesBody: hashesBody(chosen, use.headers) };
  }

  /** Another server may have revoked the token. @throws VaultError UNAVAILABLE, INTEGRITY */
  async #refreshed(): Promise<void> {
    await this.#deps.tokens.refresh();
  }

  /** @throws VaultError FORBIDDEN */
  async #approved(caller: ClientCaller, { path, ask }: SecretUse, use: Use): Promise<void> {
    const { host: asked, port, method, target, clientPort } = use;
    const tree = this.#deps.credentials.tokenTree(caller);
    const request = { token: sessionId(caller), tree, path, method, host: asked, port, target };
    const program = async () => (clientPort === null ? null : findProgram(clientPort, this.#port));
    const outcome = await this.approvals.ask({ ...request, findProgram: program }, { ask });
    if (outcome === "approved") return;
    throw new VaultError("FORBIDDEN", `${whyNotApproved[outcome]}: run strongroom approve, then try again`);
  }

  async #render({ permit: id, fields, payloadHash }: Ask<"render">): Promise<Answer<"render">> {
    const found = this.#permits.get(id);
    if (found === undefined) throw new VaultError("UNAUTHORIZED", "the session has ended");
    const { caller, use, path } = found;
    const { host: to, port, method, target } = use;
    const request = { host: to, port, method, target, fields, payloadHash };
    const permit = () => this.#mustBeAllowed(caller);
    const head = await this.tokenExchanges.render(path, request, permit).catch((error: unknown) => {
      if (error instanceof ExchangeError) found.code = error.code;
      throw error;
    });
    this.#deps.audit?.record({ event: "use-begin", token: sessionId(caller), path, host: to, method });
    return { ok: true, head };
  }

  #used(permit: number, status: number): void {
    const found = this.#permits.get(permit);
    if (found === undefined) return;
    this.#permits.delete(permit);
    const { caller, path, use, code } = found;
    const { host, method } = use;
    this.#deps.audit?.record({
      event: "use",
      token: sessionId(caller),
      path,
      host,
      method,
      status,
      ...(code && { code }),
    });
  }

  #listUses(caller: Caller): Promise<readonly SecretUse[]> {
    return this.#deps.vault.uses.within(caller === "root" ? undefined : caller.ranges);
  }

  /** @throws VaultError UNAVAILABLE */
  async #requestCertificate(session: string, hosts: readonly string[], until: number): Promise<string> {
    const id = this.#count++;
    const certificate = await new Promise<string | null>((resolve) => {
      if (this.#thread === null) return resolve(null);
      this.#certificates.set(id, resolve);
      this.#send({ kind: "authority", id, session, hosts, until });
    }).finally(() => this.#certificates.delete(id));
    if (certificate !== null) return certificate;
    throw new VaultError("UNAVAILABLE", "the broker is restarting: try again in a second");
  }

  /** Has the broker's thread send a request for a token. */
  async #exchange(exchange: ExchangeRequest): Promise<Exchanged> {
    const id = this.#count++;
    return new Promise<Exchanged>((resolve) => {
      if (this.#thread === null) {
        exchange.request.fill(0);
        return resolve(threadEnded);
      }
      this.#exchanges.set(id, resolve);
      this.#send({ kind: "exchange", id, exchange }, [exchange.request.buffer]);
    }).finally(() => this.#exchanges.delete(id));
  }

  #send(message: ToBroker, moved: ArrayBuffer[] = []): void {
    this.#thread?.postMessage(message, moved);
  }

  #refusal(error: unknown): BrokerRefusal {
    if (error instanceof ExchangeError) return { ok: false, status: 502, code: error.code, error: error.message };
    if (!(error instanceof VaultError)) {
      this.#deps.log.error({ event: "broker-error", error });
      return { ok: false, status: 502, code: "INTERNAL", error: "the request failed: see the server's log" };
    }
    const { code, message } = error;
    const status = statuses[code as keyof typeof statuses] ?? 502;
    return { ok: false, status, code, error: message, ...(status === 429 && { retryAfter: 300 }) };
  }
}

const threadEnded: Exchanged = { ok: false, problem: "was not asked: the broker is restarting" };

const rootRefused =
  "the broker does not take the root token: use strongroom agent run, or a client token with the scope use";

const whyNotApproved: Readonly<Record<Exclude<ApprovalOutcome, "approved">, string>> = {
  refused: "the request was not approved",
  late: "the request was not approved within 60 seconds",
  full: "too many requests of this token wait for approval",
};

const statuses = {
  BAD_REQUEST: 400,
  FORBIDDEN: 403,
  NOT_FOUND: 403,
  UNAUTHORIZED: 407,
  RATE_LIMITED: 429,
  VAULT_LOCKED: 503,
  UNAVAILABLE: 503,
} as const;

function sessionId(caller: Caller): string {
  return caller === "root" ? "root" : caller.token.name;
}

/** @throws VaultError BAD_REQUEST for too many */
function mustBeFewHosts(uses: readonly SecretUse[]): string[] {
  const hosts = [...new Set(uses.map((use) => use.host))];
  if (hosts.length <= maxHosts) return hosts;
  throw new VaultError(
    "BAD_REQUEST",
    `the session's secrets are bound to ${hosts.length} hosts, and at most ${maxHosts} are possible: limit it to some paths`,
  );
}

/** Returns the one binding that covers the request. @throws VaultError FORBIDDEN */
function chosenUse(uses: readonly SecretUse[], { host: to, port, name, method, target }: Use): SecretUse {
  const candidates = uses.filter((use) => use.host === to && use.port === port && (name === null || use.name === name));
  const request = new JudgedRequest({ method, target });
  const judged = candidates.map((use) => ({ use, reason: request.whyNot(use) }));
  if (request.isUndecided) throw new VaultError("FORBIDDEN", tooLong);
  const [chosen, another] = judged.filter(({ reason }) => reason === null);
  if (another !== undefined) {
    throw new VaultError(
      "FORBIDDEN",
      `several secrets are bound to ${to}: choose one with strongroom agent run --use PATH`,
    );
  }
  if (chosen !== undefined) return chosen.use;
  throw new VaultError("FORBIDDEN", judged[0]?.reason ?? `no secret is bound to ${to}, port ${port}`);
}

async function readCertificates(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new StartError(`cannot read ${file} (--upstream-ca): ${systemCode(error)}`);
  }
}

function whyNotListening(code: string, port: number): StartError {
  if (code === "EADDRINUSE") {
    return new StartError(`port ${port} of ${host} is in use: stop the program that uses it, or change --broker-port`);
  }
  return new StartError(`the broker cannot listen on ${host}, port ${port} (${code}): change --broker-port`);
}

function noSocket(code: string, socket: string | null): StartError {
  return new StartError(`the broker cannot listen on ${socket} (${code}): change --broker-socket`);
}
