/**
 * The broker's connections: `CONNECT` to a bound host, whose TLS ends here and begins again at the upstream; `CONNECT` to
 * any other, which is tunnelled untouched or refused; `/r/NAME/…`, for programs that take a base URL; and `http://`, without a
 * credential.
 */
import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { hasFingerprint, readRelayPreface } from "../relay-preface.js";
import type { SessionAuthority } from "./authority.js";
import { bodyReader, readWholeBody } from "./body.js";
import { ByteStream } from "./byte-stream.js";
import { fieldsFor, relay } from "./exchange.js";
import { HeadError, latin1, maxRequestBytes, type RequestHead, readRequestHead } from "./head.js";
import { readAuthority } from "./host-name.js";
import type { Answer, Ask, BoundHost, BrokerLimits, QuestionKind, Questions, Session } from "./messages.js";
import { badRequest, brokerRefusal, forbidden, Refused, refuse } from "./refusal.js";
import { openTunnel, type Upstreams } from "./upstream.js";

export type ProxyDependencies = {
  /** Asks the main thread. */
  readonly ask: <K extends QuestionKind>(kind: K, ask: Ask<K>) => Promise<Answer<K>>;
  readonly used: (permit: number, status: number) => void;
  /** The session's certificate authority, made at its first use. */
  readonly authority: (session: Session) => Promise<SessionAuthority>;
  readonly upstreams: Upstreams;
  /** The broker's own addresses, as a Host header names them. */
  readonly isOwnHost: (host: string) => boolean;
  /** Counts a connection to a session, with which it ends. @throws Refused when there are too many */
  readonly admit: (session: Session, socket: Socket) => void;
  readonly limits: Pick<BrokerLimits, "headMs" | "idleMs">;
};

/** An upstream's connection is used again for this long after its last response, in milliseconds. */
const reuseMs = 3_000;

/** How long a client may take for its handshake, in milliseconds. */
const handshakeMs = 10_000;

/** Destination and rights of a request with a credential, and its headers that carried the broker's token. */
type BoundRoute = {
  readonly session: Session;
  readonly bound: BoundHost;
  /** The binding's, where the program used its route. */
  readonly name: string | null;
  readonly target: string;
  readonly tokenHeaders: ReadonlySet<string>;
  readonly clientPort: number | null;
};

/** Destination of a request for `http://`, which gets no credential. */
type PlainRoute = { readonly host: string; readonly port: number; readonly target: string };

type Route = BoundRoute | PlainRoute;

/**
 * Address of all connections at the broker's Unix socket: wrong tokens from a container lock out neither other addresses, nor
 * the owner's commands, which have a socket of their own.
 */
const atSocket = "broker-socket";

/** Source of a connection. `only`: fingerprint of the only token that counts there, where it comes through a relay. */
type Origin = { readonly address: string; readonly only: Buffer | null };

type First = Pick<Origin, "only"> & { readonly raw: Uint8Array; readonly head: RequestHead };

type FindRoute = (head: RequestHead) => Promise<Route>;

const none: ReadonlySet<string> = new Set();

/** Serves one client's connection until it ends. */
export async function serveClient(socket: Socket, deps: ProxyDependencies): Promise<void> {
  const client = new ByteStream(socket);
  const late = setTimeout(() => socket.destroy(), deps.limits.headMs);
  try {
    const first = await readFirst(client).finally(() => clearTimeout(late));
    if (first === null) return;
    const origin = { address: socket.remoteAddress ?? atSocket, only: first.only };
    if (first.head.method === "CONNECT") return await serveConnect(client, socket, first.head, origin, deps);
    client.unread(first.raw);
    endIdle(socket, deps);
    await serveRequests(client, (each) => findNamedRoute(each, socket, origin, deps), deps);
  } catch (error) {
    refuse(client, brokerRefusal(error, false));
  }
}

/** Reads the preface, where a relay sent one, and the head of the first request; null when the connection ends before. */
async function readFirst(client: ByteStream): Promise<First | null> {
  const raw = await client.readHead();
  if (raw === null) return null;
  const head = readRequestHead(raw);
  const only = readRelayPreface(head);
  if (only === null) return { raw, head, only };
  const next = await client.readHead();
  return next && { raw: next, head: readRequestHead(next), only };
}

async function serveConnect(
  client: ByteStream,
  socket: Socket,
  head: RequestHead,
  origin: Origin,
  deps: ProxyDependencies,
): Promise<void> {
  const { host, port } = connectTarget(head);
  const clientPort = socket.remotePort ?? null;
  const session = await requireSession(proxyToken(head), origin, deps);
  deps.admit(session, socket);
  const bound = session.bound.find((one) => one.host === host && one.port === port);
  if (bound === undefined) return tunnel(client, socket, session, host, port, deps);
  const authority = await deps.authority(session);
  const secureContext = await authority.secureContext(host);
  await establish(client);
  const tls = await handshake(socket, secureContext);
  if (tls === null) return;
  const { servername } = tls as TLSSocket & { servername?: string | false };
  endIdle(tls, deps);
  const isNamed = typeof servername === "string" && servername !== "";
  const findRoute: FindRoute = async (each) => {
    if (isNamed && servername.toLowerCase() !== host)
      throw badRequest("the TLS server name is not the host of CONNECT");
    if (!each.target.startsWith("/")) throw badRequest("inside a tunnel the target must begin with /");
    if (!namesHost(each.host, host, port)) throw badRequest("the Host header is not the host of CONNECT");
    return { session, bound, name: null, target: each.target, tokenHeaders: none, clientPort };
  };
  await serveRequests(new ByteStream(tls), findRoute, deps);
}

/** Ends a connection that carries nothing, so that it does not count any longer. */
function endIdle(socket: Duplex & Pick<Socket, "setTimeout">, { limits }: ProxyDependencies): void {
  socket.setTimeout(limits.idleMs, () => socket.destroy());
}

/** Answers a CONNECT, and leaves the socket to the next reader. @throws Refused when the client did not wait for it */
async function establish(client: ByteStream): Promise<void> {
  if (!client.release()) throw badRequest("bytes followed CONNECT before its response: wait for it");
  await client.write(Buffer.from("HTTP/1.1 200 Connection established\r\n\r\n"));
}

/** Ends the client's TLS here; null when its handshake fails. */
async function handshake(
  socket: Socket,
  secureContext: Awaited<ReturnType<SessionAuthority["secureContext"]>>,
): Promise<TLSSocket | null> {
  const secure = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] });
  secure.on("error", () => {}); // a close follows
  const isOpen = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => secure.destroy(), handshakeMs);
    secure.once("secure", () => resolve(true)).once("close", () => resolve(false));
    secure.once("secure", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
  });
  return isOpen ? secure : null;
}

/** Passes bytes untouched, to a host without a binding that the session may reach. */
async function tunnel(
  client: ByteStream,
  socket: Socket,
  session: Session,
  host: string,
  port: number,
  deps: ProxyDependencies,
): Promise<void> {
  if (!mayReach(session, host)) {
    throw forbidden(
      `no binding for ${host}, port ${port}: add one with strongroom use add, or start the program with --allow-host ${host}`,
    );
  }
  const upstream = await openTunnel({ host, port, allowsPrivate: false }, deps.upstreams.resolve);
  if (socket.destroyed) return void upstream.destroy();
  for (const [from, to] of [
    [socket, upstream],
    [upstream, socket],
  ] as const) {
    from.on("error", () => to.destroy()).once("close", () => to.destroy()); // first: the client may be refused, or leave
  }
  endIdle(socket, deps);
  await establish(client);
  socket.pipe(upstream).pipe(socket);
}

/** Whether the session may send requests without a credential to this host. */
function mayReach({ egress, allowed }: Session, host: string): boolean {
  return egress === "any" || allowed.includes(host);
}

/** Serves the requests of one connection in turn. */
async function serveRequests(client: ByteStream, findRoute: FindRoute, deps: ProxyDependencies): Promise<void> {
  const connection = new UpstreamConnection(deps.upstreams);
  let isUpstream = false;
  try {
    for (;;) {
      isUpstream = false;
      const raw = await client.readHead(maxRequestBytes, deps.limits.headMs);
      if (raw === null) break;
      const head = readRequestHead(raw);
      const route = await findRoute(head);
      isUpstream = true;
      const isOpen =
        "bound" in route
          ? await serveWithCredential(client, head, route, connection, deps)
          : await servePlain(client, head, route, connection);
      if (!isOpen) break;
    }
    client.socket.end();
  } catch (error) {
    refuse(client, brokerRefusal(error, isUpstream));
  } finally {
    connection.close();
  }
}

/** Returns whether both connections can carry another request. */
async function serveWithCredential(
  client: ByteStream,
  head: RequestHead,
  { session, bound, name, target, tokenHeaders, clientPort }: BoundRoute,
  connection: UpstreamConnection,
  deps: ProxyDependencies,
): Promise<boolean> {
  const { host, port } = bound;
  const headers = head.fields.map((field) => field.name);
  const use = { session: session.id, host, port, name, method: head.method, target, headers, clientPort };
  const { permit, hashesBody } = await granted(deps, "permit", use);
  let isRecorded = false;
  const record = (status: number) => {
    if (!isRecorded) deps.used(permit, status);
    isRecorded = true;
  };
  try {
    const body = hashesBody ? await readHashedBody(client, head) : null;
    const upstream = await connection.open(bound);
    if (client.socket.destroyed) return false; // it gave up while a person or the upstream took their time
    const payloadHash = body && createHash("sha256").update(body).digest("hex");
    const sent = body === null ? head : { ...head, body: body.length };
    const dropped = body === null ? tokenHeaders : new Set([...tokenHeaders, "expect"]);
    // Only now, so that the credential is in memory for the shortest time, and never waits for a handshake.
    const rendered = await granted(deps, "render", { permit, fields: fieldsFor(sent, dropped), payloadHash });
    if (!(await upstream.writeAndWipe(rendered.head))) throw new HeadError("the upstream closed the connection");
    if (body !== null) await upstream.write(body);
    return await connection.relay(client, body === null ? head : { ...head, body: 0 }, record);
  } catch (error) {
    if (error instanceof Refused) record(error.refusal.status);
    throw error;
  } finally {
    record(502);
  }
}

/** Longest body that is read for its hash, in bytes. */
const maxHashedBody = 1024 * 1024;

/** Reads the body that a signature covers before its head is made. @throws Refused */
async function readHashedBody(client: ByteStream, { body, fields }: RequestHead): Promise<Uint8Array> {
  const tooLong = "the body is longer than 1 MiB: send its SHA-256 in the header x-amz-content-sha256";
  if (typeof body === "number" && body > maxHashedBody) throw badRequest(tooLong);
  if (fields.some(({ name }) => name === "expect")) await client.write(Buffer.from("HTTP/1.1 100 Continue\r\n\r\n"));
  const content = await readWholeBody(client, bodyReader(body, "request"), maxHashedBody).catch((error: unknown) => {
    throw new Refused(brokerRefusal(error, false));
  });
  if (content === null) throw badRequest(tooLong);
  return content;
}

/** Like `serveWithCredential`, for a request that gets no credential. */
async function servePlain(
  client: ByteStream,
  head: RequestHead,
  { host, port, target }: PlainRoute,
  connection: UpstreamConnection,
): Promise<boolean> {
  const upstream = await connection.openPlain(host, port);
  const name = host.includes(":") ? `[${host}]` : host;
  const start = `${head.method} ${target} HTTP/1.1\r\nHost: ${port === 80 ? name : `${name}:${port}`}\r\n`;
  const bytes = Buffer.concat([Buffer.from(start), fieldsFor(head, none), Buffer.from("\r\n")]);
  if (!(await upstream.write(bytes))) throw new HeadError("the upstream closed the connection");
  return connection.relay(client, head, () => {});
}

async function granted<K extends QuestionKind>(
  { ask }: ProxyDependencies,
  kind: K,
  question: Ask<K>,
): Promise<Questions[K]["answer"]> {
  const answer = await ask(kind, question);
  if (answer.ok) return answer;
  throw new Refused(answer);
}

/** The upstream's connection of one client's, opened when it is needed. */
class UpstreamConnection {
  readonly #upstreams: Upstreams;
  #stream: ByteStream | null = null;
  #place = "";
  #restedAt = 0;

  constructor(upstreams: Upstreams) {
    this.#upstreams = upstreams;
  }

  /** @throws EgressError, UpstreamError */
  open(bound: BoundHost): Promise<ByteStream> {
    return this.#open(`https ${bound.host} ${bound.port}`, () => this.#upstreams.open(bound));
  }

  /** Like `open`, without TLS, to a public address only. */
  openPlain(host: string, port: number): Promise<ByteStream> {
    const target = { host, port, allowsPrivate: false };
    return this.#open(
      `http ${host} ${port}`,
      async () => new ByteStream(await openTunnel(target, this.#upstreams.resolve)),
    );
  }

  async #open(place: string, connect: () => Promise<ByteStream>): Promise<ByteStream> {
    const isFresh = performance.now() - this.#restedAt < reuseMs && place === this.#place;
    if (this.#stream !== null && isFresh && this.#stream.isIdle) return this.#stream;
    this.close();
    this.#place = place;
    this.#stream = await connect();
    return this.#stream;
  }

  /**
   * Relays the request whose head was sent, and returns whether both connections can carry another one.
   * @param answered called with the upstream's status
   */
  async relay(client: ByteStream, head: RequestHead, answered: (status: number) => void): Promise<boolean> {
    if (this.#stream === null) return false;
    let hasBegun = false;
    try {
      const isWhole = await relay(client, this.#stream, head, (status) => {
        hasBegun = true;
        answered(status);
      });
      if (isWhole) this.#restedAt = performance.now();
      else this.close();
      return isWhole;
    } catch (error) {
      this.close();
      if (!hasBegun) throw error;
      client.socket.destroy(); // too late for a response
      return false;
    }
  }

  close(): void {
    this.#stream?.socket.destroy();
    this.#stream = null;
  }
}

/**
 * DANGER: a program in a sandbox must not use a token of another's, wherever it has it from. It is not asked whose it is: guesses
 * of such a program learn nothing, and do not lock out the other clients at its address.
 * @throws Refused 407, 403
 */
async function requireSession(
  token: string | null,
  { address, only }: Origin,
  deps: ProxyDependencies,
): Promise<Session> {
  if (token === null) {
    throw new Refused({
      ok: false,
      status: 407,
      code: "UNAUTHORIZED",
      error: "no token: start the program with strongroom agent run, or give a token as the proxy's password",
    });
  }
  if (only !== null && !hasFingerprint(token, only)) {
    throw forbidden("in this sandbox only the session's own token counts: use the one in HTTPS_PROXY or AGENT_TOKEN");
  }
  return (await granted(deps, "session", { token, address })).session;
}

/** `/r/NAME/rest` becomes `/rest` at the host whose binding has this name. */
async function findNamedRoute(
  head: RequestHead,
  socket: Socket,
  origin: Origin,
  deps: ProxyDependencies,
): Promise<Route> {
  if (!head.target.startsWith("/")) return findPlainRoute(head, socket, origin, deps);
  const [, name, rest] = /^\/r\/([^/?]+)(\/.*|\?.*)?$/.exec(head.target) ?? [];
  if (name === undefined) throw badRequest("nothing is here: use this port as a proxy, or /r/NAME/");
  if (head.host === null || !deps.isOwnHost(head.host)) throw badRequest("the Host header is not the broker's address");
  if (head.fields.some((field) => field.name === "origin")) throw badRequest("web pages may not use the broker");
  const { token, tokenHeaders } = routeToken(head);
  const session = await requireSession(token, origin, deps);
  deps.admit(session, socket);
  const bound = session.bound.find((one) => one.name === name);
  if (bound === undefined) throw forbidden("no binding that this token may use has this name: see strongroom use ls");
  const target = rest === undefined ? "/" : rest.startsWith("/") ? rest : `/${rest}`;
  return { session, bound, name, target, tokenHeaders, clientPort: socket.remotePort ?? null };
}

/** `http://HOST/rest` becomes `/rest` at a host that the session may reach without a credential, as package managers use them. */
async function findPlainRoute(
  head: RequestHead,
  socket: Socket,
  origin: Origin,
  deps: ProxyDependencies,
): Promise<PlainRoute> {
  const [, scheme, authority = "", rest = ""] = /^(https?):\/\/([^/?]+)(.*)$/.exec(head.target) ?? [];
  const { host, port } = readAuthority(authority) ?? { host: "", port: null };
  if (host === "") throw badRequest("the target must name a host");
  const session = await requireSession(proxyToken(head), origin, deps);
  deps.admit(session, socket);
  if (scheme === "https") throw forbidden("cleartext to the proxy carries no credential: use CONNECT for https");
  if (!mayReach(session, host)) {
    throw forbidden(
      `cleartext HTTP carries no credential: use https, or start the program with --allow-host ${host} to send none`,
    );
  }
  if (!namesHost(head.host, host, port ?? 80, 80)) throw badRequest("the Host header is not the target's host");
  return { host, port: port ?? 80, target: rest.startsWith("/") ? rest : `/${rest}` };
}

const routeTokenHeaders = ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key"];

/** A program that takes a base URL sends the broker's token where it would send its own key. */
function routeToken({ fields }: RequestHead): {
  readonly token: string | null;
  readonly tokenHeaders: ReadonlySet<string>;
} {
  const found = fields.filter(({ name }) => routeTokenHeaders.includes(name));
  const tokens = new Set(found.map(({ value }) => proxyPassword(latin1(value))));
  if (tokens.size > 1) throw badRequest("several headers carry different credentials: send the token in one");
  const [token = null] = tokens;
  return { token, tokenHeaders: new Set(found.map(({ name }) => name)) };
}

function proxyToken({ fields }: RequestHead): string | null {
  const found = fields.filter(({ name }) => name === "proxy-authorization");
  if (found.length > 1) throw badRequest("there is more than one Proxy-Authorization header");
  return found[0] ? proxyPassword(latin1(found[0].value)) : null;
}

/** The password of Basic authentication, a bearer token, or the whole text. */
function proxyPassword(value: string): string {
  const [, scheme = "", rest = ""] = /^(basic|bearer) +([^\s,]+)$/i.exec(value) ?? [];
  if (scheme === "") return value;
  if (scheme.toLowerCase() === "bearer") return rest;
  const pair = Buffer.from(rest, "base64").toString("utf8");
  return pair.slice(pair.indexOf(":") + 1);
}

/** @throws Refused */
function connectTarget({ target, host: named }: RequestHead): { readonly host: string; readonly port: number } {
  const { host, port } = readAuthority(target) ?? { host: "", port: null };
  if (port === null) throw badRequest("the target of CONNECT must be HOST:PORT");
  if (named !== null && !namesHost(named, host, port)) throw badRequest("the Host header is not the target of CONNECT");
  return { host, port };
}

/** Whether a Host header names this host and port; the scheme's own may be left out. */
function namesHost(header: string | null, host: string, port: number, usual = 443): boolean {
  const named = readAuthority(header ?? "");
  return named !== null && named.host === host && (named.port ?? usual) === port;
}
