/** Test client: talks to a server over HTTPS and trusts only its certificate. */

import { once } from "node:events";
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http";
import { Agent, request as httpsRequest, type RequestOptions } from "node:https";
import { type Socket, connect as socketConnect } from "node:net";
import { connect, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { expect } from "chai";
import supertest, { type Test } from "supertest";
import { systemCode } from "../../src/errors.js";
import { later } from "./clean-up.js";
import { judge, judgeRaw } from "./contract-judge.js";
import { passphrase, type TestServer } from "./server.js";

export type Json = { readonly [name: string]: unknown };
export type ApiResponse = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: Json;
};

type Method = "get" | "post" | "put" | "delete" | "patch" | "options";

/** Returns a supertest request with the right token. */
export function api(server: TestServer, method: Method, path: string): Test {
  const test = supertest(server.url)[method](path).ca(server.certificate);
  test.on("response", ({ status, headers, text }) => judge({ method, target: path, status, headers, text }));
  return test.set("Authorization", `Bearer ${server.token}`);
}

export type Send = {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Uint8Array | string | object;
  /** Null: no Authorization header. */
  readonly token?: string | null;
  readonly localAddress?: string;
};

/**
 * Sends a request target exactly as given: no URL library normalizes it. A GET or a lock is sent again when the server had
 * just closed the idle connection, as after a long search of its memory.
 */
export function send(server: TestServer, sent: Send): Promise<ApiResponse> {
  const { method = "GET", path, headers, body, token, localAddress } = sent;
  const bytes = bodyBytes(body);
  const authorization = token === null ? {} : { authorization: `Bearer ${token ?? server.token}` };
  const host = localAddress ? "127.0.0.1" : new URL(server.url).hostname.replace(/^\[|\]$/g, "");
  const tls = { host, port: server.port, servername: "localhost", secureContext: contextFor(server.certificate) };
  const options: RequestOptions = {
    ...(server.overSocket ? { socketPath: server.socket ?? "" } : tls),
    agent: serverAgent(server),
    method,
    path,
    headers: { ...authorization, ...(bytes && { "content-length": bytes.length }), ...headers } as OutgoingHttpHeaders,
    ...(localAddress && { localAddress, agent: false }),
  };
  return new Promise((resolve, reject) => {
    const open = server.overSocket ? httpRequest : httpsRequest;
    const request = open(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        const { statusCode: status = 0, headers } = response;
        judge({ method, target: path, status, headers, text });
        resolve({ status, headers, text, json: asObject(text) });
      });
    });
    request.on("error", (error) => {
      const isStale = request.reusedSocket && systemCode(error) === "ECONNRESET";
      if (isStale && (method === "GET" || path === "/v1/lock")) resolve(send(server, sent));
      else reject(error);
    });
    request.end(bytes);
  });
}

const agents = new WeakMap<TestServer, HttpAgent>();

function serverAgent(server: TestServer): HttpAgent {
  let agent = agents.get(server);
  if (agent === undefined) {
    const options = { keepAlive: true, maxSockets: 64 };
    const fresh = server.overSocket ? new HttpAgent(options) : new Agent(options);
    agents.set(server, fresh);
    later(() => fresh.destroy());
    agent = fresh;
  }
  return agent;
}

/** Closes the connections that are kept alive; the next request opens a new one. */
export function closeConnections(server: TestServer): void {
  agents.get(server)?.destroy();
}

function bodyBytes(body: Send["body"]): Buffer | undefined {
  if (body === undefined) return undefined;
  if (typeof body === "string") return Buffer.from(body);
  return body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
}

function asObject(text: string): Json {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? (parsed as Json) : {};
  } catch {
    return {};
  }
}

/** Asserts the status, and the JSON object with a text and the code that every error has. */
export function mustRefuse(answer: ApiResponse, status: number, code: string): void {
  expect(`${answer.status} ${String(answer.json["code"])}`, answer.text).to.equal(`${status} ${code}`);
  expect(answer.json["error"]).to.be.a("string").with.length.above(0);
  expect(answer.headers["content-type"]).to.match(/^application\/json/);
  expect(answer.headers["cache-control"]).to.equal("no-store");
}

/** Asserts a 200 and returns its JSON. */
export function mustSucceed(answer: ApiResponse): Json {
  expect(answer.status, answer.text).to.equal(200);
  return answer.json;
}

export async function mustInit(server: TestServer, body: object = { passphrase }): Promise<Json> {
  return mustSucceed(await send(server, { method: "POST", path: "/v1/init", body }));
}

export async function mustUnlock(server: TestServer, text = passphrase): Promise<Json> {
  return mustSucceed(await send(server, { method: "POST", path: "/v1/unlock", body: { passphrase: text } }));
}

export async function mustLock(server: TestServer): Promise<Json> {
  return mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
}

export async function mustPut(server: TestServer, path: string, body: string | object): Promise<Json> {
  const put = { method: "PUT", path: secretTarget(path), body: typeof body === "string" ? { value: body } : body };
  return mustSucceed(await send(server, put));
}

export async function mustGet(server: TestServer, path: string): Promise<Json> {
  return mustSucceed(await send(server, { path: secretTarget(path) }));
}

export type Entry = {
  readonly path: string;
  readonly metadata: Json;
  readonly createdAt: string;
  readonly updatedAt: string;
};

export async function mustList(server: TestServer, query = ""): Promise<Entry[]> {
  const { entries } = mustSucceed(await send(server, { path: `/v1/secrets${query}` }));
  return entries as Entry[];
}

/** Returns the paths in a folder. */
export async function mustListPaths(server: TestServer, folder: string): Promise<string[]> {
  return (await mustList(server, `?prefix=${encodeURIComponent(folder)}`)).map(({ path }) => path);
}

/** Creates a client token; returns its name and text. */
export async function mustCreateToken(
  server: TestServer,
  body: object,
): Promise<{ readonly name: string; readonly token: string }> {
  const answer = mustSucceed(await send(server, { method: "POST", path: "/v1/tokens", body }));
  return { name: String(answer["name"]), token: String(answer["token"]) };
}

export async function mustStatus(server: TestServer): Promise<Json> {
  return mustSucceed(await send(server, { path: "/v1/status", token: null }));
}

/** Returns the status once it has a count of this moment; that of a shared store may take longer than a status waits for it. */
export async function mustCount(server: TestServer): Promise<Json> {
  for (;;) {
    const status = await mustStatus(server);
    if (status["storageAvailable"] !== false) return status;
  }
}

export function secretTarget(path: string): string {
  return `/v1/secrets/${encodeURIComponent(path)}`;
}

/** Writes bytes to a TLS connection and returns what is received until the server closes it or sends no more. */
export async function sendRaw(server: TestServer, text: string | Uint8Array, quietMs = 300): Promise<string> {
  const received = await exchangeRaw(server, text, quietMs);
  judgeRaw(received);
  return received;
}

/** Like `sendRaw`, for an API that the contract does not describe. */
export function exchangeRaw(server: TestServer, text: string | Uint8Array, quietMs = 300): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectRaw(server);
    let received = "";
    let quiet = setTimeout(() => socket.destroy(), 5_000);
    socket.on("error", (error) => (received === "" ? reject(error) : socket.destroy()));
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      clearTimeout(quiet);
      quiet = setTimeout(() => socket.destroy(), quietMs);
    });
    socket.on("close", () => {
      clearTimeout(quiet);
      resolve(received);
    });
    socket.once("secureConnect", () => socket.write(text));
  });
}

/** Returns a connection once data can be sent on it. */
export async function openRaw(server: TestServer): Promise<Socket> {
  const socket = server.overSocket ? socketConnect(server.socket ?? "") : connectRaw(server);
  await once(socket, server.overSocket ? "connect" : "secureConnect");
  return socket;
}

export function connectRaw(server: TestServer): TLSSocket {
  const secureContext = contextFor(server.certificate);
  return connect({ host: "127.0.0.1", port: server.port, servername: "localhost", secureContext });
}

const contexts = new Map<string, SecureContext>();

/** Trust in only this certificate, made once for each: it costs more than a handshake. */
export function contextFor(certificate: string): SecureContext {
  const context = contexts.get(certificate) ?? createSecureContext({ ca: certificate });
  contexts.set(certificate, context);
  return context;
}

/** Returns the status, head and JSON of a raw response. */
export function parseRaw(received: string): { status: number; head: string; json: Json } {
  const split = received.indexOf("\r\n\r\n");
  const head = received.slice(0, split);
  return { status: Number(head.split(" ")[1]), head, json: asObject(received.slice(split + 4)) };
}
