/** Workloads: requests, number of connections, and size of the vault. */
import { mustPut } from "../test/support/test-client.js";
import { pathOf, perDirectory } from "./filled-vaults.js";
import type { Options } from "./options.js";
import type { Request } from "./programs/request.js";
import type { StrongroomSubject } from "./subjects.js";

export type Workload = {
  readonly name: string;
  /** Number of secrets in the vault. */
  readonly secrets: number;
  readonly connections: number;
  readonly requests: readonly Request[];
  /** The fixed rate for latencies: one that every server that is compared sustains. */
  readonly perSecond: number;
  readonly slow?: true;
  /** Prepares the vault. */
  prepare?(subject: StrongroomSubject): Promise<void>;
};

export const manySecrets = 100_000;
const putConnections = 16;
const putsPerConnection = 16;
const oneMiB = 2 ** 20;

export const get: Workload = { name: "get", secrets: 100, connections: 64, requests: gets(100), perSecond: 400 };

export function getOn(connections: number): Workload {
  return { ...get, name: `get-${connections}`, connections };
}

/** Cycles through more secrets than any cache holds. */
export function getCold({ coldKeys }: Options): Workload {
  return { name: "get-cold", secrets: coldKeys, connections: 64, requests: gets(coldKeys), perSecond: 400 };
}

export const put: Workload = {
  name: "put",
  secrets: 0,
  connections: putConnections,
  requests: puts("put", putConnections * putsPerConnection, 1024),
  perSecond: 50,
};

export const mixed: Workload = {
  name: "mixed",
  secrets: 100,
  connections: 64,
  requests: ninetyTen(64),
  perSecond: 200,
};

export const status: Workload = {
  name: "status",
  secrets: 0,
  connections: 64,
  requests: [{ method: "GET", path: "/v1/status" }],
  perSecond: 400,
};

/** One directory's hundred secrets. */
export function listOfHundred(secrets: number): Workload {
  return {
    name: "list-100",
    secrets,
    connections: 1,
    requests: [{ method: "GET", path: "/v1/secrets?prefix=team-00003/" }],
    perSecond: 100,
  };
}

export const listOfAll: Workload = {
  name: "list-all",
  secrets: manySecrets,
  connections: 1,
  requests: [{ method: "GET", path: "/v1/secrets" }],
  perSecond: 0.5,
  slow: true,
};

const largePuts = puts("large", 16, oneMiB);

export const putLarge: Workload = { name: "put-large", secrets: 0, connections: 4, requests: largePuts, perSecond: 5 };

export const getLarge: Workload = {
  name: "get-large",
  secrets: 0,
  connections: 4,
  requests: largePuts.map(({ path }) => ({ method: "GET", path })),
  perSecond: 20,
  async prepare({ server }) {
    const body = { value: "v".repeat(oneMiB), type: "api-key" };
    for (const { path } of largePuts) await mustPut(server, path.slice("/v1/secrets/".length), body);
  },
};

/** All workloads for which two commits can be compared. */
export function workloads(options: Options): readonly Workload[] {
  const reads = [get, getOn(1), getCold(options), listOfHundred(manySecrets), listOfAll];
  return [...reads, put, mixed, status, getLarge, putLarge];
}

function gets(count: number): Request[] {
  return Array.from({ length: count }, (_, n) => ({ method: "GET", path: `/v1/secrets/${pathOf(n)}` }));
}

function puts(directory: string, count: number, valueBytes: number): Request[] {
  return Array.from({ length: count }, (_, n) => ({
    method: "PUT",
    path: `/v1/secrets/${directory}/secret-${String(n).padStart(4, "0")}`,
    valueBytes,
  }));
}

/** Ten requests for each connection, one of them a put; the requests are dealt out to the connections in turn. */
function ninetyTen(connections: number): Request[] {
  const reads = gets(perDirectory);
  const writes = puts("mixed", connections, 200);
  const turns = Array.from({ length: 10 }, (_, turn) => turn);
  return turns.flatMap((turn) =>
    writes.map((write, connection) => {
      const read = reads[(turn * connections + connection) % reads.length] ?? write;
      return turn === connection % turns.length ? write : read;
    }),
  );
}
