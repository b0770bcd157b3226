/** Gets during a storm: 20 a second over the server's own socket, and as many requests to a bare server in this process. */
import { createServer, type RequestOptions, request } from "node:http";
import { duplexPair } from "node:stream";
import { text } from "node:stream/consumers";
import { percentile, type Vitals } from "../vitals.js";

const everyMs = 50;

/** Round trips, in milliseconds. */
type GetFigures = { readonly gets: number; readonly getP99: number | null; readonly bareP99: number | null };

type Reply = { readonly status: number; readonly body: string; readonly ms: number };

/**
 * Reads the vault's first secret by HEAD, which opens it and sends no value, until the returned function is called; that
 * returns the figures. Without a socket or a secret there is nothing to read.
 * @param token with `list` and `get`
 */
export async function startGets(
  socketPath: string | null,
  token: string,
  vitals: Vitals,
): Promise<() => Promise<GetFigures>> {
  const headers = { authorization: `Bearer ${token}`, host: "localhost" };
  const path = socketPath && (await firstPath({ socketPath, headers, agent: false }));
  if (!socketPath || !path) return async () => ({ gets: 0, getP99: null, bareP99: null });
  const [get, bare]: [number[], number[]] = [[], []];
  const running = new Set<Promise<void>>();
  const start = (options: RequestOptions, took: number[], report: (ms: number) => void) => {
    const one = send(options).then(
      ({ status, ms }) => {
        if (status !== 200) return;
        took.push(ms);
        report(ms);
      },
      () => {}, // the vault was locked, or the server stops
    );
    running.add(one);
    void one.then(() => running.delete(one));
  };
  const reader = { socketPath, headers, agent: false, method: "HEAD", path: `/v1/secrets/${encodeURIComponent(path)}` };
  const timer = setInterval(() => {
    start(reader, get, (ms) => vitals.stormGet(ms));
    start(bareRequest(), bare, (ms) => vitals.bareRequest(ms));
  }, everyMs);
  return async () => {
    clearInterval(timer);
    await Promise.all(running);
    return { gets: get.length, getP99: percentile(get, 0.99), bareP99: percentile(bare, 0.99) };
  };
}

async function firstPath(options: RequestOptions): Promise<string | null> {
  const { status, body } = await send({ ...options, path: "/v1/secrets?limit=1" });
  if (status !== 200) return null;
  const { entries } = JSON.parse(body) as { readonly entries: readonly { readonly path: string }[] };
  return entries[0]?.path ?? null;
}

const bareServer = createServer((_req, res) => void res.end());

/** Over a pair of streams: the bare server listens nowhere. Without an agent, which would make a connection of its own. */
function bareRequest(): RequestOptions {
  const [near, far] = duplexPair();
  bareServer.emit("connection", far);
  return { createConnection: () => near, host: "localhost", path: "/" };
}

function send(options: RequestOptions): Promise<Reply> {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    request(options, (response) => {
      const status = response.statusCode ?? 0;
      text(response).then((body) => resolve({ status, body, ms: performance.now() - begun }), reject);
    })
      .on("error", reject)
      .end();
  });
}
