/** Servers in which every sample of the table of requests can succeed, and the tokens with which it is sent. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type RequestOptions, request } from "node:https";
import { scopes } from "../../src/contract/names.js";
import { endpoints } from "../../src/http/endpoints.js";
import { startTestServer, type TestOptions, type TestServer } from "../../tools/rig/server.js";
import {
  contextFor,
  mustCreateToken,
  mustInit,
  mustPut,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { type VaultServer, vault, withPort } from "../../tools/rig/vault-client.js";
import {
  type ApiRequest,
  allRequests,
  approval,
  forcedInit,
  isTokenless,
  jointName,
  nativeRequests,
  otherScopes,
  there,
} from "./requests.js";
import { ShiftedClock } from "./shifted-clock.js";

/** Nothing but the value has it. */
export const canary = "canary-of-the-value";

export type Rig = {
  /** Its token is the current root token. */
  readonly server: VaultServer & { token: string };
  readonly clock: ShiftedClock;
  /**
   * Tokens by what they can: `root`, `none`, each scope, all scopes together that do not permit some request, `in` and `out`
   * with all scopes at some paths, and ended ones.
   */
  readonly tokens: Map<string, string | null>;
};

/** Starts a server with all of its ports, and an unlocked vault in which every sample of the table can succeed. */
export async function startRig(options: TestOptions = {}): Promise<Rig> {
  const { server, clock } = await startBareRig(options);
  await mustInit(server);
  await prepare(server);
  return { server, clock, tokens: await makeTokens(server, clock) };
}

/** Starts a server without a vault. */
export async function startBareRig(options: TestOptions = {}): Promise<Rig> {
  const clock = new ShiftedClock();
  const ports = { vaultPort: 0, brokerPort: 0, reviewPage: true, audit: "all" as const, idleTimeoutMs: 0 };
  const server = withPort(await startTestServer({ ...ports, clock, ...options }));
  return { server, clock, tokens: new Map([["root", server.token]]) };
}

/** Makes what the samples need, also after one of them has taken it away. `sent`: after this one alone. */
export async function prepare(server: TestServer, sent?: ApiRequest): Promise<void> {
  if (sent === undefined || sent.leaves === "locked") await mustUnlock(server);
  if (sent?.leaves === "locked") return;
  if (sent === undefined || !/transit|tokens|keys|crypt|wrap|sign|verify|hmac|datakey|random/.test(sent.at))
    await prepareSecrets(server);
  if (sent === undefined || /keys/.test(sent.at)) await prepareKeys(server);
  if (sent !== undefined && !/token|agents/.test(sent.at)) return;
  await send(server, { method: "DELETE", path: "/v1/tokens/new" });
  await post(server, "tokens", { name: there.token });
}

function post(server: TestServer, path: string, body: object = {}, method = "POST") {
  return send(server, { method, path: `/v1/${path}`, body });
}

async function prepareSecrets(server: TestServer): Promise<void> {
  for (const path of [`trash/${there.trashed}`, `secrets/${there.secret}`]) await post(server, path, {}, "DELETE");
  for (const path of [there.trashed, there.secret, "other/b"]) await mustPut(server, path, canary);
  await mustPut(server, there.secret, `${canary}, changed`);
  await mustPut(server, there.seed, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
  await mustPut(server, "app/json", '{"a":"b"}');
  mustSucceed(await post(server, `trash/${there.trashed}`));
  mustSucceed(await post(server, `uses/${there.secret}`, { host: "a.example" }, "PUT"));
}

async function prepareKeys(server: TestServer): Promise<void> {
  await post(server, "transit/keys/app/new", {}, "DELETE");
  await post(server, `transit/keys/${there.key}`, { exportable: true });
  mustSucceed(await post(server, `transit/keys/${there.key}/config`, { deletionAllowed: true }));
  await post(server, `transit/keys/${there.signer}`, { type: "ed25519" });
}

async function makeTokens(server: VaultServer, clock: ShiftedClock): Promise<Map<string, string | null>> {
  const make = async (name: string, rest: object) => (await mustCreateToken(server, { name, ...rest })).token;
  const tokens = new Map<string, string | null>([
    ["root", server.token],
    ["none", null],
    ["wrong", "srk_wrong"],
  ]);
  for (const can of scopes) tokens.set(can, await make(`can-${can}`, { can: [can] }));
  for (const can of allRequests.map(({ may }) => otherScopes(may)).filter((some) => some.length > 0))
    if (!tokens.has(jointName(can))) tokens.set(jointName(can), await make(`joint-${tokens.size}`, { can }));
  for (const [name, path] of [
    ["in", "app/"],
    ["out", "other/"],
  ] as const)
    tokens.set(name, await make(name, { can: [...scopes], paths: [path] }));
  tokens.set("expired", await make("expired", { can: [...scopes], ttlSeconds: 60 }));
  tokens.set("revoked", await make("revoked", { can: [...scopes] }));
  mustSucceed(await send(server, { method: "DELETE", path: "/v1/tokens/revoked" }));
  clock.advance(60_000);
  return tokens;
}

export type Verdict = { readonly status: number; readonly text: string; readonly head: string };

export type Changes = {
  readonly token?: string | null;
  readonly subject?: string;
  readonly body?: string;
  readonly query?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Returns the target, without `/v1/`, and the body of a request. */
export function requestTexts({ server }: Rig, sample: ApiRequest, changes: Changes) {
  const token = changes.token === undefined ? server.token : changes.token;
  const subject = changes.subject ?? sample.subject ?? "";
  const target = sample.target.replace("*", "secret").replace("{subject}", subject);
  const query = changes.query === undefined ? "" : `${target.includes("?") ? "&" : "?"}${changes.query}`;
  const body = changes.body ?? bodyText(sample, subject, token);
  return { token, target: target + query, ...(body && { body }) };
}

export const rootRotation = "POST /v1/tokens/root";

/** `text`: the response to a rotation. */
function setRoot(rig: Rig, text: string): void {
  rig.server.token = String((JSON.parse(text) as { readonly token: unknown }).token);
  rig.tokens.set("root", rig.server.token);
}

function bodyText({ body }: ApiRequest, subject: string, token: string | null): string | null {
  return (
    body &&
    JSON.stringify(body)
      .replaceAll("{own}", token ?? "missing")
      .replaceAll("{subject}", subject)
  );
}

/** Returns a request to the native port for the test client. */
export function clientRequest(sample: ApiRequest, subject = sample.subject ?? ""): Send {
  const { method, target, headers } = sample;
  const body = bodyText(sample, subject, null);
  const path = `/v1/${target.replace("{subject}", subject)}`;
  return { method, path, headers, ...(body !== null && { body }), ...(isTokenless(sample) && { token: null }) };
}

/**
 * Returns a request for each operation of the contract: that of the first row which has the operation.
 *
 * @param name - Returns the subject in place of a secret's or a key's path in the table.
 */
export function contractRequests(name = (subject: string) => subject): Readonly<Record<string, Send>> {
  const rows = [forcedInit, approval, ...nativeRequests].toReversed();
  const requests = rows.map((row) => {
    const subject = row.subject !== null && /\//.test(row.subject) ? name(row.subject) : row.subject;
    return [endpoints.find(({ at }) => at === row.at)?.operation, clientRequest(row, subject ?? "")];
  });
  return { ...Object.fromEntries(requests), unrouted: { path: "/nowhere" } };
}

export async function ask(rig: Rig, sample: ApiRequest, changes: Changes = {}): Promise<Verdict> {
  const { target, ...texts } = requestTexts(rig, sample, changes);
  const method = changes.method ?? sample.method;
  const request = { ...texts, headers: { ...sample.headers, ...changes.headers } };
  const { status, text, headers } =
    sample.port === "native"
      ? await send(rig.server, { method, path: `/v1/${target}`, ...request })
      : await vault(rig.server, method, target, request);
  if (sample.at === rootRotation && status === 200) setRoot(rig, text);
  return { status, text, head: JSON.stringify(headers) };
}

/** Sends a head that expects 100 Continue. `asked`: whether the server wants the body, which `sendBody` sends. */
export async function beginBody(rig: Rig, sample: ApiRequest, token: string) {
  const { server } = rig;
  const { target, body = "" } = requestTexts(rig, sample, { token });
  const length = Buffer.byteLength(body);
  const port = sample.port === "native" ? server.port : server.vaultPort;
  const options: RequestOptions = {
    ...{
      host: "127.0.0.1",
      port,
      servername: "localhost",
      secureContext: contextFor(server.certificate),
      agent: false,
    },
    ...{ method: sample.method, path: `/v1/${target}` },
    headers: { authorization: `Bearer ${token}`, "content-length": length, expect: "100-continue" },
  };
  const sent = request(options).on("error", () => {});
  const answered = once(sent, "response").then(([response]) => response as IncomingMessage);
  answered.catch(() => {});
  sent.flushHeaders();
  const asked = await Promise.race([once(sent, "continue").then(() => true), answered.then(() => false)]);
  return {
    asked,
    giveUp: () => sent.destroy(),
    sendBody: async () => {
      sent.end(body);
      const response = await answered;
      const text = Buffer.concat(await response.toArray()).toString();
      return { status: response.statusCode ?? 0, text, head: JSON.stringify(response.headers) };
    },
  };
}

/** Waits until the server has read all requests that were sent before. */
export async function settle({ server }: Rig): Promise<void> {
  await send(server, { path: "/v1/tokens/self" });
  await vault(server, "GET", "auth/token/lookup-self");
}
