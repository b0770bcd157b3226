/** Owns the requests that scenarios send. */
import type { Request } from "../programs/load.js";
import { pathOf } from "../vaults.js";

/** Gets of the first `count` secrets of a filled vault. */
export function gets(count: number): Request[] {
  return Array.from({ length: count }, (_, n) => ({ method: "GET", path: `/v1/secrets/${pathOf(n)}` }));
}

/** Puts of `valueBytes` to `count` secrets of one directory. */
export function puts(count: number, valueBytes: number, directory = "put"): Request[] {
  return Array.from({ length: count }, (_, n) => ({
    method: "PUT",
    path: `/v1/secrets/${directory}/secret-${String(n).padStart(4, "0")}`,
    valueBytes,
  }));
}

export const status: readonly Request[] = [{ method: "GET", path: "/v1/status" }];
