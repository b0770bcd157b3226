/** Scenarios of batches: the time for a thousand secrets, one by one and in batches. */
import { Agent, request } from "node:https";
import pMap from "p-map";
import { later } from "../../test/support/clean-up.js";
import { pathOf } from "../filled-vaults.js";
import { settle } from "../measure.js";
import type { Finding, Outcome, Target } from "../outcome.js";
import type { Request } from "../programs/request.js";
import type { Bench, Scenario } from "../scenario.js";
import { ratios, spreadOf } from "../statistics.js";
import type { StrongroomSubject } from "../subjects.js";

const secrets = 1000;
const putsInBatch = 100;
const putConnections = 16;
const value = "v".repeat(1024);

/** A way to do the same work. */
type Way = { readonly name: string; readonly connections: number; readonly requests: readonly Request[] };

export const batchGets: Scenario = {
  name: "batch-get",
  about: `${secrets} gets of 200 bytes in one batch, against one by one on one connection`,
  vaults: () => [secrets],
  async run(bench) {
    const paths = Array.from({ length: secrets }, (_, n) => pathOf(n));
    const single = paths.map((path) => ({ method: "GET", path: `/v1/secrets/${path}` }) as const);
    const one = { name: "one by one, 1 connection", connections: 1, requests: single };
    const all = { name: "one batch", connections: 1, requests: [batchOf(paths.map((get) => ({ get })))] };
    return [await compareTimes(bench, `${secrets} gets`, secrets, one, all, { atLeast: 5 })];
  },
};

export const batchPuts: Scenario = {
  name: "batch-put",
  about: `${secrets} puts of 1 KiB in batches of ${putsInBatch} on one connection, against single ones on ${putConnections}`,
  vaults: () => [0],
  async run(bench) {
    const numbers = Array.from({ length: secrets }, (_, n) => n);
    const body = JSON.stringify({ value, type: "api-key" });
    const single = numbers.map((n) => ({ method: "PUT", path: `/v1/secrets/single/${n}`, body }) as const);
    const batches = Array.from({ length: secrets / putsInBatch }, (_, batch) =>
      batchOf(
        numbers
          .slice(batch * putsInBatch, (batch + 1) * putsInBatch)
          .map((n) => ({ put: `batch/${n}`, value, type: "api-key" })),
      ),
    );
    const one = { name: `single, ${putConnections} connections`, connections: putConnections, requests: single };
    const many = { name: `batches of ${putsInBatch}`, connections: 1, requests: batches };
    return [await compareTimes(bench, `${secrets} puts`, 0, one, many, { atLeast: 3 })];
  },
};

function batchOf(operations: readonly object[]): Request {
  return { method: "POST", path: "/v1/batch", body: JSON.stringify({ operations }) };
}

/** Alternates both ways; each waits until the server is idle again, so that none pays for what another left. */
async function compareTimes(
  bench: Bench,
  scenario: string,
  count: number,
  first: Way,
  second: Way,
  target: Target,
): Promise<Outcome> {
  const subject = await bench.strongroom(count);
  const ways = [first, second].map((way) => ({ way, agent: agentFor(subject, way), times: [] as number[] }));
  for (let round = -1; round < bench.options.rounds; round++) {
    for (const { way, agent, times } of ways) {
      const time = await timeOf(subject, agent, way);
      if (round >= 0) times.push(time); // the first is warm-up
      await settle(subject);
    }
  }
  const [slow = [], fast = []] = ways.map(({ times }) => times);
  const findings: Finding[] = ways.map(({ way, times }) => ({ what: way.name, value: spreadOf(times), unit: "ms" }));
  const ratio: Finding = { what: "times as fast", value: spreadOf(ratios(slow, fast)), unit: "×", target };
  return { scenario, series: [], findings: [...findings, ratio] };
}

function agentFor({ server }: StrongroomSubject, { connections }: Way): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, ca: server.certificate });
  later(() => agent.destroy());
  return agent;
}

async function timeOf(subject: StrongroomSubject, agent: Agent, { connections, requests }: Way): Promise<number> {
  const began = performance.now();
  await pMap(requests, (each) => mustSend(subject, agent, each), { concurrency: connections });
  return performance.now() - began;
}

function mustSend(
  { server, headers }: StrongroomSubject,
  agent: Agent,
  { method, path, body }: Request,
): Promise<void> {
  const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
  const options = { agent, host: "localhost", port: server.port, method, path, headers: { ...headers, ...length } };
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`${method} ${path} returned ${response.statusCode}`));
      });
    });
    sent.on("error", reject).end(body);
  });
}
