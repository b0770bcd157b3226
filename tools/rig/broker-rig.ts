/** A server with a broker, an upstream that records what arrives, as the witness, and a client that sends exact bytes. */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createTls, type Server } from "node:https";
import { type AddressInfo, connect, isIP, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { generate } from "selfsigned";
import { later, shared, temporaryDirectory } from "./clean-up.js";
import { startTestServer, type TestOptions, type TestServer } from "./server.js";
import { type Json, mustInit, mustPut, mustSucceed, send } from "./test-client.js";

type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  /** Names and values as they were sent. */
  readonly raw: readonly string[];
  readonly bytes: number;
};
export type Upstream = {
  readonly port: number;
  readonly certificate: string;
  readonly seen: Seen[];
  /** Own address of each connection that was made to it. */
  readonly places: string[];
  readonly server: Server;
};

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/**
 * An upstream that records what arrives. It reads requests leniently, so that it would take a smuggled one for a second
 * request.
 * @param names of its certificate: DNS names and IP addresses
 * @param handle answers a request in place of the witness
 */
export async function startUpstream(
  names: readonly string[] = ["localhost"],
  handle: Handler | null = null,
  address = "127.0.0.1",
): Promise<Upstream> {
  const { cert, private: key } = await generate([{ name: "commonName", value: `upstream ${randomUUID()}` }], {
    keyType: "ec",
    extensions: [
      { name: "basicConstraints", cA: true },
      {
        name: "subjectAltName",
        altNames: names.map((name) => (isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name })),
      },
    ],
  });
  const seen: Seen[] = [];
  const server = createTls({ cert, key, insecureHTTPParser: true, maxHeaderSize: 64 * 1024 }, (req, res) => {
    if (handle !== null) {
      seen.push(seenRequest(req, 0));
      return handle(req, res);
    }
    let bytes = 0;
    req.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    req.on("end", () => {
      seen.push(seenRequest(req, bytes));
      res.end(`${req.method} ${req.url} ${bytes}\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const places: string[] = [];
  server.on("connection", ({ localAddress = "" }: Socket) => places.push(localAddress));
  later(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, certificate: cert, seen, places, server };
}

function seenRequest({ method = "", url = "", headers, rawHeaders }: IncomingMessage, bytes: number): Seen {
  return { method, url, headers, raw: rawHeaders, bytes };
}

type Rig = { readonly server: TestServer; readonly upstream: Upstream };

export const value = "kept-in-the-vault-7f3a";

/** Shared rig of a test file: `app/key` is bound to the upstream, with the route `up`. */
export function brokerRig(options: TestOptions = {}): () => Rig {
  return shared(async (): Promise<Rig> => startBound(await startUpstream(), { name: "up" }, options));
}

/** Starts a server whose secret `app/key` is bound to the upstream, which programs find `at` this host and port. */
export async function startBound(upstream: Upstream, binding: object = {}, options: TestOptions = {}) {
  const server = await startWithBroker([upstream], options);
  await mustPut(server, "app/key", { value });
  await bind(server, "app/key", { host: "localhost", port: upstream.port, private: true, ...binding });
  return { server, upstream, at: `localhost:${upstream.port}` };
}

export async function bind(server: TestServer, path: string, body: object): Promise<Json> {
  return mustSucceed(await send(server, { method: "PUT", path: `/v1/uses/${path}`, body }));
}

/** Returns the setting with which a server trusts these upstreams. */
export function upstreamTrust(upstreams: readonly Upstream[]): { readonly upstreamCa: string } {
  const upstreamCa = join(temporaryDirectory(), "upstream.pem");
  writeFileSync(upstreamCa, upstreams.map(({ certificate }) => certificate).join("\n"));
  return { upstreamCa };
}

export async function startWithBroker(upstreams: readonly Upstream[], options: TestOptions = {}): Promise<TestServer> {
  const server = await startTestServer({ brokerPort: 0, ...upstreamTrust(upstreams), ...options });
  await mustInit(server);
  return server;
}

export type Agent = {
  readonly name: string;
  readonly token: string;
  readonly port: number;
  readonly certificate: string;
  readonly caFile: string;
  /** Path of the broker's Unix socket, where the requests go there. */
  readonly socket?: string;
};

export async function startAgent(server: TestServer, body: object = {}): Promise<Agent> {
  const made = mustSucceed(await send(server, { method: "POST", path: "/v1/agents", body }));
  const certificate = String(made["certificate"]);
  const caFile = join(temporaryDirectory(), "ca.pem");
  writeFileSync(caFile, certificate);
  return { name: String(made["name"]), token: String(made["token"]), port: Number(made["port"]), certificate, caFile };
}

/** Opens a connection to the broker, which is closed at the test's end. */
export function connectTo({ port, socket: path }: Pick<Agent, "port" | "socket">): Socket {
  const socket = path === undefined ? connect(port, "127.0.0.1") : connect(path);
  later(() => void socket.destroy());
  return socket;
}

/** Opens a connection to the broker, sends exactly these bytes, and returns all that comes until it closes. */
export async function sendRaw(agent: Agent, bytes: string): Promise<string> {
  return exchange(connectTo(agent), bytes);
}

/** Sends bytes, and returns all that comes until the connection closes. */
export function exchange(socket: Socket, bytes: string): Promise<string> {
  let text = "";
  socket.on("data", (piece: Buffer) => {
    text += piece.toString("latin1");
  });
  socket.write(Buffer.from(bytes, "latin1"));
  return new Promise((resolve) => socket.on("error", () => {}).once("close", () => resolve(text)));
}

export function proxyAuthorization({ token }: Agent): string {
  return `Proxy-Authorization: Basic ${Buffer.from(`x:${token}`).toString("base64")}`;
}

/** Opens a tunnel to `authority`, HOST:PORT; its response when it is refused. */
export async function openTunnel(agent: Agent, authority: string): Promise<Socket | string> {
  const socket = connectTo(agent);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${proxyAuthorization(agent)}\r\n\r\n`);
  const text = await new Promise<string>((resolve) =>
    socket.once("data", (piece) => resolve(piece.toString("latin1"))),
  );
  return text.startsWith("HTTP/1.1 200 ") ? socket : text;
}

/** Completes the handshake inside a tunnel; null for no server name. @throws Error for a certificate that is not the session's */
export function startTls(agent: Agent, socket: Socket, host: string, servername: string | null): Promise<TLSSocket> {
  const secure = connectTls({
    socket,
    host,
    ca: agent.certificate,
    ...(servername !== null && isIP(servername) === 0 && { servername }),
    ...(servername !== host && { checkServerIdentity: () => undefined }),
  });
  return new Promise((resolve, reject) => secure.once("secureConnect", () => resolve(secure)).once("error", reject));
}

/** Sends exact bytes to a host through its tunnel, and returns the response, or the refusal of the tunnel. */
export async function sendThrough(agent: Agent, authority: string, bytes: string): Promise<string> {
  const opened = await openTunnel(agent, authority);
  if (typeof opened === "string") return opened;
  const host = authority.replace(/:\d+$/, "");
  return exchange(await startTls(agent, opened, host, host), bytes);
}

/** Returns a blob with the metadata of one and the value of another; see the format in workers/crypto/blob.ts. */
export function spliced(head: Buffer, body: Buffer): Buffer {
  return Buffer.concat([head.subarray(0, metadataEnd(head)), body.subarray(metadataEnd(body))]);
}

export function metadataEnd(blob: Buffer): number {
  return 9 + blob.readUInt32BE(5);
}
