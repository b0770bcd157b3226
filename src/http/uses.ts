/** Handlers of the broker: bindings, sessions of agents, and approvals. */
import { randomBytes } from "node:crypto";
import type { Request, Response } from "express";
import { readBinding } from "../broker/binding.js";
import type { Broker, BrokerAccess } from "../broker/broker.js";
import { canonicalHost } from "../broker/host-name.js";
import { readSessionRequest } from "../broker/session-request.js";
import { VaultError } from "../errors.js";
import { maxFieldsBytes, ownMemory, readBody, sharedMemory } from "./body.js";
import type { Service } from "./endpoint.js";
import { secretPathOf, stillValid } from "./guards.js";
import { callerOf, contextOf, queryOf } from "./request.js";
import { sendJson } from "./response.js";

export async function setUse({ vault }: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const use = readBinding(await readBody(req, res, maxFieldsBytes, ownMemory));
  await vault.secrets.setUses(path, use, null, stillValid(req));
  sendJson(res, 200, { ok: true, path, ...shown(use) });
}

export async function removeUse({ vault }: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  const host = canonicalHost(queryOf(req, ["host"]).get("host") ?? "");
  if (host === null) throw new VaultError("BAD_REQUEST", "the parameter host must name the binding's host");
  await vault.secrets.setUses(path, null, host, stillValid(req));
  sendJson(res, 200, { ok: true, path, message: `${path} is no longer bound to ${host}` });
}

export async function showUses({ vault }: Service, req: Request, res: Response, parameter: string): Promise<void> {
  const path = secretPathOf(req, parameter);
  await vault.secrets.history(path); // 404 for a secret that does not exist
  const [uses = []] = await vault.secrets.usesOf([path]);
  sendJson(res, 200, { uses: uses.map((use) => ({ path, ...shown(use) })) });
}

export async function listUses({ vault }: Service, req: Request, res: Response): Promise<void> {
  const prefix = (queryOf(req, ["prefix"]).get("prefix") ?? "").normalize("NFC");
  const uses = await vault.uses.within(undefined, prefix);
  sendJson(res, 200, { uses: uses.map((use) => shown(use)) });
}

/** Leaves out what is not set. */
function shown(use: object): object {
  return Object.fromEntries(Object.entries(use).filter(([, value]) => value !== null));
}

/** Creates a token that can use the secrets at some paths and read nothing, with what a program needs for the broker. */
export async function createAgent(service: Service, req: Request, res: Response): Promise<void> {
  const { vault, tokens } = service;
  vault.mustBeUnlocked();
  const broker = mustHaveBroker(service);
  const { paths, ttlSeconds, ...rules } = readSessionRequest(await readBody(req, res, maxFieldsBytes, ownMemory));
  const name = `agent-${randomBytes(6).toString("hex")}`;
  const { text, shown: token } = await tokens.create({ name, can: ["use"], paths, ttlSeconds });
  contextOf(req).subject = name;
  broker.setRules(name, rules);
  const access = await accessOfNew(service, broker, text).catch(async (error: unknown) => {
    await tokens.revoke(name).catch(() => {}); // no one gets its value
    throw error;
  });
  sendJson(res, 200, { ok: true, token: text, ...token, ...access });
}

async function accessOfNew({ credentials }: Service, broker: Broker, token: string): Promise<BrokerAccess> {
  const caller = credentials.authenticate(token);
  if (caller === null) throw new VaultError("UNAVAILABLE", "the token was revoked: try again");
  return broker.accessOf(caller);
}

export async function showBroker(service: Service, req: Request, res: Response): Promise<void> {
  service.vault.mustBeUnlocked();
  sendJson(res, 200, { ...(await mustHaveBroker(service).accessOf(callerOf(req))) });
}

export function listApprovals(service: Service, _req: Request, res: Response): void {
  sendJson(res, 200, { approvals: mustHaveBroker(service).approvals.list() });
}

/** The body may hold the passphrase, so the key worker reads it. */
export async function decideApproval(service: Service, req: Request, res: Response, id: string): Promise<void> {
  const { vault, approveWith, passphraseLockout } = service;
  const { approvals } = mustHaveBroker(service);
  const body = await readBody(req, res, maxFieldsBytes, sharedMemory);
  try {
    const decision = await vault.secrets.readDecision(body);
    if (decision.hasPassphrase) await checkPassphrase(service, req, body);
    else if (approveWith === "passphrase" && decision.approve) {
      throw new VaultError("BAD_REQUEST", "this server approves with the passphrase: send it as well");
    }
    passphraseLockout.check(req);
    approvals.decide(id, { approve: decision.approve, for: decision.duration });
    sendJson(res, 200, { ok: true, message: decision.approve ? "the request is approved" : "the request is refused" });
  } finally {
    body.fill(0);
  }
}

/** An unlock of an unlocked vault checks the passphrase and changes nothing. @throws VaultError UNAUTHORIZED */
async function checkPassphrase(
  { vault, passphraseLockout }: Service,
  req: Request,
  body: Parameters<Service["vault"]["unlock"]>[0],
) {
  vault.mustBeUnlocked();
  try {
    await vault.unlock(body, () => passphraseLockout.check(req));
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== "UNAUTHORIZED") throw error;
    passphraseLockout.fail(req);
    throw new VaultError("UNAUTHORIZED", error.message, { credential: "passphrase" });
  }
}

function mustHaveBroker({ broker }: Service): Broker {
  if (broker !== null) return broker;
  throw new VaultError("NOT_FOUND", "the broker is off: start the server with --broker-port");
}
