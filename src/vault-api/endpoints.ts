/** Endpoints for Vault's clients: a row each, of the same type as the native ones. See `VaultTable` for `*`, PUT and LIST. */
import { read } from "../audit/record.js";
import type { Endpoint } from "../http/endpoint.js";
import { listKeys } from "./kv.js";
import { health } from "./sys.js";
import { VaultTable } from "./table.js";

// biome-ignore format: one line a row, so that the columns can be compared
const endpoints: readonly Endpoint[] = [
  { operation: "health", at: "GET /v1/sys/health", scope: "open", guard: "none", audit: null, handle: health },
  { operation: "health", at: "HEAD /v1/sys/health", scope: "open", guard: "none", audit: null, handle: health },

  { operation: "listKeys", at: "LIST /v1/*/metadata", scope: "list", guard: "unlocked", audit: read("list"), handle: listKeys },
  { operation: "listKeys", at: "LIST /v1/*/metadata/:path", scope: "list", guard: "unlocked", audit: read("list"), handle: listKeys },
];

export const vaultTable = new VaultTable(endpoints);
