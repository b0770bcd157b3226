/** Table of endpoints and their handlers. */
import type { Request, RequestHandler, Response } from "express";
import { VaultError } from "../errors.js";
import { parseSecretPath } from "../paths/secret-path.js";
import { batch } from "./batch-endpoint.js";
import { conditionOf, unlessTagged } from "./conditional-headers.js";
import type { Endpoint, Service } from "./endpoint.js";
import { changePassphrase, createKey, deleteKey, keys, rotate, unlock } from "./endpoints/key-endpoints.js";
import { list } from "./endpoints/list-endpoint.js";
import { snapshot } from "./endpoints/snapshot-endpoint.js";
import { ownMemory, sharedMemory } from "./plaintext-hygiene.js";
import { readBody } from "./request-body.js";
import { contextOf } from "./request-context.js";
import { sendBytes, sendJson, sendNotModified } from "./responses.js";
import { prune, undo, versions } from "./version-endpoints.js";

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
const keyResource: Resource = { route: `${keysRoot}/:id`, methods: { DELETE: deleteKey }, secret: false };
const resources = new Map<string, Resource>([
  ["/v1/status", { route: "/v1/status", methods: { GET: status }, secret: false }],
  ["/v1/init", { route: "/v1/init", methods: { POST: init }, secret: false }],
  ["/v1/unlock", { route: "/v1/unlock", methods: { POST: unlock }, secret: false }],
  ["/v1/lock", { route: "/v1/lock", methods: { POST: lock }, secret: false }],
  ["/v1/openapi.json", { route: "/v1/openapi.json", methods: { GET: openapi }, secret: false }],
  ["/v1/shutdown", { route: "/v1/shutdown", methods: { POST: shutdown }, secret: false }],
  ["/v1/snapshot", { route: "/v1/snapshot", methods: { POST: snapshot }, secret: false }],
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
    status(service, req, res);
  };
}

/** Checks in this order: unknown route 404, shutting down 503, vault locked 403; then calls the endpoint. */
export function dispatch(service: Service): RequestHandler {
  return async (req, res) => {
    const { path } = contextOf(req).target;
    const resource = resourceAt(path);
    if (resource === undefined)
      throw new VaultError("NOT_FOUND", "there is no such endpoint: GET /v1/openapi.json lists them");
    const endpoint = Object.hasOwn(resource.methods, req.method) ? resource.methods[req.method] : undefined;
    if (endpoint === undefined) throw wrongMethod(resource);
    if (service.isShuttingDown()) throw new VaultError("UNAVAILABLE", "the server is shutting down");
    if (resource.secret) service.vault.admit();
    await endpoint(service, req, res, path.slice(rootLength(resource) + 1));
  };
}

/** Returns the route pattern of a path, for the log. */
export function routeOf(path: string): string {
  return resourceAt(path)?.route ?? "unknown";
}

function resourceAt(path: string): Resource | undefined {
  if (path.startsWith(`${secretsRoot}/`)) return secretResource;
  if (path.startsWith(`${keysRoot}/`)) return keyResource;
  return path.startsWith(`${versionsRoot}/`) ? versionsResource : resources.get(path);
}

function rootLength(resource: Resource): number {
  if (resource === keyResource) return keysRoot.length;
  return resource === versionsResource ? versionsRoot.length : secretsRoot.length;
}

function wrongMethod({ methods }: Resource): VaultError {
  const allow = Object.keys(methods);
  return new VaultError("NOT_FOUND", `this endpoint supports only ${allow.join(", ")}`, { allow });
}

async function status({ vault, port, isShuttingDown }: Service, _req: Request, res: Response): Promise<void> {
  sendJson(res, 200, { ...(await vault.status()), serverRunning: !isShuttingDown(), port });
}

async function init({ vault, maxBodyBytes }: Service, req: Request, res: Response): Promise<void> {
  const { keptAt, locked } = await vault.init(await readBody(req, res, maxBodyBytes, sharedMemory));
  const kept = keptAt === null ? "" : `; the old vault is kept in ${keptAt}, under its old passphrase`;
  const { vaultPath } = await vault.status();
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
  const path = parseSecretPath(rest);
  const condition = conditionOf(req);
  const body = await readBody(req, res, service.maxBodyBytes, ownMemory);
  const { reply, tag } = await service.vault.put(path, body, condition);
  sendBytes(res, 200, [reply], tag);
}

async function get(service: Service, req: Request, res: Response, rest: string): Promise<void> {
  if (rest === "") return list(service, req, res);
  const { reply, tag } = await service.vault.get(parseSecretPath(rest), unlessTagged(req));
  if (reply === null) sendNotModified(res, tag);
  else sendBytes(res, 200, [reply], tag);
}

async function remove({ vault }: Service, req: Request, res: Response, rest: string): Promise<void> {
  const path = parseSecretPath(rest);
  await vault.remove(path, conditionOf(req));
  sendJson(res, 200, { ok: true, path, message: "the secret is deleted" });
}
