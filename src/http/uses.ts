/** Endpoints of the broker: bindings, sessions of agents, and approvals. */
import { randomBytes } from "node:crypto";
import type { SharedBytes } from "../../workers/protocol.js";
import { change } from "../audit/record.js";
import { readBinding } from "../broker/binding.js";
import type { Broker, BrokerAccess } from "../broker/broker.js";
import { canonicalHost } from "../broker/host-name.js";
import { readSessionRequest } from "../broker/session-request.js";
import { VaultError } from "../errors.js";
import { fields, passphrase } from "./body.js";
import { type BasicCall, endpoint, id, json, none, type Service, secret, type Whole } from "./endpoint.js";
import { parseQuery } from "./routes.js";

// biome-ignore format: what is decided for an endpoint stands in lines that can be compared
export const useRows = [
  endpoint({
    operation: "listUses", at: "GET /v1/uses", scope: "root", guard: "unlocked", audit: null,
    subject: none, body: null, conditional: false, query: readPrefix, reads: true,
    async handle({ vault, query: prefix }) {
      const uses = await vault.uses.within(undefined, prefix);
      return json({ uses: uses.map((use) => shown(use)) });
    },
  }),
  endpoint({
    operation: "showUses", at: "GET /v1/uses/:path", scope: "root", guard: "unlocked", audit: null,
    subject: secret, body: null, conditional: false, reads: true,
    async handle({ vault, path }) {
      await vault.secrets.history(path); // 404 for a secret that does not exist
      const [uses = []] = await vault.secrets.readUses([path]);
      return json({ uses: uses.map((use) => ({ path, ...shown(use) })) });
    },
  }),
  endpoint({
    operation: "setUse", at: "PUT /v1/uses/:path", scope: "root", guard: "unlocked", audit: change("use-change"),
    subject: secret, body: fields(), conditional: false, reads: false,
    async handle({ vault, path, body, permit }) {
      const use = readBinding(body);
      await vault.secrets.setUses(path, use, null, permit);
      return json({ ok: true, path, ...shown(use) });
    },
  }),
  endpoint({
    operation: "logIn", at: "POST /v1/uses/:path", scope: "root", guard: "unlocked", audit: change("use-login"),
    subject: secret, body: passphrase, conditional: false, query: readHost, reads: false,
    async handle({ service, vault, path, query: host, body, permit }) {
      const { tokenExchanges } = mustHaveBroker(service);
      await vault.secrets.history(path); // 404 for a secret that does not exist
      const [uses = []] = await vault.secrets.readUses([path]);
      const use = uses.find((each) => each.host === host);
      if (use === undefined) throw new VaultError("NOT_FOUND", `${path} is not bound to ${host}`);
      const state = await tokenExchanges.logIn({ path, host, port: use.port }, body, permit);
      return json({ ok: true, path, state });
    },
  }),
  endpoint({
    operation: "removeUse", at: "DELETE /v1/uses/:path", scope: "root", guard: "unlocked", audit: change("use-change"),
    subject: secret, body: null, conditional: false, query: readHost, reads: false,
    async handle({ vault, path, query: host, permit }) {
      await vault.secrets.setUses(path, null, host, permit);
      return json({ ok: true, path, message: `${path} is no longer bound to ${host}` });
    },
  }),
  endpoint({
    operation: "createAgent", at: "POST /v1/agents", scope: "root", guard: "background", audit: change("token-create"),
    subject: none, body: fields(), conditional: false, reads: false,
    handle: createAgent,
  }),
  endpoint({
    operation: "showBroker", at: "GET /v1/broker", scope: "use", guard: "key", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: async ({ service, caller }) => json({ ...(await mustHaveBroker(service).callerAccess(caller)) }),
  }),
  endpoint({
    operation: "listApprovals", at: "GET /v1/approvals", scope: "root", guard: "none", audit: null,
    subject: none, body: null, conditional: false, reads: true,
    handle: ({ service }) => json(listApprovals(service)),
  }),
  endpoint({
    operation: "decideApproval", at: "POST /v1/approvals/:id", scope: "root", guard: "passphrase", audit: change("approve"),
    subject: id, body: passphrase, conditional: false, reads: false,
    handle: decideApproval,
  }),
];

function readPrefix(query: string): string {
  return (parseQuery(query, ["prefix"]).get("prefix") ?? "").normalize("NFC");
}

/** @throws VaultError BAD_REQUEST */
function readHost(query: string): string {
  const host = canonicalHost(parseQuery(query, ["host"]).get("host") ?? "");
  if (host === null) throw new VaultError("BAD_REQUEST", "the parameter host must name the binding's host");
  return host;
}

/** Leaves out what is not set. */
function shown(use: object): object {
  return Object.fromEntries(Object.entries(use).filter(([, value]) => value !== null));
}

/** Creates a token that can use the secrets at some paths and read nothing, with what a program needs for the broker. */
async function createAgent({
  service,
  body,
  permit,
  recorded,
}: BasicCall & { readonly body: Uint8Array }): Promise<Whole> {
  const { tokens } = service;
  const { paths, ttlSeconds, ...rules } = readSessionRequest(body);
  const broker = mustHaveBroker(service);
  const name = `agent-${randomBytes(6).toString("hex")}`;
  const { text, shown: token } = await tokens.create({ name, can: ["use"], paths, ttlSeconds, session: true }, permit);
  recorded.subject = name;
  broker.setRules(name, rules);
  const end = token.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(token.expiresAt);
  const access = await accessOfNew(service, broker, text, end).catch(async (error: unknown) => {
    await tokens.revoke(name).catch(() => {}); // no one gets its value
    throw error;
  });
  return json({ ok: true, token: text, ...token, ...access });
}

async function accessOfNew(
  { credentials }: Service,
  broker: Broker,
  token: string,
  end: number,
): Promise<BrokerAccess> {
  const caller = credentials.authenticate(token);
  if (caller === null) throw new VaultError("UNAVAILABLE", "the token was revoked: try again");
  return broker.callerAccess(caller, end);
}

function listApprovals(service: Service): object {
  const approvals = mustHaveBroker(service).approvals.list();
  return { approvals, ...(service.approveWith === "passphrase" && { passphrase: true }) };
}

type Decision = BasicCall & { readonly id: string; readonly body: SharedBytes };

/** The body may hold the passphrase, so the key worker reads it. */
async function decideApproval({ service, vault, id: request, body, permit }: Decision): Promise<Whole> {
  const { approvals } = mustHaveBroker(service);
  const { approve, duration, hasPassphrase } = await vault.secrets.readDecision(body);
  if (!hasPassphrase && service.approveWith === "passphrase" && approve)
    throw new VaultError("BAD_REQUEST", "this server approves with the passphrase: send it as well");
  if (hasPassphrase) {
    vault.mustBeUnlocked();
    await vault.unlock(body, permit); // of an unlocked vault, it checks the passphrase and changes nothing
  }
  permit();
  approvals.decide(request, { approve, for: duration });
  return json({ ok: true, message: approve ? "the request is approved" : "the request is refused" });
}

function mustHaveBroker({ broker }: Service): Broker {
  if (broker !== null) return broker;
  throw new VaultError("NOT_FOUND", "the broker is off: start the server with --broker-port");
}
