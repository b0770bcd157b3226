/** Endpoints for Vault's clients: a row each, of the same type as the native ones. See `VaultTable` for `*`, PUT and LIST. */
import { change, read } from "../audit/record.js";
import { anyUse, transitRows } from "../http/transit-rows.js";
import {
  changingVersions,
  deleteMetadata,
  deleteSecret,
  listKeys,
  patchMetadata,
  patchSecret,
  readConfig,
  readMetadata,
  readSecret,
  readSubkeys,
  refuseConfig,
  writeMetadata,
  writeSecret,
} from "./kv.js";
import type { VaultEndpoint } from "./members.js";
import {
  enableMount,
  listMounts,
  listMountsForUi,
  refuseMountChange,
  showMount,
  showMountOfPath,
  showTuning,
} from "./mounts.js";
import { health, initialized, leader, seal, sealStatus, unseal } from "./sys.js";
import { VaultTable } from "./table.js";
import { createToken, logIn, lookUp, lookUpSelf, renew, renewSelf, revoke, revokeSelf } from "./tokens.js";
import { hash, listKeyNames, random, transitHandlers } from "./transit.js";

// biome-ignore format: the formatter would give each member a line of its own, and rows could not be compared
const endpoints: readonly VaultEndpoint[] = [
  { operation: "health", at: "GET /v1/sys/health", scope: "open", guard: "none", audit: null, handle: health },
  { operation: "sealStatus", at: "GET /v1/sys/seal-status", scope: "open", guard: "none", audit: null, handle: sealStatus },
  { operation: "leader", at: "GET /v1/sys/leader", scope: "open", guard: "none", audit: null, handle: leader },
  { operation: "initialized", at: "GET /v1/sys/init", scope: "open", guard: "none", audit: null, handle: initialized },
  { operation: "lock", at: "POST /v1/sys/seal", scope: "lock", guard: "none", audit: change("lock"), handle: seal },
  { operation: "unlock", at: "POST /v1/sys/unseal", scope: "unlock", guard: "passphrase", audit: change("unlock"), handle: unseal },
  { operation: "listMounts", at: "GET /v1/sys/mounts", scope: "some", guard: "unlocked", audit: null, handle: listMounts },
  { operation: "showMount", at: "GET /v1/sys/mounts/:name", scope: "some", guard: "unlocked", audit: null, handle: showMount },
  { operation: "enableMount", at: "POST /v1/sys/mounts/:name", scope: "root", guard: "unlocked", audit: null, handle: enableMount },
  { operation: "disableMount", at: "DELETE /v1/sys/mounts/:name", scope: "root", guard: "unlocked", audit: null, handle: refuseMountChange },
  { operation: "showTuning", at: "GET /v1/sys/mounts/:name/tune", scope: "some", guard: "unlocked", audit: null, handle: showTuning },
  { operation: "tuneMount", at: "POST /v1/sys/mounts/:name/tune", scope: "root", guard: "unlocked", audit: null, handle: refuseMountChange },
  { operation: "listMountsForUi", at: "GET /v1/sys/internal/ui/mounts", scope: "some", guard: "unlocked", audit: null, handle: listMountsForUi },
  { operation: "showMountOfPath", at: "GET /v1/sys/internal/ui/mounts/:path", scope: "some", guard: "unlocked", audit: null, handle: showMountOfPath },

  { operation: "readSecret", at: "GET /v1/*/data/:path", scope: "get", guard: "unlocked", audit: read("get"), handle: readSecret },
  { operation: "writeSecret", at: "POST /v1/*/data/:path", scope: "put", guard: "unlocked", audit: change("put"), handle: writeSecret },
  { operation: "patchSecret", at: "PATCH /v1/*/data/:path", scope: "put", guard: "unlocked", audit: change("put"), handle: patchSecret },
  { operation: "deleteSecret", at: "DELETE /v1/*/data/:path", scope: "delete", guard: "unlocked", audit: change("delete"), handle: deleteSecret },
  { operation: "readSubkeys", at: "GET /v1/*/subkeys/:path", scope: "get", guard: "unlocked", audit: read("get"), handle: readSubkeys },
  { operation: "deleteVersions", at: "POST /v1/*/delete/:path", scope: "delete", guard: "unlocked", audit: change("delete"), handle: changingVersions("delete") },
  { operation: "undeleteVersions", at: "POST /v1/*/undelete/:path", scope: "put", guard: "unlocked", audit: change("undelete"), handle: changingVersions("undelete") },
  { operation: "destroyVersions", at: "POST /v1/*/destroy/:path", scope: "delete", guard: "unlocked", audit: change("destroy"), handle: changingVersions("destroy") },
  { operation: "readMetadata", at: "GET /v1/*/metadata/:path", scope: "list", guard: "unlocked", audit: read("versions"), handle: readMetadata },
  { operation: "writeMetadata", at: "POST /v1/*/metadata/:path", scope: "put", guard: "unlocked", audit: change("metadata"), handle: writeMetadata },
  { operation: "patchMetadata", at: "PATCH /v1/*/metadata/:path", scope: "put", guard: "unlocked", audit: change("metadata"), handle: patchMetadata },
  { operation: "deleteMetadata", at: "DELETE /v1/*/metadata/:path", scope: "delete", guard: "unlocked", audit: change("trash"), handle: deleteMetadata },
  { operation: "readConfig", at: "GET /v1/*/config", scope: "some", guard: "none", audit: null, handle: readConfig },
  { operation: "writeConfig", at: "POST /v1/*/config", scope: "some", guard: "none", audit: null, handle: refuseConfig },
  { operation: "listKeys", at: "LIST /v1/*/metadata", scope: "list", guard: "unlocked", audit: read("list"), handle: listKeys },
  { operation: "listKeys", at: "LIST /v1/*/metadata/:path", scope: "list", guard: "unlocked", audit: read("list"), handle: listKeys },

  { operation: "lookUpSelf", at: "GET /v1/auth/token/lookup-self", scope: "any", guard: "unlocked", audit: null, handle: lookUpSelf },
  { operation: "lookUpSelf", at: "POST /v1/auth/token/lookup-self", scope: "any", guard: "unlocked", audit: null, handle: lookUpSelf },
  { operation: "lookUpByGet", at: "GET /v1/auth/token/lookup", scope: "any", guard: "unlocked", audit: null, handle: lookUpSelf },
  { operation: "lookUp", at: "POST /v1/auth/token/lookup", scope: "any", guard: "unlocked", audit: null, handle: lookUp },
  { operation: "renewSelf", at: "POST /v1/auth/token/renew-self", scope: "any", guard: "unlocked", audit: null, handle: renewSelf },
  { operation: "renew", at: "POST /v1/auth/token/renew", scope: "any", guard: "unlocked", audit: null, handle: renew },
  { operation: "revokeSelf", at: "POST /v1/auth/token/revoke-self", scope: "any", guard: "unlocked", audit: change("token-revoke"), handle: revokeSelf },
  { operation: "revoke", at: "POST /v1/auth/token/revoke", scope: "any", guard: "unlocked", audit: change("token-revoke"), handle: revoke },
  { operation: "createToken", at: "POST /v1/auth/token/create", scope: "some", guard: "unlocked", audit: change("token-create"), handle: createToken },
  { operation: "logIn", at: "POST /v1/auth/approle/login", scope: "open", guard: "unlocked", audit: change("token-create"), handle: logIn },

  { operation: "listTransitKeys", at: "LIST /v1/*/keys", scope: anyUse, guard: "unlocked", audit: null, handle: listKeyNames },
  ...transitRows("/v1/*", transitHandlers),
  { operation: "random", at: "POST /v1/*/random", scope: anyUse, guard: "unlocked", audit: null, handle: random },
  { operation: "random", at: "POST /v1/*/random/:bytes", scope: anyUse, guard: "unlocked", audit: null, handle: random },
  { operation: "hash", at: "POST /v1/*/hash", scope: anyUse, guard: "unlocked", audit: null, handle: hash },
  { operation: "hash", at: "POST /v1/*/hash/:algorithm", scope: anyUse, guard: "unlocked", audit: null, handle: hash },
];

export const vaultTable = new VaultTable(endpoints);
