/** Requests to the server of a home, over its Unix socket or TLS with the certificate in the home, with its root token. */
import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Home, missingAsNull, readPlain, UntrustedHome } from "./home.js";
import { shown } from "./surroundings.js";

export type Json = Readonly<Record<string, unknown>>;
export type Response = { readonly status: number; readonly text: string; readonly json: Json };

export type ServerEntry = { readonly pid: number; readonly url: string | null; readonly socket: string | null };

/** Returns the live server that the vault's pid file names; null when there is none. @throws UntrustedHome */
export function findServer(home: Home): ServerEntry | null {
  const entry = entryIn(home.read("vault/server.pid"));
  const pid = Number(entry?.["pid"]);
  if (entry === null || !isSameProcess(pid, String(entry["started"]))) return null;
  if (processOwner(pid) !== home.owner)
    throw new UntrustedHome(`process ${pid}, which vault/server.pid names, does not belong to the home's owner`);
  const url = textOrNull(entry["url"]);
  const socket = home.socket(textOrNull(entry["socket"]) ?? join(home.path, "strongroom.sock"));
  if (socket === null && url !== null && !isLoopback(url))
    throw new UntrustedHome(`${shown(url)} is not on this machine's loopback`);
  return { pid, url, socket };
}

function entryIn(file: Buffer | null): Json | null {
  try {
    return JSON.parse(file?.toString("utf8") ?? "null") as Json | null;
  } catch {
    return null;
  }
}

function isLoopback(url: string): boolean {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "" };
  return protocol === "https:" && /^(?:localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(hostname);
}

/** The user of a process (proc(5), the first number of Uid in status). */
function processOwner(pid: number): number {
  return Number(/^Uid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]);
}

/** `started`: the boot's id and the start tick of the process (proc(5), field 22 of stat). */
function isSameProcess(pid: number, started: string): boolean {
  const stat = missingAsNull(() => readFileSync(`/proc/${pid}/stat`, "latin1")) ?? "";
  const tick = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return tick !== undefined && started.endsWith(` ${tick}`);
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export class Server {
  readonly #entry: ServerEntry;
  readonly #home: Home;
  readonly #token: string | null;

  constructor(entry: ServerEntry, home: Home, token: string | null) {
    this.#entry = entry;
    this.#home = home;
    this.#token = token;
  }

  /** Sends a body of JSON, as bytes that the caller wipes, or none. */
  send(method: string, path: string, body?: Uint8Array): Promise<Response> {
    const headers = {
      ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json", "content-length": body.length }),
    };
    const [open, options] = this.#connection();
    return new Promise((resolve, reject) => {
      const request = open({ ...options, method, path, headers, agent: false, timeout: 30_000 }, (response) => {
        collect(response).then(resolve, reject);
      });
      request
        .on("error", (error) => reject(new RequestError(`the server of the home cannot be reached: ${error.message}`)))
        .on("timeout", () => request.destroy(new Error("the server does not respond")));
      request.end(body);
    });
  }

  #connection(): [typeof httpRequest, RequestOptions] {
    const { url, socket } = this.#entry;
    if (socket !== null) return [httpRequest, { socketPath: socket, host: "localhost" }];
    const { hostname, port } = new URL(url ?? "https://localhost:13100");
    const ca = this.#home.certificate();
    if (ca === null) throw new RequestError("the home has neither a socket nor a certificate of its server");
    return [httpsRequest, { host: hostname.replace(/^\[|\]$/g, ""), port, ca } as RequestOptions];
  }

  /** Sends a request that must succeed. @throws Error with the server's message */
  async must(method: string, path: string, body?: Uint8Array): Promise<Json> {
    return successBody(await this.send(method, path, body), method, path);
  }

  /** Like `must`; retries while the key worker starts, as it does after a lock. */
  async mustWhenReady(method: string, path: string, body: Uint8Array): Promise<Json> {
    for (let attempt = 0; ; attempt++) {
      const response = await this.send(method, path, body);
      if (response.status !== unavailable || attempt === mostAttempts) return successBody(response, method, path);
      await sleep(100);
    }
  }

  get hasToken(): boolean {
    return this.#token !== null;
  }

  async isLocked(): Promise<boolean> {
    const { locked, initialized } = await this.must("GET", "/v1/status");
    return locked === true || initialized === false;
  }

  /** Returns how many keys were derived so far; null while one is being derived, or when the server does not say. */
  async derivations(): Promise<number | null> {
    const { status, text } = await this.send("GET", "/v1/metrics");
    const sample = (name: string) => Number(new RegExp(`^strongroom_${name} (\\S+)$`, "m").exec(text)?.[1]);
    const isIdle = sample("derivations_running") === 0 && sample("derivations_waiting") === 0;
    return status === 200 && isIdle ? sample("derivation_duration_seconds_count") : null;
  }
}

const unavailable = 503;
const mostAttempts = 100;

function successBody({ status, json }: Response, method: string, path: string): Json {
  if (status === 200) return json;
  const root = path.split("/").slice(0, 3).join("/");
  throw new RequestError(`${method} ${root} failed: ${String(json["error"] ?? status)}`);
}

/** A request that the server refused, or that did not reach it. */
export class RequestError extends Error {}

async function collect(response: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  const isJson = response.headers["content-type"]?.startsWith("application/json") === true;
  return { status: response.statusCode ?? 0, text, json: (isJson ? JSON.parse(text) : {}) as Json };
}

/** Returns the root token of a home: `STRONGROOM_TOKEN`, `STRONGROOM_TOKEN_FILE`, or the home's; null when unreadable. */
export function readToken(home: Home, environment: NodeJS.ProcessEnv): string | null {
  const { STRONGROOM_TOKEN: given, STRONGROOM_TOKEN_FILE: file } = environment;
  if (given) return given;
  if (!file) return home.read("token")?.toString("utf8").trim() ?? null;
  try {
    return readPlain(file).toString("utf8").trim();
  } catch {
    return null;
  }
}

/** A body of one member, whose value is a passphrase that is never a string. The caller wipes it. */
export function passphraseBody(passphrase: Uint8Array): Buffer {
  const quote = 0x22;
  const bytes: number[] = [];
  for (const byte of passphrase) {
    if (byte < 0x20) bytes.push(...Buffer.from(`\\u${byte.toString(16).padStart(4, "0")}`));
    else if (byte === quote || byte === 0x5c) bytes.push(0x5c, byte);
    else bytes.push(byte);
  }
  return Buffer.concat([Buffer.from('{"passphrase":"'), Buffer.from(bytes), Buffer.from('"}')]);
}

export function target(root: string, path: string): string {
  return `${root}/${encodeURIComponent(path)}`;
}
