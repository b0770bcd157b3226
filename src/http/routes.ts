/** Table of endpoints and their handlers. */
import type { Request, RequestHandler, Response } from "express";
import { requireScope } from "../access/scopes.js";
import { VaultError } from "../errors.js";
import { conditionOf, unlessTagged } from "./conditional-headers.js";
import type { Endpoint, Service } from "./endpoint.js";
import { readAudit, verifyAudit } from "./endpoints/audit-endpoints.js";
import { batch } from "./endpoints/batch-endpoint.js";
import { changePassphrase, createKey, deleteKey, keys, rotate, unlock } from "./endpoints/key-endpoints.js";
import { list } from "./endpoints/list-endpoint.js";
import { metrics } from "./endpoints/metrics-endpoint.js";
import { snapshot } from "./endpoints/snapshot-endpoint.js";
import { createToken, listTokens, revokeToken, rotateToken, showSelf } from "./endpoints/token-endpoints.js";
import { prune, undo, versions } from "./endpoints/version-endpoints.js";
import { mustBeWithin, mustBeWithinStill, secretPathOf } from "./permission.js";
import { ownMemory, sharedMemory } from "./plaintext-hygiene.js";
import { readBody } from "./request-body.js";
import { callerOf, contextOf } from "./request-context.js";
import { hasParameter, parseQuery } from "./request-target.js";
import { sendBytes, sendJson, sendNotModified } from "./responses.js";

type Resource = {
  readonly route: string;
  readonly methods: Readonly<Record<string, Endpoint>>;
  readonly secret: boolean;
};

const secretsRoot = "/v1/secrets";
const versionsRoot = "/v1/versions";
const keysRoot = "/v1/keys";
const listResource: Resource = { route: secretsRoot, methods: { GET: list }, secret: true };
const secretResource: Resource = {
  route: `${secretsRoot}/:path`,
  methods: { GET: get, PUT: put, DELETE: remove },
  secret: true,
};
const versionsResource: Resource = {
  route: `${versionsRoot}/:path`,
  methods: { GET: versions, POST: undo, DELETE: prune },
  secret: true,
};
const tokensRoot = "/v1/tokens";
const tokenMethods = { POST: rotateToken, DELETE: revokeToken };
const tokenResource: Resource = { route: `${tokensRoot}/:name`, methods: tokenMethods, secret: false };
const selfResource: Resource = { ...tokenResource, methods: { GET: showSelf, ...tokenMethods } };
const keyResource: Resource = { route: `${keysRoot}/:id`, methods: { DELETE: deleteKey }, secret: false };
const resources = new Map<string, Resource>([
  ["/v1/status", { route: "/v1/status", methods: { GET: status }, secret: false }],
  ["/v1/init", { route: "/v1/init", methods: { POST: init }, secret: false }],
  ["/v1/unlock", { route: "/v1/unlock", methods: { POST: unlock }, secret: false }],
  ["/v1/lock", { route: "/v1/lock", methods: { POST: lock }, secret: false }],
  ["/v1/openapi.json", { route: "/v1/openapi.json", methods: { GET: openapi }, secret: false }],
  ["/v1/metrics", { route: "/v1/metrics", methods: { GET: metrics }, secret: false }],
  ["/v1/shutdown", { route: "/v1/shutdown", methods: { POST: shutdown }, secret: false }],
  ["/v1/snapshot", { route: "/v1/snapshot", methods: { POST: snapshot }, secret: false }],
  ["/v1/audit", { route: "/v1/audit", methods: { GET: readAudit }, secret: false }],
  ["/v1/audit/verify", { route: "/v1/audit/verify", methods: { POST: verifyAudit }, secret: false }],
  [tokensRoot, { route: tokensRoot, methods: { GET: listTokens, POST: createToken }, secret: false }],
  [`${tokensRoot}/self`, selfResource],
  ["/v1/passphrase", { route: "/v1/passphrase", methods: { POST: changePassphrase }, secret: false }],
  ["/v1/rotate", { route: "/v1/rotate", methods: { POST: rotate }, secret: false }],
  [keysRoot, { route: keysRoot, methods: { GET: keys, POST: createKey }, secret: false }],
  [secretsRoot, listResource],
  ["/v1/batch", { route: "/v1/batch", methods: { POST: batch }, secret: true }],
]);

const passphrasePaths = new Set(["/v1/unlock", "/v1/passphrase", "/v1/rotate", keysRoot]);

export function isStatus(req: Request): boolean {
  return req.method === "GET" && contextOf(req).target.path === "/v1/status";
}

/** Whether the request's body has a passphrase that is checked. */
export function takesPassphrase(req: Request): boolean {
  return req.method === "POST" && passphrasePaths.has(contextOf(req).target.path);
}

/** Serves `GET /v1/status`, which needs no token and is never limited. */
export function serveStatus(service: Service): RequestHandler {
  return (req, res, next) => {
    if (!isStatus(req)) return next();
    return status(service, req, res);
  };
}

/** Checks in this order: unknown route 404, shutting down 503, token's scope 403, vault locked 403; then calls the endpoint. */
export function dispatch(service: Service): RequestHandler {
  return async (req, res) => {
    const { path } = contextOf(req).target;
    const resource = resourceAt(path);
    if (resource === undefined)
      throw new VaultError("NOT_FOUND", "there is no such endpoint: GET /v1/openapi.json lists them");
    const endpoint = Object.hasOwn(resource.methods, req.method) ? resource.methods[req.method] : undefined;
    if (endpoint === undefined) throw wrongMethod(resource);
    if (service.isShuttingDown()) throw new VaultError("UNAVAILABLE", "the server is shutting down");
    const rest = path.slice(rootLength(resource) + 1);
    const caller = callerOf(req);
    if (caller !== "root") requireScope(caller.token, operationOf(req, resource, rest));
    if (resource.secret) {
      service.vault.secrets.admit();
      service.audit?.mustAccept();
    }
    await endpoint(service, req, res, rest);
  };
}

/** Returns the route pattern of a path, for the log and the observers. */
export function routeOf(path: string): string {
  return resourceAt(path)?.route ?? "unknown";
}

function resourceAt(path: string): Resource | undefined {
  if (path.startsWith(`${secretsRoot}/`)) return secretResource;
  if (path.startsWith(`${versionsRoot}/`)) return versionsResource;
  if (path.startsWith(`${keysRoot}/`)) return keyResource;
  return resources.get(path) ?? (path.startsWith(`${tokensRoot}/`) ? tokenResource : undefined);
}

function rootLength({ route }: Resource): number {
  const parameter = route.indexOf("/:");
  return parameter < 0 ? route.length : parameter;
}

/** Returns the request's row in the table of scopes. */
function operationOf(req: Request, { route }: Resource, rest: string): string {
  const operation = `${req.method} ${route}`;
  if (operation === "GET /v1/secrets/:path" && rest === "") return "GET /v1/secrets";
  if (operation === "GET /v1/tokens/:name") return `GET ${tokensRoot}/self`;
  const asksForVersion = operation === "GET /v1/versions/:path" && hasParameter(contextOf(req).target.query, "version");
  return asksForVersion ? `${operation}?version` : operation;
}

function wrongMethod({ methods }: Resource): VaultError {
  const allow = Object.keys(methods);
  return new VaultError("NOT_FOUND", `this endpoint supports only ${allow.join(", ")}`, { allow });
}

/** With `require=unlocked`, the response's status says whether the vault is ready. */
async function status(service: Service, req: Request, res: Response): Promise<void> {
  const { vault, version, port, isShuttingDown } = service;
  const mustBeUnlocked = requiresUnlocked(contextOf(req).target.query);
  const found = await vault.report.status();
  const body = { ...found, serverRunning: !isShuttingDown(), version, port };
  sendJson(res, mustBeUnlocked && found.locked ? 503 : 200, body);
}

/** @throws VaultError BAD_REQUEST for any other requirement */
function requiresUnlocked(query: string): boolean {
  if (query === "" || !hasParameter(query, "require")) return false;
  if (parseQuery(query, ["require"]).get("require") === "unlocked") return true;
  throw new VaultError("BAD_REQUEST", "the parameter require is invalid: it must be unlocked");
}

async function init({ vault, maxBodyBytes }: Service, req: Request, res: Response): Promise<void> {
  const { keptAt, locked } = await vault.init(await readBody(req, res, maxBodyBytes, sharedMemory));
  const kept = keptAt === null ? "" : `; the old vault is kept in ${keptAt}, under its old passphrase`;
  const { vaultPath } = await vault.report.status();
  sendJson(res, 200, {
    ok: true,
    message: `the vault is initialized and ${locked ? "locked again meanwhile" : "unlocked"}${kept}`,
    vaultPath,
  });
}

async function lock({ vault }: Service, _req: Request, res: Response): Promise<void> {
  await vault.lock();
  sendJson(res, 200, { ok: true, message: "the vault is locked" });
}

function shutdown({ shutDown }: Service, _req: Request, res: Response): void {
  res.setHeader("Connection", "close");
  sendJson(res, 200, { ok: true, message: "the vault is being locked and the server is stopping" });
  shutDown();
}

/** Sends a copy, because sent bytes are wiped. */
function openapi({ contract }: Service, _req: Request, res: Response): void {
  sendBytes(res, 200, [Buffer.from(contract)]);
}

async function put(service: Service, req: Request, res: Response, rest: string): Promise<void> {
  const path = secretPathOf(req, rest);
  const condition = conditionOf(req);
  const body = await readBody(req, res, service.maxBodyBytes, ownMemory);
  await mustBeWithinStill(service, req, path, body, () => service.vault.secrets.judgePut(path, body));
  const { reply, tag } = await service.vault.secrets.put(path, body, condition);
  sendBytes(res, 200, [reply], tag);
}

async function get(service: Service, req: Request, res: Response, rest: string): Promise<void> {
  if (rest === "") return list(service, req, res);
  const path = secretPathOf(req, rest);
  const unless = unlessTagged(req);
  mustBeWithin(req, path);
  const { reply, tag } = await service.vault.secrets.get(path, unless);
  if (reply === null) sendNotModified(res, tag);
  else sendBytes(res, 200, [reply], tag);
}

async function remove({ vault }: Service, req: Request, res: Response, rest: string): Promise<void> {
  const path = secretPathOf(req, rest);
  const condition = conditionOf(req);
  mustBeWithin(req, path);
  await vault.secrets.remove(path, condition);
  sendJson(res, 200, { ok: true, path, message: "the secret is deleted" });
}
