/** Handlers of `auth`: what the token is, its end, child tokens, and the login with a token's name and value. */
import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import { goSeconds, wholeSeconds } from "../../workers/go-values.js";
import type { Caller } from "../access/credentials.js";
import type { Scope } from "../access/scopes.js";
import { rootName } from "../access/token-request.js";
import type { ChildRequest, NewToken, ShownToken } from "../access/tokens.js";
import { scopes } from "../contract/names.js";
import { VaultError } from "../errors.js";
import { ownMemory, readBody } from "../http/body.js";
import type { Service } from "../http/endpoint.js";
import { bearerOf } from "../http/guards.js";
import { callerOf, contextOf, onlyHeader } from "../http/request.js";
import { type BodyMembers, maxMembersBytes, membersOf } from "./members.js";
import { sendNothing, sendObject } from "./response.js";

/** As Vault: of a token that is made without an end, and of a login. */
const defaultSeconds = 32 * 24 * 3600;
const loginSeconds = 24 * 3600;

/** Returns the token of a request: in Vault's header, or as a bearer. */
export function tokenOf(req: IncomingMessage): string | undefined {
  return onlyHeader(req.rawHeaders, "x-vault-token") || bearerOf(req); // an empty header is none, as in Vault
}

export async function lookUpSelf(service: Service, req: Request, res: Response): Promise<void> {
  membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "lookUpSelf");
  sendObject(res, describe(service, shownOf(service, req), presented(req)));
}

/** The root token may look up any, another one itself; without a token in the body it is the caller's. */
export async function lookUp(service: Service, req: Request, res: Response): Promise<void> {
  const members = membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "lookUp");
  const { text, shown } = namedToken(service, req, members["token"] || presented(req));
  sendObject(res, describe(service, shown, text));
}

/** A token's life cannot be extended: returns what is left of it. */
export async function renewSelf(service: Service, req: Request, res: Response): Promise<void> {
  checkIncrement(membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "renewSelf"));
  sendObject(res, null, { auth: authOf(service, shownOf(service, req), presented(req)) });
}

export async function renew(service: Service, req: Request, res: Response): Promise<void> {
  const members = membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "renew");
  checkIncrement(members);
  const { text, shown } = namedToken(service, req, members["token"]);
  sendObject(res, null, { auth: authOf(service, shown, text) });
}

export async function revokeSelf(service: Service, req: Request, res: Response): Promise<void> {
  membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "revokeSelf");
  await revokeCaller(service, req, res, callerOf(req));
}

/** The root token may revoke any, another one itself. */
export async function revoke(service: Service, req: Request, res: Response): Promise<void> {
  const members = membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "revoke");
  await revokeCaller(service, req, res, namedCaller(service, req, members["token"]).caller);
}

export async function createToken(service: Service, req: Request, res: Response): Promise<void> {
  const members = membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "createToken");
  const made = await service.tokens.createChild(presented(req), readChild(members, callerOf(req) === "root"));
  sendMade(service, req, res, made, isNothing(members["meta"]) ? null : ["meta is not kept: nothing will show it"]);
}

/** A wrong name or value counts as a wrong token does; a value that has ended is no guess. */
export async function logIn(service: Service, req: Request, res: Response): Promise<void> {
  const { credentials, tokens, tokenLockout } = service;
  const members = membersOf(await readBody(req, res, maxMembersBytes, ownMemory), "logIn");
  const { role_id: name, secret_id: text } = members;
  if (typeof name !== "string" || name === "") throw new VaultError("BAD_REQUEST", "missing role_id");
  if (typeof text !== "string" || text === "") throw new VaultError("BAD_REQUEST", "missing secret_id");
  await tokens.refresh();
  tokenLockout.check(req); // others may have failed since
  const caller = orEnded(() => credentials.authenticate(text));
  if (caller === "ended" || caller === null || (caller === "root" ? rootName : caller.token.name) !== name) {
    if (caller !== "ended") tokenLockout.fail(req);
    throw new VaultError("BAD_REQUEST", "invalid role or secret ID");
  }
  if (caller !== "root") tokens.touch(caller);
  const made = await tokens.createChild(text, { label: "login", can: null, ttlSeconds: loginSeconds });
  sendMade(service, req, res, made);
}

function sendMade(
  service: Service,
  req: Request,
  res: Response,
  { text, shown }: NewToken,
  warnings: readonly string[] | null = null,
): void {
  contextOf(req).subject = shown.name;
  sendObject(res, null, { auth: authOf(service, shown, text), warnings });
}

function isNothing(value: unknown): boolean {
  return (value ?? "") === "" || (typeof value === "object" && Object.keys(value ?? {}).length === 0);
}

async function revokeCaller({ tokens }: Service, req: Request, res: Response, caller: Caller): Promise<void> {
  if (caller === "root") {
    throw new VaultError("BAD_REQUEST", "the root token is not revoked but replaced: strongroom token rotate");
  }
  contextOf(req).subject = caller.token.name;
  await tokens.revokeValue(caller);
  sendNothing(res);
}

type Shown = ShownToken | "root";

function shownOf({ tokens }: Service, req: Request): Shown {
  const caller = callerOf(req);
  return caller === "root" ? caller : tokens.show(caller);
}

/** A renewal extends nothing: what it asks for must only be a duration. @throws VaultError BAD_REQUEST */
function checkIncrement({ increment }: BodyMembers): void {
  secondsOf("increment", increment);
}

/** Returns the token that a body names. @throws VaultError FORBIDDEN, BAD_REQUEST */
function namedToken(service: Service, req: Request, named: unknown): { readonly text: string; readonly shown: Shown } {
  const { text, caller } = namedCaller(service, req, named);
  return { text, shown: caller === "root" ? caller : service.tokens.show(caller) };
}

function namedCaller(
  service: Service,
  req: Request,
  text: unknown,
): { readonly text: string; readonly caller: Caller } {
  if (typeof text !== "string" || text === "") throw new VaultError("BAD_REQUEST", "missing token");
  if (text === presented(req)) return { text, caller: callerOf(req) };
  if (callerOf(req) !== "root") throw new VaultError("FORBIDDEN", "only the root token may name another one");
  const caller = orEnded(() => service.credentials.authenticate(text));
  if (caller === null || caller === "ended") throw new VaultError("FORBIDDEN", "bad token");
  return { text, caller };
}

function orEnded<T>(authenticate: () => T): T | "ended" {
  try {
    return authenticate();
  } catch {
    return "ended";
  }
}

function presented(req: Request): string {
  return tokenOf(req) ?? "";
}

function describe({ tokens }: Service, shown: Shown, id: string): object {
  const fixed = { entity_id: "", explicit_max_ttl: 0, meta: null, num_uses: 0, renewable: false, type: "service" };
  if (shown === "root") {
    const times = { creation_time: 0, creation_ttl: 0, expire_time: null, ttl: 0 };
    const names = { accessor: rootName, display_name: rootName, path: "auth/token/root", policies: [rootName] };
    return { ...fixed, ...times, ...names, id, orphan: true };
  }
  const { name, can, createdAt, expiresAt, parent } = shown;
  const { left, whole } = tokens.timesOf(shown);
  const made = { creation_time: Math.floor(Date.parse(createdAt) / 1000), issue_time: createdAt };
  const times = { ...made, creation_ttl: whole ?? 0, expire_time: expiresAt, ttl: left ?? 0 };
  const names = { accessor: name, display_name: name, path: "auth/token/create", policies: policiesShown(can) };
  return { ...fixed, ...times, ...names, id, orphan: parent === undefined };
}

/** A token always has policies: `default` stands for what every token can do with itself. */
function policiesShown(can: readonly Scope[]): readonly string[] {
  return can.length === 0 ? ["default"] : can;
}

function authOf({ tokens }: Service, shown: Shown, text: string): object {
  const [name, policies] = shown === "root" ? [rootName, [rootName]] : [shown.name, policiesShown(shown.can)];
  const left = shown === "root" ? null : tokens.timesOf(shown).left;
  return {
    ...{ client_token: text, accessor: name, policies, token_policies: policies, metadata: null },
    ...{ lease_duration: left ?? 0, renewable: false, entity_id: "", token_type: "service" },
    ...{ orphan: shown === "root" || shown.parent === undefined, mfa_requirement: null, num_uses: 0 },
  };
}

/** @throws VaultError BAD_REQUEST */
function readChild(members: BodyMembers, isRoot: boolean): ChildRequest {
  const { display_name: label, policies, ttl, lease, explicit_max_ttl: most } = members;
  const wanted = secondsOf("ttl", ttl) || secondsOf("lease", lease) || defaultSeconds;
  const limit = secondsOf("explicit_max_ttl", most) || wanted;
  return { label: labelOf(label), can: policiesOf(policies, isRoot), ttlSeconds: Math.min(wanted, limit) };
}

function labelOf(label: unknown): string {
  const text = typeof label === "string" ? label.toLowerCase().replace(/[^a-z0-9_-]+/g, "-") : "";
  return text === "" ? "token" : text;
}

/**
 * Policies are scopes. None at all: those of the parent (null). `default` alone, or only empty names: none, so the child can only
 * look up, renew and revoke itself. `root`, which outweighs the others: all scopes, and only for a child of the root token.
 * @throws VaultError BAD_REQUEST
 */
function policiesOf(policies: unknown, isRoot: boolean): readonly Scope[] | null {
  const names = namesIn(policies);
  if (names.length === 0) return null;
  const wanted = new Set(names.filter((name) => name !== "default" && name !== ""));
  if (wanted.has(rootName)) {
    if (isRoot) return scopes;
    throw new VaultError("BAD_REQUEST", "root tokens may not be created without parent token being root");
  }
  const known = scopes.filter((scope) => wanted.has(scope));
  if (known.length === wanted.size) return known;
  throw new VaultError("BAD_REQUEST", `child policies must be subset of parent: they are some of ${scopes.join(", ")}`);
}

/** Reads a list of names, or a text with commas. @throws VaultError BAD_REQUEST */
function namesIn(policies: unknown): readonly string[] {
  if (policies === undefined || policies === null || policies === "") return [];
  const names: unknown = typeof policies === "string" ? policies.split(",") : policies;
  if (!Array.isArray(names) || !names.every((name) => typeof name === "string"))
    throw new VaultError("BAD_REQUEST", "policies must be a list of scopes");
  return names.map((name: string) => name.trim().toLowerCase());
}

const maxSeconds = 100 * 365 * 24 * 3600;

/** Reads seconds, or a duration such as `1h30m`; 0 where there is none. @throws VaultError BAD_REQUEST */
function secondsOf(name: string, value: unknown): number {
  const seconds = goSeconds(value ?? "");
  if (seconds !== null && seconds >= 0 && seconds <= maxSeconds) return wholeSeconds(seconds);
  throw new VaultError("BAD_REQUEST", `${name} must be a number of seconds, or a duration such as 1h30m`);
}
