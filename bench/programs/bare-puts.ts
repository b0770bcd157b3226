/**
 * The puts that an import is compared with: a file of secrets over 16 keep-alive connections of `node:https`. Prints the
 * milliseconds that they took.
 */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import pMap from "p-map";

type Entry = { readonly path: string; readonly value: string; readonly type: string };

const connections = 16;
const { BENCH_ENTRIES = "", BENCH_PREFIX = "", BENCH_CERT = "", BENCH_TOKEN = "", BENCH_PORT = "" } = process.env;
const { secrets } = JSON.parse(readFileSync(BENCH_ENTRIES, "utf8")) as { secrets: Entry[] };
const agent = new Agent({ keepAlive: true, maxSockets: connections, ca: readFileSync(BENCH_CERT) });

const began = performance.now();
await pMap(secrets, put, { concurrency: connections });
process.stdout.write(`${performance.now() - began}\n`);
agent.destroy();

function put({ path, value, type }: Entry): Promise<void> {
  const body = Buffer.from(JSON.stringify({ value, type }));
  const headers = { authorization: `Bearer ${BENCH_TOKEN}`, "content-length": body.length };
  const target = `/v1/secrets/${BENCH_PREFIX}${path}`;
  return new Promise((resolve, reject) => {
    const sent = request({ agent, host: "localhost", port: BENCH_PORT, method: "PUT", path: target, headers });
    sent.on("error", reject).on("response", (response) => {
      response.resume().on("end", () => (response.statusCode === 200 ? resolve() : reject(new Error("refused"))));
    });
    sent.end(body);
  });
}
