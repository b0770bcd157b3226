/** The requests whose cost users ask about. */
import type { Workload } from "./measure.js";
import { numberedPath } from "./vaults.js";

export const getSecrets = 100;
export const listSecrets = 10_000;

export function get(connections: number): Workload {
  const requests = Array.from({ length: getSecrets }, (_, n) => {
    return { method: "GET", path: `/v1/secrets/${numberedPath(n)}` } as const;
  });
  return { connections, requests, perSecond: 400 };
}

/** Puts of 1 KiB; each path is overwritten again and again. */
export const put: Workload = {
  connections: 16,
  requests: Array.from({ length: 256 }, (_, n) => {
    const body = JSON.stringify({ value: "v".repeat(1024), type: "api-key" });
    return { method: "PUT", path: `/v1/secrets/put/secret-${String(n).padStart(3, "0")}`, body } as const;
  }),
  perSecond: 50,
};

/** The same hundred secrets in one request. */
export const batch: Workload = {
  connections: 4,
  requests: [{ method: "POST", path: "/v1/batch", body: JSON.stringify({ operations: gets() }) }],
  perSecond: 50,
};

function gets(): readonly { readonly get: string }[] {
  return Array.from({ length: getSecrets }, (_, n) => ({ get: numberedPath(n) }));
}

/** One page of a hundred. */
export const list: Workload = {
  connections: 1,
  requests: [{ method: "GET", path: "/v1/secrets?prefix=team-00003/" }],
  perSecond: 50,
};
