/** Endpoints for Vault's clients: a row each, of the same type as the native ones. See `VaultTable` for `*`, PUT and LIST. */
import { change, read } from "../audit/record.js";
import type { Endpoint } from "../http/endpoint.js";
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
import {
  configureKey,
  createKey,
  dataKey,
  deleteKey,
  exportKey,
  hash,
  listKeyNames,
  random,
  rotateKey,
  showKey,
  usingKey,
} from "./transit.js";

/** Public parts, and what shows no plaintext: with any scope for transit keys. */
const anyUse = ["encrypt", "decrypt", "sign"] as const;

// biome-ignore format: the formatter would give each member a line of its own, and rows could not be compared
const endpoints: readonly Endpoint[] = [
  { operation: "health", at: "GET /v1/sys/health", scope: "open", guard: "none", audit: null, handle: health },
  { operation: "health", at: "HEAD /v1/sys/health", scope: "open", guard: "none", audit: null, handle: health },

  { operation: "sealStatus", at: "GET /v1/sys/seal-status", scope: "open", guard: "none", audit: null, handle: sealStatus },
  { operation: "leader", at: "GET /v1/sys/leader", scope: "open", guard: "none", audit: null, handle: leader },
  { operation: "initialized", at: "GET /v1/sys/init", scope: "open", guard: "none", audit: null, handle: initialized },
  { operation: "lock", at: "POST /v1/sys/seal", scope: "lock", guard: "none", audit: change("lock"), handle: seal },
  { operation: "unlock", at: "POST /v1/sys/unseal", scope: "unlock", guard: "passphrase", audit: change("unlock"), handle: unseal },
  { operation: "listMounts", at: "GET /v1/sys/mounts", scope: "any", guard: "unlocked", audit: null, handle: listMounts },
  { operation: "showMount", at: "GET /v1/sys/mounts/:name", scope: "any", guard: "unlocked", audit: null, handle: showMount },
  { operation: "enableMount", at: "POST /v1/sys/mounts/:name", scope: "root", guard: "unlocked", audit: null, handle: enableMount },
  { operation: "disableMount", at: "DELETE /v1/sys/mounts/:name", scope: "root", guard: "unlocked", audit: null, handle: refuseMountChange },
  { operation: "showTuning", at: "GET /v1/sys/mounts/:name/tune", scope: "any", guard: "unlocked", audit: null, handle: showTuning },
  { operation: "tuneMount", at: "POST /v1/sys/mounts/:name/tune", scope: "root", guard: "unlocked", audit: null, handle: refuseMountChange },
  { operation: "listMountsForUi", at: "GET /v1/sys/internal/ui/mounts", scope: "any", guard: "unlocked", audit: null, handle: listMountsForUi },
  { operation: "showMountOfPath", at: "GET /v1/sys/internal/ui/mounts/:path", scope: "any", guard: "unlocked", audit: null, handle: showMountOfPath },

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
  { operation: "readConfig", at: "GET /v1/*/config", scope: "any", guard: "none", audit: null, handle: readConfig },
  { operation: "writeConfig", at: "POST /v1/*/config", scope: "any", guard: "none", audit: null, handle: refuseConfig },
  { operation: "listKeys", at: "LIST /v1/*/metadata", scope: "list", guard: "unlocked", audit: read("list"), handle: listKeys },
  { operation: "listKeys", at: "LIST /v1/*/metadata/:path", scope: "list", guard: "unlocked", audit: read("list"), handle: listKeys },

  { operation: "lookUpSelf", at: "GET /v1/auth/token/lookup-self", scope: "any", guard: "unlocked", audit: null, handle: lookUpSelf },
  { operation: "lookUp", at: "POST /v1/auth/token/lookup", scope: "any", guard: "unlocked", audit: null, handle: lookUp },
  { operation: "renewSelf", at: "POST /v1/auth/token/renew-self", scope: "any", guard: "unlocked", audit: null, handle: renewSelf },
  { operation: "renew", at: "POST /v1/auth/token/renew", scope: "any", guard: "unlocked", audit: null, handle: renew },
  { operation: "revokeSelf", at: "POST /v1/auth/token/revoke-self", scope: "any", guard: "unlocked", audit: change("token-revoke"), handle: revokeSelf },
  { operation: "revoke", at: "POST /v1/auth/token/revoke", scope: "any", guard: "unlocked", audit: change("token-revoke"), handle: revoke },
  { operation: "createToken", at: "POST /v1/auth/token/create", scope: "any", guard: "unlocked", audit: change("token-create"), handle: createToken },
  { operation: "logIn", at: "POST /v1/auth/approle/login", scope: "open", guard: "unlocked", audit: change("token-create"), handle: logIn },

  { operation: "listTransitKeys", at: "LIST /v1/*/keys", scope: anyUse, guard: "unlocked", audit: null, handle: listKeyNames },
  { operation: "createTransitKey", at: "POST /v1/*/keys/:name", scope: "root", guard: "unlocked", audit: change("key-change"), handle: createKey },
  { operation: "showTransitKey", at: "GET /v1/*/keys/:name", scope: anyUse, guard: "unlocked", audit: null, handle: showKey },
  { operation: "deleteTransitKey", at: "DELETE /v1/*/keys/:name", scope: "root", guard: "unlocked", audit: change("key-change"), handle: deleteKey },
  { operation: "rotateTransitKey", at: "POST /v1/*/keys/:name/rotate", scope: "root", guard: "unlocked", audit: change("key-change"), handle: rotateKey },
  { operation: "configureTransitKey", at: "POST /v1/*/keys/:name/config", scope: "root", guard: "unlocked", audit: change("key-change"), handle: configureKey },
  { operation: "exportTransitKey", at: "GET /v1/*/export/:name", scope: "root", guard: "unlocked", audit: change("key-export"), handle: exportKey },
  { operation: "encrypt", at: "POST /v1/*/encrypt/:name", scope: "encrypt", guard: "unlocked", audit: read("encrypt"), handle: usingKey("encrypt") },
  { operation: "decrypt", at: "POST /v1/*/decrypt/:name", scope: "decrypt", guard: "unlocked", audit: read("decrypt"), handle: usingKey("decrypt") },
  { operation: "rewrap", at: "POST /v1/*/rewrap/:name", scope: anyUse, guard: "unlocked", audit: read("rewrap"), handle: usingKey("rewrap") },
  { operation: "sign", at: "POST /v1/*/sign/:name", scope: "sign", guard: "unlocked", audit: read("sign"), handle: usingKey("sign") },
  { operation: "verify", at: "POST /v1/*/verify/:name", scope: anyUse, guard: "unlocked", audit: read("verify"), handle: usingKey("verify") },
  { operation: "hmac", at: "POST /v1/*/hmac/:name", scope: "sign", guard: "unlocked", audit: read("hmac"), handle: usingKey("hmac") },
  { operation: "dataKey", at: "POST /v1/*/datakey/:name", scope: "encrypt", guard: "unlocked", audit: read("datakey"), handle: dataKey },
  { operation: "random", at: "POST /v1/*/random", scope: anyUse, guard: "unlocked", audit: null, handle: random },
  { operation: "random", at: "POST /v1/*/random/:bytes", scope: anyUse, guard: "unlocked", audit: null, handle: random },
  { operation: "hash", at: "POST /v1/*/hash", scope: anyUse, guard: "unlocked", audit: null, handle: hash },
  { operation: "hash", at: "POST /v1/*/hash/:algorithm", scope: anyUse, guard: "unlocked", audit: null, handle: hash },
];

export const vaultTable = new VaultTable(endpoints);
