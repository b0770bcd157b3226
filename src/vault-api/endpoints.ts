/** Endpoints for Vault's clients. The rows stand in the file of their subject; see `VaultTable` for `*`, PUT and LIST in them. */
import { kvRows } from "./kv.js";
import type { VaultEndpoint } from "./members.js";
import { mountRows } from "./mounts.js";
import { sysRows } from "./sys.js";
import { VaultTable } from "./table.js";
import { authRows } from "./tokens.js";
import { transitRows } from "./transit.js";

export const vaultEndpoints: readonly VaultEndpoint[] = [
  ...sysRows,
  ...mountRows,
  ...kvRows,
  ...authRows,
  ...transitRows,
];

export const vaultTable = new VaultTable(vaultEndpoints);
