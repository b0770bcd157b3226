/** Endpoints of the API: a row each. */
import { change, read } from "../audit/record.js";
import type { OperationId } from "../contract/operations.js";
import { readAudit, verifyAudit } from "./audit.js";
import { check } from "./check.js";
import { type Endpoint, EndpointTable } from "./endpoint.js";
import { changePassphrase, createKey, deleteKey, keys, rotate, unlock } from "./keys.js";
import { createReview, reviewFacts, reviewStorm, tradeReviewCode, vitals } from "./review.js";
import {
  batch,
  changeMetadata,
  destroyVersion,
  get,
  history,
  list,
  prune,
  put,
  remove,
  undo,
  version,
} from "./secrets.js";
import { init, lock, metrics, openapi, shutdown, snapshot, status } from "./server.js";
import { createToken, listTokens, revokeToken, rotateToken, showSelf } from "./tokens.js";
import { listTransitKeys, oneTimeCode, randomBytes, transitHandlers } from "./transit.js";
import { anyUse, transitRows } from "./transit-rows.js";
import { destroyTrashed, listTrash, trash, untrash } from "./trash.js";
import {
  createAgent,
  decideApproval,
  listApprovals,
  listUses,
  removeUse,
  setUse,
  showBroker,
  showUses,
} from "./uses.js";

// biome-ignore format: the formatter would give each member a line of its own, and rows could not be compared
export const endpoints: readonly Endpoint<OperationId>[] = [
  { operation: "status", at: "GET /v1/status", scope: "open", guard: "none", audit: null, handle: status },
  { operation: "openapi", at: "GET /v1/openapi.json", scope: "any", guard: "none", audit: null, handle: openapi },
  { operation: "metrics", at: "GET /v1/metrics", scope: "metrics", guard: "none", audit: null, handle: metrics },
  { operation: "vitals", at: "GET /v1/vitals", scope: "metrics", guard: "none", audit: null, handle: vitals },
  { operation: "createReview", at: "POST /v1/review", scope: "root", guard: "none", audit: change("review"), handle: createReview },
  { operation: "tradeReviewCode", at: "POST /v1/review/token", scope: "open", guard: "none", audit: null, handle: tradeReviewCode },
  { operation: "reviewFacts", at: "GET /v1/review", scope: "page", guard: "none", audit: null, handle: reviewFacts },
  { operation: "reviewStorm", at: "POST /v1/review/storm", scope: "page", guard: "passphrase", audit: change("review-storm"), handle: reviewStorm },
  { operation: "shutdown", at: "POST /v1/shutdown", scope: "root", guard: "none", audit: change("shutdown"), handle: shutdown },
  { operation: "snapshot", at: "POST /v1/snapshot", scope: "root", guard: "none", audit: change("snapshot"), handle: snapshot },

  { operation: "init", at: "POST /v1/init", scope: "root", guard: "none", audit: change("init"), handle: init },
  { operation: "unlock", at: "POST /v1/unlock", scope: "unlock", guard: "passphrase", audit: change("unlock"), handle: unlock },
  { operation: "lock", at: "POST /v1/lock", scope: "lock", guard: "none", audit: change("lock"), handle: lock },

  { operation: "changePassphrase", at: "POST /v1/passphrase", scope: "root", guard: "passphrase", audit: change("passphrase"), handle: changePassphrase },
  { operation: "rotate", at: "POST /v1/rotate", scope: "root", guard: "passphrase", audit: change("rotate"), handle: rotate },
  { operation: "keys", at: "GET /v1/keys", scope: "root", guard: "none", audit: null, handle: keys },
  { operation: "createKey", at: "POST /v1/keys", scope: "root", guard: "passphrase", audit: change("key-create"), handle: createKey },
  { operation: "deleteKey", at: "DELETE /v1/keys/:id", scope: "root", guard: "none", audit: change("key-delete"), handle: deleteKey },

  { operation: "readAudit", at: "GET /v1/audit", scope: "audit", guard: "none", audit: null, handle: readAudit },
  { operation: "verifyAudit", at: "POST /v1/audit/verify", scope: "audit", guard: "none", audit: null, handle: verifyAudit },

  { operation: "listTokens", at: "GET /v1/tokens", scope: "root", guard: "none", audit: null, handle: listTokens },
  { operation: "createToken", at: "POST /v1/tokens", scope: "root", guard: "none", audit: change("token-create"), handle: createToken },
  { operation: "showSelf", at: "GET /v1/tokens/self", scope: "any", guard: "none", audit: null, handle: showSelf },
  { operation: "rotateToken", at: "POST /v1/tokens/:name", scope: "root", guard: "none", audit: change("token-rotate"), handle: rotateToken },
  { operation: "revokeToken", at: "DELETE /v1/tokens/:name", scope: "root", guard: "none", audit: change("token-revoke"), handle: revokeToken },

  { operation: "list", at: "GET /v1/secrets", scope: "list", guard: "unlocked", audit: read("list"), handle: list },
  { operation: "list", at: "GET /v1/secrets?background", scope: "list", guard: "background", audit: read("list"), handle: list },
  { operation: "list", at: "GET /v1/secrets/", scope: "list", guard: "unlocked", audit: read("list"), handle: list },
  { operation: "list", at: "GET /v1/secrets/?background", scope: "list", guard: "background", audit: read("list"), handle: list },
  { operation: "get", at: "GET /v1/secrets/:path", scope: "get", guard: "unlocked", audit: read("get"), handle: get },
  { operation: "put", at: "PUT /v1/secrets/:path", scope: "put", guard: "unlocked", audit: change("put"), handle: put },
  { operation: "delete", at: "DELETE /v1/secrets/:path", scope: "delete", guard: "unlocked", audit: change("delete"), handle: remove },
  { operation: "changeMetadata", at: "PATCH /v1/metadata/:path", scope: "put", guard: "unlocked", audit: change("metadata"), handle: changeMetadata },
  { operation: "versions", at: "GET /v1/versions/:path", scope: "list", guard: "unlocked", audit: read("versions"), handle: history },
  { operation: "versions", at: "GET /v1/versions/:path?version", scope: "get", guard: "unlocked", audit: read("get-version"), handle: version },
  { operation: "undo", at: "POST /v1/versions/:path", scope: "put", guard: "unlocked", audit: change("undo"), handle: undo },
  { operation: "prune", at: "DELETE /v1/versions/:path", scope: "delete", guard: "unlocked", audit: change("prune"), handle: prune },
  { operation: "prune", at: "DELETE /v1/versions/:path?version", scope: "delete", guard: "unlocked", audit: change("destroy"), handle: destroyVersion },
  { operation: "listTrash", at: "GET /v1/trash", scope: "list", guard: "unlocked", audit: read("list-trash"), handle: listTrash },
  { operation: "trash", at: "POST /v1/trash/:path", scope: "delete", guard: "unlocked", audit: change("trash"), handle: trash },
  { operation: "untrash", at: "POST /v1/untrash/:path", scope: "put", guard: "unlocked", audit: change("untrash"), handle: untrash },
  { operation: "destroyTrashed", at: "DELETE /v1/trash/:path", scope: "delete", guard: "unlocked", audit: change("destroy"), handle: destroyTrashed },
  { operation: "batch", at: "POST /v1/batch", scope: ["get", "put", "delete"], guard: "unlocked", audit: change("batch"), handle: batch },

  { operation: "check", at: "POST /v1/check", scope: "get", guard: "unlocked", audit: read("check"), handle: check },

  { operation: "listTransitKeys", at: "GET /v1/transit/keys", scope: anyUse, guard: "unlocked", audit: null, handle: listTransitKeys },
  ...transitRows("/v1/transit", transitHandlers),
  { operation: "randomBytes", at: "POST /v1/transit/random", scope: anyUse, guard: "unlocked", audit: null, handle: randomBytes },
  { operation: "oneTimeCode", at: "POST /v1/otp/:path", scope: "use", guard: "unlocked", audit: read("otp"), handle: oneTimeCode },

  { operation: "listUses", at: "GET /v1/uses", scope: "root", guard: "unlocked", audit: null, handle: listUses },
  { operation: "showUses", at: "GET /v1/uses/:path", scope: "root", guard: "unlocked", audit: null, handle: showUses },
  { operation: "setUse", at: "PUT /v1/uses/:path", scope: "root", guard: "unlocked", audit: change("use-change"), handle: setUse },
  { operation: "removeUse", at: "DELETE /v1/uses/:path", scope: "root", guard: "unlocked", audit: change("use-change"), handle: removeUse },
  { operation: "createAgent", at: "POST /v1/agents", scope: "root", guard: "none", audit: change("token-create"), handle: createAgent },
  { operation: "showBroker", at: "GET /v1/broker", scope: "use", guard: "none", audit: null, handle: showBroker },
  { operation: "listApprovals", at: "GET /v1/approvals", scope: "root", guard: "none", audit: null, handle: listApprovals },
  { operation: "decideApproval", at: "POST /v1/approvals/:id", scope: "root", guard: "passphrase", audit: change("approve"), handle: decideApproval },
];

export const endpointTable = new EndpointTable(endpoints);
