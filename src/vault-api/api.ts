/** The API for Vault's clients, as a listener needs it: its table, its token header and its errors. */
import type { IncomingMessage } from "node:http";
import { goSeconds } from "../../workers/go-values.js";
import { type ErrorCode, errorStatuses, VaultError } from "../errors.js";
import type { Api } from "../http/adapter.js";
import { bearerToken } from "../http/guards.js";
import { onlyHeader } from "../http/request.js";
import type { ErrorForm } from "../http/response.js";
import { kvRows } from "./kv.js";
import type { VaultEndpoint } from "./members.js";
import { mountRows } from "./mounts.js";
import { jsonType } from "./response.js";
import { sysRows } from "./sys.js";
import { VaultTable } from "./table.js";
import { authRows } from "./tokens.js";
import { transitRows } from "./transit.js";
import { Unsupported, unsupported } from "./unsupported.js";

/** Namespaces that mean none. */
const rootNamespaces = new Set(["", "/", "root", "root/"]);

/** Statuses of Vault that differ from the native API's. */
const statuses: Partial<Record<ErrorCode, number>> = {
  UNAUTHORIZED: 403,
  VAULT_LOCKED: 503,
  ALREADY_EXISTS: 400,
  PRECONDITION_FAILED: 400,
};

const errors: ErrorForm = (error, requestId) => {
  const body = { errors: errorMessages(error, requestId) };
  const isWarning = error instanceof Unsupported && error.isWarning;
  return { status: statusFor(error), body: isWarning ? { ...body, warnings: body.errors } : body, type: jsonType };
};

function statusFor({ code, credential, allow }: VaultError): number {
  if (code === "UNAUTHORIZED" && credential !== "token") return 400;
  return allow === undefined ? (statuses[code] ?? errorStatuses[code]) : 405;
}

/** Clients look for some of these texts, and take a 404 without any for missing data. */
function errorMessages(error: VaultError, requestId: string | undefined): readonly string[] {
  const { code, message, credential } = error;
  if (code === "NOT_FOUND") return error instanceof Unsupported ? [message] : [];
  if (code === "VAULT_LOCKED") return ["Vault is sealed"];
  if (code === "FORBIDDEN" || (code === "UNAUTHORIZED" && credential !== undefined))
    return ["permission denied", message];
  return [requestId === undefined ? message : `${message} (request id ${requestId})`];
}

/** Returns the token of a request: in Vault's header, or as a bearer. */
function requestToken(req: IncomingMessage): string | undefined {
  return onlyHeader(req.rawHeaders, "x-vault-token") || bearerToken(req); // an empty header is none, as in Vault
}

/** @throws VaultError BAD_REQUEST */
function checkHeaders({ headers }: IncomingMessage): void {
  const { "x-vault-namespace": namespace = "", "x-vault-wrap-ttl": wrapTtl = "" } = headers;
  if (!rootNamespaces.has(String(namespace)))
    throw new VaultError("BAD_REQUEST", "there are no namespaces: send no X-Vault-Namespace (unset VAULT_NAMESPACE)");
  if (goSeconds(wrapTtl) !== 0)
    throw new VaultError("BAD_REQUEST", "responses cannot be wrapped: send no X-Vault-Wrap-TTL (unset VAULT_WRAP_TTL)");
}

/** The rows stand in the file of their subject; see `VaultTable` for `*`, PUT and LIST in them. */
export const vaultEndpoints: readonly VaultEndpoint[] = [
  ...sysRows,
  ...mountRows,
  ...kvRows,
  ...authRows,
  ...transitRows,
];

export const vaultApi: Api & { readonly table: VaultTable } = {
  table: new VaultTable(vaultEndpoints),
  requestMethod: ({ method = "" }) => (method === "LINK" ? "LIST" : method), // respelled for Node's parser
  readToken: requestToken,
  countsMissingToken: () => false, // clients ask for the server's state, and before they log in
  checkHeaders,
  noEndpoint: unsupported,
  errors,
  page: () => null,
};
