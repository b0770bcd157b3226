/** The broker's thread: it listens on loopback and perhaps on a Unix socket, holds no token and no file, and asks the main thread about every request. */
import { chmodSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { SessionAuthority } from "./authority.js";
import { BrokerConnections } from "./connections.js";
import { systemResolve } from "./egress.js";
import type { Answer, Ask, BrokerStart, FromBroker, QuestionKind, ToBroker } from "./messages.js";
import { type ProxyDependencies, serveClient } from "./proxy.js";
import { exchangeToken } from "./token-endpoint.js";
import { Upstreams } from "./upstream.js";

type Waiting = (answer: Answer<QuestionKind>) => void;

class BrokerThread {
  readonly #waiting = new Map<number, Waiting>();
  readonly #authorities = new Map<string, Promise<SessionAuthority>>();
  readonly #connections: BrokerConnections;
  readonly #upstreams: Upstreams;
  readonly #exchangeMs: number;
  readonly #server: Server;
  #questions = 0;

  constructor(start: BrokerStart) {
    this.#upstreams = new Upstreams(systemResolve, start.upstreamCa);
    const deps = this.#dependencies(start);
    this.#connections = new BrokerConnections(start.limits.connections);
    this.#exchangeMs = start.limits.exchangeMs;
    const serve = (socket: Socket) => {
      socket.on("error", () => {}); // a close follows
      this.#connections.add(socket);
      serveClient(socket, deps).catch(() => socket.destroy());
    };
    const { host, port, socket } = start;
    const ready = () => send({ kind: "listening", port: this.#port });
    this.#server = createServer({ noDelay: true, keepAlive: true }, serve).on("error", failedAt("port"));
    this.#server.listen(port, host, socket === null ? ready : () => listenOnSocket(socket, serve, ready));
  }

  take(message: ToBroker): void {
    if (message.kind === "answer") this.#settle(message.id, message.answer);
    if (message.kind === "authority") void this.#showAuthority(message);
    if (message.kind === "exchange") void this.#exchange(message);
    if (message.kind === "end") this.#endSession(message.session);
  }

  get #port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  #dependencies({ limits }: BrokerStart): ProxyDependencies {
    return {
      limits,
      ask: (kind, ask) => this.#ask(kind, ask),
      used: (permit, status) => send({ kind: "used", permit, status }),
      authority: ({ id, bound }) => this.#authority(id, [...new Set(bound.map(({ host }) => host))]),
      upstreams: this.#upstreams,
      isOwnHost: (host) => [`127.0.0.1:${this.#port}`, `localhost:${this.#port}`].includes(host.toLowerCase()),
      admit: (session, socket) => this.#connections.admit(socket, session),
    };
  }

  #ask<K extends QuestionKind>(kind: K, ask: Ask<K>): Promise<Answer<K>> {
    const id = this.#questions++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve as Waiting);
      send({ kind, id, ask }, "fields" in ask ? [ask.fields.buffer] : []);
    });
  }

  #settle(id: number, answer: Answer<QuestionKind>): void {
    this.#waiting.get(id)?.(answer);
    this.#waiting.delete(id);
  }

  async #authority(session: string, hosts: readonly string[], until = 0): Promise<SessionAuthority> {
    const known = await this.#authorities.get(session);
    if (known?.isValid(Date.now()) === true) return known;
    const made = SessionAuthority.make(hosts, Date.now(), until);
    this.#authorities.set(session, made);
    return made;
  }

  async #showAuthority({ id, session, hosts, until }: ToBroker & { readonly kind: "authority" }): Promise<void> {
    const { certificate } = await this.#authority(session, hosts, until);
    send({ kind: "certificate", id, certificate });
  }

  async #exchange({ id, exchange }: ToBroker & { readonly kind: "exchange" }): Promise<void> {
    const exchanged = await exchangeToken(this.#upstreams, exchange, this.#exchangeMs);
    send({ kind: "exchanged", id, exchanged }, exchanged.ok ? [exchanged.body.buffer] : []);
  }

  #endSession(session: string): void {
    this.#connections.end(session);
    this.#authorities.delete(session);
  }
}

/** Calls `ready` once only the user's own programs can connect. */
function listenOnSocket(path: string, serve: (socket: Socket) => void, ready: () => void): void {
  const failed = failedAt("socket");
  const server = createServer(serve).on("error", failed);
  server.listen(path, () => {
    try {
      chmodSync(path, 0o600);
      ready();
    } catch (error) {
      failed(error as Error);
    }
  });
}

function failedAt(at: "port" | "socket"): (error: NodeJS.ErrnoException) => void {
  return (error) => send({ kind: "failed", code: error.code ?? error.name, at });
}

function send(message: FromBroker, moved: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, moved);
}

const thread = new BrokerThread(workerData as BrokerStart);
parentPort?.on("message", (message: ToBroker) => thread.take(message));
