/** Endpoints of `auth`: what the token is, its end, child tokens, and the login with a token's name and value. */
import { goSeconds, wholeSeconds } from "../../workers/go-values.js";
import type { Caller } from "../access/credentials.js";
import type { Scope } from "../access/scopes.js";
import { rootName } from "../access/token-request.js";
import type { ChildRequest, NewToken, ShownToken } from "../access/tokens.js";
import { change } from "../audit/record.js";
import { scopes } from "../contract/names.js";
import { VaultError } from "../errors.js";
import { fields } from "../http/body.js";
import { type BasicCall, endpoint, none, type Service, type Whole } from "../http/endpoint.js";
import { type BodyMembers, parseBodyMembers } from "./members.js";
import { nothing, object } from "./response.js";

/** Lifetimes as in Vault: of a token that is made without an end, and of a login. */
const defaultSeconds = 32 * 24 * 3600;
const loginSeconds = 24 * 3600;

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const authRows = [
  endpoint({
    operation: "lookUpSelf", at: "GET /v1/auth/token/lookup-self", scope: "any", guard: "unlocked", audit: null,
    subject: none, body: fields(), conditional: false, reads: true,
    handle: lookUpSelf,
  }),
  endpoint({
    operation: "lookUpSelf", at: "POST /v1/auth/token/lookup-self", scope: "any", guard: "unlocked", audit: null,
    subject: none, body: fields(), conditional: false, reads: true,
    handle: lookUpSelf,
  }),
  endpoint({
    operation: "lookUpByGet", at: "GET /v1/auth/token/lookup", scope: "any", guard: "unlocked", audit: null,
    subject: none, body: fields(), conditional: false, reads: true,
    handle: lookUpSelf,
  }),
  endpoint({
    operation: "lookUp", at: "POST /v1/auth/token/lookup", scope: "any", guard: "unlocked", audit: null,
    subject: none, body: fields(), conditional: false, reads: true,
    handle(call) {
      const { text, caller } = findNamed(call, parseBodyMembers(call.body, "lookUp")["token"] || call.presented);
      if (caller === null) throw new VaultError("FORBIDDEN", "bad token");
      return object(describe(call.service, shownAs(call.service, caller), text));
    },
  }),
  endpoint({
    operation: "renewSelf", at: "POST /v1/auth/token/renew-self", scope: "any", guard: "unlocked", audit: null,
    subject: none, body: fields(), conditional: false, reads: true,
    handle(call) {
      checkIncrement(parseBodyMembers(call.body, "renewSelf"));
      return object(null, { auth: describeAuth(call.service, shownAs(call.service, call.caller), call.presented) });
    },
  }),
  endpoint({
    operation: "renew", at: "POST /v1/auth/token/renew", scope: "any", guard: "unlocked", audit: null,
    subject: none, body: fields(), conditional: false, reads: true,
    handle(call) {
      const members = parseBodyMembers(call.body, "renew");
      checkIncrement(members);
      const { text, caller } = findNamed(call, members["token"]);
      if (caller === null) throw new VaultError("BAD_REQUEST", "token not found");
      return object(null, { auth: describeAuth(call.service, shownAs(call.service, caller), text) });
    },
  }),
  endpoint({
    operation: "revokeSelf", at: "POST /v1/auth/token/revoke-self", scope: "any", guard: "unlocked", audit: change("token-revoke"),
    subject: none, body: fields(), conditional: false, reads: false,
    handle(call) {
      parseBodyMembers(call.body, "revokeSelf");
      return revokeCaller(call, call.caller);
    },
  }),
  endpoint({
    operation: "revoke", at: "POST /v1/auth/token/revoke", scope: "any", guard: "unlocked", audit: change("token-revoke"),
    subject: none, body: fields(), conditional: false, reads: false,
    handle(call) {
      const { caller } = findNamed(call, parseBodyMembers(call.body, "revoke")["token"]);
      return caller === null ? nothing : revokeCaller(call, caller);
    },
  }),
  endpoint({
    operation: "createToken", at: "POST /v1/auth/token/create", scope: "some", guard: "unlocked", audit: change("token-create"),
    subject: none, body: fields(), conditional: false, reads: false,
    async handle(call) {
      const members = parseBodyMembers(call.body, "createToken");
      const { service, presented, caller } = call;
      const created = await service.tokens.createChild(presented, readChild(members, caller === "root"));
      return made(call, created, isNothing(members["meta"]) ? null : ["meta is not kept: nothing will show it"]);
    },
  }),
  endpoint({
    operation: "logIn", at: "POST /v1/auth/approle/login", scope: "login", guard: "background", audit: change("token-create"),
    subject: none, body: fields(), conditional: false, reads: false,
    handle: logIn,
  }),
];

type Asked = BasicCall & { readonly caller: Caller; readonly presented: string };

function lookUpSelf(call: Asked & { readonly body: Uint8Array }): Whole {
  parseBodyMembers(call.body, "lookUpSelf");
  return object(describe(call.service, shownAs(call.service, call.caller), call.presented));
}

/** A wrong name or value counts as a wrong token does; a value that has ended is no guess. */
async function logIn(call: BasicCall & { readonly body: Uint8Array }): Promise<Whole> {
  const { credentials, tokens } = call.service;
  const { role_id: name, secret_id: text } = parseBodyMembers(call.body, "logIn");
  if (typeof name !== "string" || name === "") throw new VaultError("BAD_REQUEST", "missing role_id");
  if (typeof text !== "string" || text === "") throw new VaultError("BAD_REQUEST", "missing secret_id");
  await tokens.refresh();
  call.permit(); // others may have failed since
  const caller = orEnded(() => credentials.authenticate(text));
  if (caller === "ended") throw new VaultError("UNAUTHORIZED", invalidLogin, { reason: "revoked" });
  if (caller === null || (caller === "root" ? rootName : caller.token.name) !== name)
    throw new VaultError("UNAUTHORIZED", invalidLogin);
  call.recorded.caller = caller;
  if (caller !== "root") tokens.touch(caller);
  return made(call, await tokens.createChild(text, { label: "login", can: null, ttlSeconds: loginSeconds }));
}

const invalidLogin = "invalid role or secret ID";

function made(
  { service, recorded }: BasicCall,
  { text, shown }: NewToken,
  warnings: readonly string[] | null = null,
): Whole {
  recorded.subject = shown.name;
  return object(null, { auth: describeAuth(service, shown, text), warnings });
}

function isNothing(value: unknown): boolean {
  return (value ?? "") === "" || (typeof value === "object" && Object.keys(value ?? {}).length === 0);
}

async function revokeCaller({ service, permit, recorded }: BasicCall, caller: Caller): Promise<Whole> {
  if (caller === "root") {
    throw new VaultError("BAD_REQUEST", "the root token is not revoked but replaced: strongroom token rotate");
  }
  recorded.subject = caller.token.name;
  await service.tokens.revokeValue(caller, permit);
  return nothing;
}

type Shown = ShownToken | "root";

function shownAs({ tokens }: Service, caller: Caller): Shown {
  return caller === "root" ? caller : tokens.show(caller);
}

/** A renewal extends nothing: what it asks for must only be a duration. @throws VaultError BAD_REQUEST */
function checkIncrement({ increment }: BodyMembers): void {
  readSeconds("increment", increment);
}

/**
 * Returns the token that a body names; `caller` is null where it is not valid. The root token may name any, another one itself.
 * @throws VaultError FORBIDDEN, BAD_REQUEST
 */
function findNamed(call: Asked, text: unknown): { readonly text: string; readonly caller: Caller | null } {
  if (typeof text !== "string" || text === "") throw new VaultError("BAD_REQUEST", "missing token");
  if (text === call.presented) return { text, caller: call.caller };
  if (call.caller !== "root") throw new VaultError("FORBIDDEN", "only the root token may name another one");
  const caller = orEnded(() => call.service.credentials.authenticate(text));
  return { text, caller: caller === "ended" ? null : caller };
}

function orEnded<T>(authenticate: () => T): T | "ended" {
  try {
    return authenticate();
  } catch {
    return "ended";
  }
}

function describe({ tokens }: Service, shown: Shown, id: string): object {
  const fixed = { entity_id: "", explicit_max_ttl: 0, meta: null, num_uses: 0, renewable: false, type: "service" };
  if (shown === "root") {
    const times = { creation_time: 0, creation_ttl: 0, expire_time: null, ttl: 0 };
    const names = { accessor: rootName, display_name: rootName, path: "auth/token/root", policies: [rootName] };
    return { ...fixed, ...times, ...names, id, orphan: true };
  }
  const { name, can, createdAt, expiresAt, parent } = shown;
  const { left, whole } = tokens.tokenTimes(shown);
  const made = { creation_time: Math.floor(Date.parse(createdAt) / 1000), issue_time: createdAt };
  const times = { ...made, creation_ttl: whole ?? 0, expire_time: expiresAt, ttl: left ?? 0 };
  const names = { accessor: name, display_name: name, path: "auth/token/create", policies: policiesShown(can) };
  return { ...fixed, ...times, ...names, id, orphan: parent === undefined };
}

/** A token always has policies: `default` stands for what every token can do with itself. */
function policiesShown(can: readonly Scope[]): readonly string[] {
  return can.length === 0 ? ["default"] : can;
}

function describeAuth({ tokens }: Service, shown: Shown, text: string): object {
  const [name, policies] = shown === "root" ? [rootName, [rootName]] : [shown.name, policiesShown(shown.can)];
  const left = shown === "root" ? null : tokens.tokenTimes(shown).left;
  return {
    ...{ client_token: text, accessor: name, policies, token_policies: policies, metadata: null },
    ...{ lease_duration: left ?? 0, renewable: false, entity_id: "", token_type: "service" },
    ...{ orphan: shown === "root" || shown.parent === undefined, mfa_requirement: null, num_uses: 0 },
  };
}

/** @throws VaultError BAD_REQUEST */
function readChild(members: BodyMembers, isRoot: boolean): ChildRequest {
  const { display_name: label, policies, ttl, lease, explicit_max_ttl: most } = members;
  const wanted = readSeconds("ttl", ttl) || readSeconds("lease", lease) || defaultSeconds;
  const limit = readSeconds("explicit_max_ttl", most) || wanted;
  return { label: tokenLabel(label), can: scopesFromPolicies(policies, isRoot), ttlSeconds: Math.min(wanted, limit) };
}

function tokenLabel(label: unknown): string {
  const text = typeof label === "string" ? label.toLowerCase().replace(/[^a-z0-9_-]+/g, "-") : "";
  return text === "" ? "token" : text;
}

/**
 * Policies are scopes. None at all: those of the parent (null). `default` alone, or only empty names: none, so the child can only
 * look up, renew and revoke itself. `root`, which outweighs the others: all scopes, and only for a child of the root token.
 * @throws VaultError BAD_REQUEST
 */
function scopesFromPolicies(policies: unknown, isRoot: boolean): readonly Scope[] | null {
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
function readSeconds(name: string, value: unknown): number {
  const seconds = goSeconds(value ?? "");
  if (seconds !== null && seconds >= 0 && seconds <= maxSeconds) return wholeSeconds(seconds);
  throw new VaultError("BAD_REQUEST", `${name} must be a number of seconds, or a duration such as 1h30m`);
}
