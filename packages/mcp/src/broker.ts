/** One session at the server's broker, and requests through it. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import type { Agent, StrongroomClient } from "../../../src/client/client.js";

/** Secrets and hosts that the agent may use; no path: every secret that is bound to a host. */
export type Scope = { readonly paths: readonly string[]; readonly allowHosts: readonly string[] };

export type Sent = {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
};
export type Received = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Whether more of the body follows. */
  readonly isCut: boolean;
  /** Whether the broker has refused to connect: nothing of it comes from the host. */
  readonly isRefusal: boolean;
};

const timeoutMs = 120_000;
const maxBodyBytes = 1024 * 1024;

export class Broker {
  readonly #client: StrongroomClient;
  readonly #scope: Scope;
  #session: Promise<Agent> | null = null;
  #hasEnded = false;

  constructor(client: StrongroomClient, scope: Scope) {
    this.#client = client;
    this.#scope = scope;
  }

  /** @throws Error that says why there was no response */
  async send(sent: Sent): Promise<Received> {
    const known = this.#session;
    const received = await this.#sendOnce(sent).catch((error: unknown) => {
      if (known === null) throw error;
      return null; // the server or its broker may have been started again since
    });
    if (received !== null && received.status !== 407) return received;
    if (known === this.#session) await this.#revoke(); // else another request has a new one
    return this.#sendOnce(sent);
  }

  /** Revokes the session's token, also when it is just being made; there is no further one. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#revoke();
  }

  async #revoke(): Promise<void> {
    const making = this.#session;
    this.#session = null;
    const session = await making?.catch(() => null);
    if (session) await this.#client.revokeToken(session.name).catch(() => {});
  }

  async #sendOnce(sent: Sent): Promise<Received> {
    if (this.#hasEnded) throw new Error("the server is ending");
    this.#session ??= this.#client.createAgent(this.#scope);
    const making = this.#session;
    const session = await making.catch((error: unknown) => {
      if (this.#session === making) this.#session = null;
      throw error;
    });
    const opened = await openTunnel(session, sent.url);
    return "status" in opened ? opened : exchange(opened, session, sent);
  }
}

function openTunnel({ port, token }: Agent, { hostname, port: to }: URL): Promise<Socket | Received> {
  const credentials = Buffer.from(`mcp:${token}`).toString("base64");
  const request = httpRequest({
    host: "127.0.0.1",
    port,
    method: "CONNECT",
    path: `${hostname}:${to || 443}`,
    headers: { Host: `${hostname}:${to || 443}`, "Proxy-Authorization": `Basic ${credentials}` },
    timeout: timeoutMs,
  });
  return new Promise((resolve, reject) => {
    request.on("connect", ({ statusCode }, socket, head) => {
      if (statusCode === 200) return resolve(socket);
      const pieces: Buffer[] = [head];
      let length = head.length;
      socket.on("data", (piece: Buffer) => {
        length += piece.length;
        if (length > maxBodyBytes) socket.destroy();
        else pieces.push(piece);
      });
      socket.on("close", () => resolve(refusal(statusCode ?? 502, Buffer.concat(pieces))));
    });
    request.on("response", (response) => void receive(response).then(resolve, reject));
    request.on("timeout", () => request.destroy(new Error("the broker did not respond")));
    request.on("error", reject).end();
  });
}

function refusal(status: number, body: Buffer): Received {
  return { status, headers: { "strongroom-broker": "refused" }, body, isCut: false, isRefusal: true };
}

async function exchange(socket: Socket, { certificate }: Agent, sent: Sent): Promise<Received> {
  const name = sent.url.hostname.replace(/^\[|\]$/g, "");
  const secure = connect({ socket, ca: certificate, host: name, ...(/[a-z]/i.test(name) && { servername: name }) });
  try {
    return await requestOver(secure, name, sent);
  } finally {
    secure.destroy();
  }
}

/** Rejects for a header that Node does not send. */
function requestOver(secure: TLSSocket, host: string, { url, method, headers, body }: Sent): Promise<Received> {
  return new Promise((resolve, reject) => {
    secure.on("error", reject);
    const request = httpsRequest({
      createConnection: () => secure,
      host,
      path: `${url.pathname}${url.search}`,
      method,
      headers: { ...headers, host: url.host, "accept-encoding": "identity" },
      timeout: timeoutMs,
    });
    let isResponding = false;
    request.on("response", (response) => {
      isResponding = true;
      void receive(response).then(resolve, reject);
    });
    request.on("timeout", () => request.destroy(new Error(`${url.host} did not respond`)));
    request.on("close", () => isResponding || reject(new Error(`${url.host} sent no response`)));
    request.on("error", reject).end(body);
  });
}

async function receive(response: IncomingMessage): Promise<Received> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    pieces.push(piece);
    length += piece.length;
    if (length > maxBodyBytes) break;
  }
  const { statusCode: status = 502, headers } = response;
  const shown = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
  const isCut = length > maxBodyBytes;
  return { status, headers: Object.fromEntries(shown), body: Buffer.concat(pieces), isCut, isRefusal: false };
}
