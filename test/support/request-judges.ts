/**
 * Judges of every request: each sends the requests of the table in one situation, and returns how the server's verdicts differ
 * from those of the documents.
 */
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import type { Scope } from "../../src/access/scopes.js";
import { type ErrorCode, errorStatuses } from "../../src/errors.js";
import { passphrase } from "../../tools/rig/server.js";
import {
  contextFor,
  type Json,
  mustLock,
  mustStatus,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import type { FailingFiles } from "./failing-files.js";
import {
  ask,
  beginBody,
  type Changes,
  canary,
  prepare,
  type Rig,
  requestTexts,
  settle,
  type Verdict,
} from "./request-rig.js";
import {
  type ApiRequest,
  allRequests,
  isJoint,
  isTokenless,
  jointName,
  otherScopes,
  type Port,
  there,
} from "./requests.js";

/** Statuses of the port for Vault's clients, where they differ. */
const ofVault: Partial<Record<ErrorCode, number>> = { UNAUTHORIZED: 403, VAULT_LOCKED: 503 };

/** Returns the outcome of a refusal: status and code, or Vault's status. */
export function refusal(port: Port, code: ErrorCode): string {
  return port === "native" ? `${errorStatuses[code]} ${code}` : String(ofVault[code] ?? errorStatuses[code]);
}

function outcome({ port }: ApiRequest, { status, text }: Verdict): string {
  if (port === "vault" || status < 400) return String(status);
  return `${status} ${String((JSON.parse(text || "{}") as Json)["code"])}`;
}

export function requestName({ port, at }: ApiRequest): string {
  return port === "native" ? at : `${at} (Vault's port)`;
}

export class Problems {
  readonly found: string[] = [];

  expect(sample: ApiRequest, situation: string, verdict: Verdict, wanted: string): void {
    const given = outcome(sample, verdict);
    if (given !== wanted) this.found.push(`${requestName(sample)}, ${situation}: ${given}, not ${wanted}`);
  }

  async leaves(rig: Rig, sample: ApiRequest, situation: string, wanted: string): Promise<void> {
    const state = await readState(rig);
    if (state !== wanted)
      this.found.push(`${requestName(sample)}, ${situation}: leaves the vault ${state}, not ${wanted}`);
  }

  refuse(sample: ApiRequest, situation: string, verdict: Verdict, code: ErrorCode): void {
    this.expect(sample, situation, verdict, refusal(sample.port, code));
  }
}

/** Sends the row that ends the server. */
export async function shutDown(rig: Rig, requests: readonly ApiRequest[]): Promise<void> {
  const shutdown = requests.find(({ at }) => at.endsWith("/shutdown"));
  if (shutdown !== undefined) expect((await ask(rig, shutdown)).status).to.equal(200);
  await rig.server.stopped;
}

const badQueries: Readonly<Record<string, string>> = {
  "GET /v1/status": "require=x",
  "GET /v1/secrets": "limit=x",
  "GET /v1/trash": "limit=0",
  "GET /v1/audit": "after=x",
  "GET /v1/uses": "prefix=%zz",
  "GET /v1/*/data/:path": "version=x",
  "LIST /v1/*/metadata": "limit=x",
  "GET /v1/sys/health": "sealedcode=x",
};

/** A change of the request that is refused behind the checks of the token and the state: it changes nothing. */
function harmless(sample: ApiRequest): { readonly changes: Changes; readonly wanted: string } {
  const bad = refusal(sample.port, "BAD_REQUEST");
  if (sample.isPath) return { changes: { subject: "a//b" }, wanted: bad };
  if (sample.subject === there.token && sample.method === "DELETE")
    return { changes: { subject: "missing" }, wanted: refusal(sample.port, "NOT_FOUND") };
  if (sample.body === null && sample.at in badQueries)
    return { changes: { query: badQueries[sample.at] ?? "" }, wanted: bad };
  if (sample.body !== null) return { changes: { body: "{" }, wanted: bad };
  return { changes: {}, wanted: outcomeOfSample(sample) };
}

function outcomeOfSample({ port, status }: ApiRequest): string {
  if (port === "vault" || status < 400) return String(status);
  const code = Object.entries(errorStatuses).find(([, its]) => its === status)?.[0];
  return `${status} ${code}`;
}

export type Judge = (rig: Rig, requests: readonly ApiRequest[]) => Promise<readonly string[]>;

export const endsServer = (sample: ApiRequest) => /\/(?:lock|seal|shutdown|snapshot)$/.test(sample.at);

/** Returns the outcome for a token, in the order of the checks; `wanted`: once it has passed them. */
function expected(sample: ApiRequest, name: string, locked: boolean, wanted: string): string {
  const isRefused = locked && sample.needs === "unlocked";
  if (!isTokenless(sample) && (name === "none" || name === "wrong" || isEnded(name)))
    return refusal(sample.port, "UNAUTHORIZED");
  if (!mayBeSent(sample, name)) return refusal(sample.port, "FORBIDDEN");
  if (isRefused) return refusal(sample.port, "VAULT_LOCKED");
  return name === "out" && emptyOutside.has(sample.at) ? refusal(sample.port, "NOT_FOUND") : wanted;
}

/**
 * Returns the tokens that decide who may send a request: those with no or all scopes, one for each scope that permits it, and
 * one with all other scopes together, which is refused only if each of these is.
 */
function decidingTokens({ tokens }: Rig, { may }: ApiRequest): readonly (readonly [string, string | null])[] {
  const others = otherScopes(may);
  return [...tokens].filter(
    ([name]) => name === jointName(others) || !(others.includes(name as Scope) || isJoint(name)),
  );
}

/** Folders that have nothing outside of `app/`. */
const emptyOutside = new Set(["LIST /v1/*/metadata/:path", "LIST /v1/*/keys"]);

/** Who may send a request, in the state that the vault has. */
async function judgeTokens(rig: Rig, requests: readonly ApiRequest[], locked: boolean): Promise<readonly string[]> {
  const problems = new Problems();
  for (const sample of requests) {
    const { changes, wanted } = harmless(sample);
    for (const [name, token] of decidingTokens(rig, sample)) {
      const given = expected(sample, name, locked, wanted);
      if (endsServer(sample) && given === wanted) continue; // other judges send requests that lock or end
      problems.expect(sample, `locked ${locked}, token ${name}`, await ask(rig, sample, { ...changes, token }), given);
      rig.clock.advance(7_000); // ten wrong tokens within a minute would lock out
    }
  }
  return problems.found;
}

const isEnded = (name: string) => name === "expired" || name === "revoked";

function mayBeSent(sample: ApiRequest, name: string): boolean {
  if (name === "root" || isTokenless(sample)) return true;
  if (name === "in" || name === "out") return sample.may !== "root" && sample.may !== "page";
  return !isJoint(name) && !otherScopes(sample.may).includes(name as Scope);
}

export const judgeUnlocked: Judge = (rig, requests) => judgeTokens(rig, requests, false);

/** Without a vault there are no client tokens: the text of one is no token. `rig`: a server without a vault. */
export const judgeUninitialized: Judge = async (rig, requests) => {
  const problems = new Problems();
  for (const sample of requests) {
    const { changes } = harmless(sample);
    for (const token of [null, `src_${"A".repeat(43)}`]) {
      if (isTokenless(sample)) continue;
      problems.refuse(sample, "no vault, no token", await ask(rig, sample, { ...changes, token }), "UNAUTHORIZED");
      rig.clock.advance(7_000);
    }
    if (sample.needs === "unlocked" && !endsServer(sample))
      problems.refuse(sample, "no vault", await ask(rig, sample, changes), "VAULT_LOCKED");
  }
  return problems.found;
};

/** Requests that work in every state, and the state that each leaves. `rig`: a server without a vault. */
export const judgeStates: Judge = async (rig, requests) => {
  const problems = new Problems();
  const always = requests.filter((one) => one.needs === "none" && !/shutdown|sys\/health/.test(one.at));
  const isInit = ({ at }: ApiRequest) => at === "POST /v1/init";
  for (const sample of [...always.filter((one) => !isInit(one)), ...always.filter(isInit)]) {
    const state = isInit(sample) ? "unlocked" : "not initialized";
    await judgeState(rig, sample, problems, "not initialized", sample.bare, state);
  }
  await prepare(rig.server);
  for (const sample of always) {
    await mustLock(rig.server);
    await judgeState(rig, sample, problems, "locked", sample.status, sample.leaves ?? "locked");
    if (!sample.isChecked || !JSON.stringify(sample.body).includes(passphrase)) continue;
    await mustLock(rig.server);
    const wrong = { ...sample, body: { ...sample.body, passphrase: "wrong", key: "wrong" } };
    await judgeState(
      rig,
      wrong,
      problems,
      "locked, a wrong passphrase",
      sample.port === "native" ? 401 : 400,
      "locked",
    );
  }
  return problems.found;
};

async function judgeState(
  rig: Rig,
  sample: ApiRequest,
  problems: Problems,
  before: string,
  status: number,
  after: string,
) {
  const verdict = await ask(rig, sample);
  problems.expect(sample, before, verdict, outcomeOfSample({ ...sample, status }));
  await problems.leaves(rig, sample, before, after);
}

async function readState({ server }: Rig): Promise<string> {
  const { initialized, locked } = await mustStatus(server);
  if (initialized === false) return "not initialized";
  return locked === true ? "locked" : "unlocked";
}

export const judgeLocked: Judge = async (rig, requests) => {
  await mustLock(rig.server);
  try {
    return await judgeTokens(rig, requests, true);
  } finally {
    await mustUnlock(rig.server);
  }
};

/** The order of the checks behind the token's: path, reach, conditions and query, body. */
export const judgeOrder: Judge = async (rig, requests) => {
  const problems = new Problems();
  const bad = { body: "{", headers: { "if-match": "x", "if-none-match": "x" }, query: "version=x&%zz" };
  for (const sample of requests.filter(({ isPath, may }) => isPath && may !== "root")) {
    const [inside, outside] = [rig.tokens.get("in") ?? "", rig.tokens.get("out") ?? ""];
    const body = sample.body === null ? {} : { body: bad.body };
    const all = { ...body, headers: bad.headers, query: bad.query };
    problems.refuse(
      sample,
      "bad path",
      await ask(rig, sample, { ...all, subject: "app//a", token: outside }),
      "BAD_REQUEST",
    );
    problems.refuse(sample, "outside", await ask(rig, sample, { ...all, token: outside }), "FORBIDDEN");
    const missing = await ask(rig, sample, { subject: "app-none/missing", token: inside });
    const there = await ask(rig, sample, { subject: "other/b", token: inside });
    problems.refuse(sample, "outside, missing", missing, "FORBIDDEN");
    if (missing.text !== there.text) problems.found.push(`${requestName(sample)}: existence shows`);
    if (sample.body !== null)
      problems.refuse(sample, "bad body", await ask(rig, sample, { ...body, token: inside }), "BAD_REQUEST");
  }
  return problems.found;
};

/** Malformed conditions and queries, by which nothing may be ignored. */
export const judgeParameters: Judge = async (rig, requests) => {
  const problems = new Problems();
  const headers = { "if-match": "x", "if-none-match": "x" };
  for (const sample of requests.filter(({ at }) => conditional.has(at)))
    problems.refuse(sample, "bad condition", await ask(rig, sample, { headers }), "BAD_REQUEST");
  for (const sample of requests) {
    const query = badQueries[sample.at];
    if (query !== undefined) problems.refuse(sample, query, await ask(rig, sample, { query }), "BAD_REQUEST");
  }
  return problems.found;
};

/** Endpoints that take conditions: a malformed one is refused. */
const conditional = new Set([
  ...["GET", "PUT", "DELETE"].map((method) => `${method} /v1/secrets/:path`),
  ...["PATCH /v1/metadata/:path", "POST /v1/versions/:path", "DELETE /v1/versions/:path"],
  ...["DELETE /v1/versions/:path?version", "POST /v1/trash/:path", "POST /v1/untrash/:path", "DELETE /v1/trash/:path"],
]);

/** No byte of a body is asked for before everything else is checked. */
export const judgeUnreadBodies: Judge = async (rig, requests) => {
  const found: string[] = [];
  for (const sample of requests.filter((one) => one.body !== null && !isTokenless(one))) {
    const token = sample.isPath ? rig.tokens.get("out") : rig.tokens.get("expired");
    const { asked, giveUp } = await beginBody(rig, sample, token ?? "");
    if (asked) found.push(`${requestName(sample)} asks for a body that it refuses`);
    giveUp();
  }
  return found;
};

/** An address that is locked out: everything that has a credential is refused, a valid token included. */
export const judgeLockout: Judge = async (rig, requests) => {
  const problems = new Problems();
  for (let n = 0; n < 10; n++) await send(rig.server, { path: "/v1/tokens/self", token: "srk_wrong" });
  for (const sample of requests) {
    const { changes, wanted } = harmless(sample);
    const verdict = await ask(rig, sample, changes);
    if (sample.may === "open") problems.expect(sample, "locked out", verdict, wanted);
    else problems.refuse(sample, "locked out", verdict, "RATE_LIMITED");
  }
  rig.clock.advance(400_000);
  return problems.found;
};

/** Wrong passphrases count, and lock out of all endpoints that check one; so do wrong credentials of a login. */
export const judgeCounting: Judge = async (rig, requests) => {
  const problems = new Problems();
  const wrong = {
    passphrase: JSON.stringify({ passphrase: "wrong", newPassphrase: "x", label: "x", keys: [], approve: true }),
    login: JSON.stringify({ code: "wrong", role_id: "root", secret_id: "wrong" }),
  };
  for (const sample of requests.filter(({ isChecked, may }) => isChecked || may === "login")) {
    const body =
      sample.may === "login"
        ? wrong.login
        : wrong.passphrase.replace('"passphrase"', sample.port === "vault" ? '"key"' : '"passphrase"');
    let verdict = await ask(rig, sample, { body });
    const first = outcome(sample, verdict);
    for (let n = 0; n < 10; n++) verdict = await ask(rig, sample, { body });
    problems.refuse(sample, "after ten wrong credentials", verdict, "RATE_LIMITED");
    problems.refuse(
      sample,
      "the right one, locked out",
      await ask(rig, sample, harmless(sample).changes),
      "RATE_LIMITED",
    );
    const wanted = sample.port === "native" ? "401 UNAUTHORIZED" : "400";
    if (first !== wanted) problems.found.push(`${requestName(sample)}: ${first} for a wrong credential`);
    rig.clock.advance(400_000);
  }
  return problems.found;
};

/** Requests of other sites, and for namespaces. */
export const judgeOthers: Judge = async (rig, requests) => {
  const problems = new Problems();
  for (const sample of requests) {
    const { changes, wanted } = harmless(sample);
    const foreign = await ask(rig, sample, { ...changes, headers: { origin: "https://evil.example" } });
    problems.refuse(sample, "another site", foreign, "BAD_REQUEST");
    const misled = await ask(rig, sample, { ...changes, headers: { host: "evil.example" }, token: null });
    problems.refuse(sample, "another host, no token", misled, "BAD_REQUEST");
    if (sample.port !== "vault") continue;
    const named = await ask(rig, sample, { ...changes, headers: { "x-vault-namespace": "team" } });
    problems.expect(sample, "a namespace", named, isTokenless(sample) ? wanted : "400");
  }
  return problems.found;
};

/** Methods that the endpoint's path does not have, and paths that no endpoint has. It locks: the route comes before the state. */
export const judgeMethods: Judge = async (rig, requests) => {
  const problems = new Problems();
  await mustLock(rig.server);
  for (const sample of new Map(requests.map((one) => [portAndPath(one), one])).values()) {
    const allow = sample.port === "native" ? methodsAt(sample) : null;
    const wrong = ["GET", "POST", "PUT", "DELETE"].find((method) => allow?.includes(method) === false) ?? "REPORT";
    for (const method of ["OPTIONS", "TRACE", wrong]) await judgeMethod(rig, sample, method, allow, problems);
    rig.clock.advance(61_000);
  }
  for (const port of ["native", "vault"] as const) {
    const sample = requests.find((one) => one.port === port) ?? expect.fail(`no request of the port ${port}`);
    const nowhere = { ...sample, target: "no/such/path" };
    problems.refuse(sample, "no such path", await ask(rig, nowhere), "NOT_FOUND");
    problems.refuse(sample, "no such path, no token", await ask(rig, nowhere, { token: null }), "UNAUTHORIZED");
  }
  await mustUnlock(rig.server);
  return problems.found;
};

async function judgeMethod(
  rig: Rig,
  sample: ApiRequest,
  method: string,
  allow: readonly string[] | null,
  problems: Problems,
): Promise<void> {
  const verdict = await ask(rig, sample, { method });
  problems.expect(sample, method, verdict, sample.port === "native" ? "404 NOT_FOUND" : "405");
  const { allow: told = "" } = JSON.parse(verdict.head) as { readonly allow?: string };
  if (told === "" || (allow !== null && told.split(", ").sort().join() !== allow.toSorted().join()))
    problems.found.push(`${requestName(sample)}: allows "${told}" after ${method}, not ${allow}`);
  problems.refuse(sample, `${method}, no token`, await ask(rig, sample, { method, token: null }), "UNAUTHORIZED");
}

/** Returns the path that the sample is sent to, after its port. */
function portAndPath({ port, target, subject }: ApiRequest): string {
  return `${port} /v1/${target.replace("{subject}", subject ?? "").replace(/\?.*/, "")}`;
}

/** Returns the methods of the rows that have the sample's path. */
function methodsAt(sample: ApiRequest): string[] {
  const [port, path = ""] = portAndPath(sample).split(" ");
  const rows = allRequests.filter((row) => row.port === port && pathPattern(row.at).test(path));
  return [...new Set(rows.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])))];
}

function pathPattern(at: string): RegExp {
  return new RegExp(`^${at.replace(/^\S+ |\?.*$/g, "").replace(/:\w+/, ".*")}$`);
}

/** The samples succeed as the root token, leave the records that they promise, and carry what they may. */
export const judgeSamples: Judge = async (rig, requests) => {
  const { server } = rig;
  const problems = new Problems();
  for (const sample of requests.filter((one) => !one.at.endsWith("/shutdown"))) {
    if (sample.record !== null && sample.may !== "login") await judgeRefusedRecords(rig, sample, problems);
    const head = await lastRecord(rig);
    const verdict = await ask(rig, sample);
    problems.expect(sample, "the sample", verdict, outcomeOfSample(sample));
    await problems.leaves(rig, sample, "unlocked", sample.leaves ?? "unlocked");
    problems.found.push(...(await recordProblems(rig, sample, head)), ...contentProblems(sample, verdict));
    if (sample.method !== "GET" && sample.method !== "LIST" && verdict.status < 400) await prepare(server, sample);
  }
  return problems.found;
};

/** The records of a request, without what changes from run to run. */
async function recordsSince({ server }: Rig, after: number): Promise<readonly Json[]> {
  const { records } = mustSucceed(await send(server, { path: `/v1/audit?after=${after}&limit=1000` })) as unknown as {
    readonly records: readonly Json[];
  };
  const own = records.filter(({ event }) => !["locked", "checkpoint", "lockout"].includes(String(event)));
  return own.map(({ seq: _, time: __, requestId, etag, name, ...record }) => ({
    ...record,
    ...(name !== undefined && { name: String(name).replace(/(?<=^|-)[0-9a-z]{8,}$/, "id") }),
    ...(requestId !== undefined && { requestId: "id" }),
    ...(etag !== undefined && { etag: "tag" }),
  }));
}

async function recordProblems(rig: Rig, sample: ApiRequest, after: number): Promise<string[]> {
  const records = await recordsSince(rig, after);
  const wanted = expectedRecords(sample);
  if (isDeepStrictEqual(records, wanted)) return [];
  return [
    `${requestName(sample)}, ${sample.status}: records ${JSON.stringify(records)}, not ${JSON.stringify(wanted)}`,
  ];
}

/** A refused request is recorded as well, without an invalid path; a wrong token leaves no record. */
async function judgeRefusedRecords(rig: Rig, sample: ApiRequest, problems: Problems): Promise<void> {
  const head = await lastRecord(rig);
  await ask(rig, sample, { token: "srk_wrong" });
  rig.clock.advance(61_000);
  const refused = { ...sample, recorded: {}, status: 400 };
  if (sample.isPath) {
    await ask(rig, sample, { subject: "a//b" });
    problems.found.push(...(await recordProblems(rig, { ...refused, isPath: false }, head)));
  } else if (sample.isChecked && sample.port === "native" && sample.record !== "approve") {
    await ask(rig, sample, { body: JSON.stringify({ ...sample.body, passphrase: "wrong" }) });
    problems.found.push(...(await recordProblems(rig, { ...refused, status: 401 }, head)));
  }
}

async function lastRecord({ server }: Rig): Promise<number> {
  const { head } = mustSucceed(await send(server, { path: "/v1/audit?limit=1" })) as unknown as {
    readonly head: { readonly seq: number };
  };
  return head.seq;
}

function expectedRecords({ record, recorded, isPath, subject, status }: ApiRequest): readonly object[] {
  if (record === null) return [];
  const by = { token: "root", address: "127.0.0.1" };
  const code = Object.entries(errorStatuses).find(([, its]) => its === status)?.[0];
  const rest = { ...(isPath && { path: subject }), status, ...(code !== undefined && { code }) };
  return (Array.isArray(recorded) ? recorded : [recorded]).map((one) => ({ event: record, ...by, ...rest, ...one }));
}

const newCredential = /sr[ct]_[A-Za-z0-9_-]{20}|SRK-/;

function contentProblems(sample: ApiRequest, { text, status }: Verdict): string[] {
  const found: string[] = [];
  if (text.includes(canary) !== (sample.carries === "value"))
    found.push(`${requestName(sample)}: value ${sample.carries}`);
  const isToken = newCredential.test(text) && !/lookup|renew|openapi/.test(sample.at);
  if (status < 400 && isToken !== (sample.carries === "token"))
    found.push(`${requestName(sample)}: token ${sample.carries}`);
  return found;
}

/** With `--audit-on-failure deny` and a full disk of the audit log; `rig` is of a server with these files and that setting. */
export async function judgeFullAudit(rig: Rig, requests: readonly ApiRequest[], { fail, repair }: FailingFiles) {
  const problems = new Problems();
  fail("writeFile", "ENOSPC");
  const get = { path: `/v1/secrets/${there.secret}` };
  for (let n = 0; n < 100; n++) {
    if ((await send(rig.server, get)).status !== 200) break; // a record is lost
    await send(rig.server, { path: "/v1/audit" });
  }
  for (const sample of requests.filter((one) => !endsServer(one))) {
    const { changes, wanted } = harmless(sample);
    const verdict = await ask(rig, sample, changes);
    const mustRecord = sample.needs === "unlocked" && !unaudited.has(sample.at);
    if (mustRecord) problems.refuse(sample, "audit log full", verdict, "UNAVAILABLE");
    else problems.expect(sample, "audit log full", verdict, wanted);
  }
  repair();
  await send(rig.server, { path: "/v1/audit" });
  return problems.found;
}

/** They need the vault's key, and touch no secret. */
const unaudited = new Set([
  "POST /v1/review",
  "POST /v1/review/storm",
  "POST /v1/audit/verify",
  "GET /v1/broker",
  "DELETE /v1/keys/:id",
]);

/** Requests that are complete only when the server stops. Ends the server. */
export const judgeStopping: Judge = async (rig, requests) => {
  const { server } = rig;
  const found: string[] = [];
  const begun = await Promise.all(
    requests.map(async (sample) => {
      const { target } = requestTexts(rig, sample, {});
      const port = sample.port === "native" ? server.port : server.vaultPort;
      const secureContext = contextFor(server.certificate);
      const socket = connect({ host: "127.0.0.1", port, servername: "localhost", secureContext });
      await once(socket, "secureConnect");
      socket.write(`${sample.method} /v1/${target} HTTP/1.1\r\nHost: localhost\r\n`);
      return { sample, socket };
    }),
  );
  await settle(rig);
  mustSucceed(await send(server, { method: "POST", path: "/v1/shutdown" }));
  const stopped: Promise<unknown> = server.stopped;
  for (const { sample, socket } of begun) {
    const status = await finishHead(socket, server.token);
    if (status === null) continue; // its connection was closed before
    const isOpen = sample.may === "open";
    if (isOpen === (status === 503) && sample.at !== "GET /v1/sys/health")
      found.push(`${requestName(sample)}: ${status} while the server stops`);
  }
  await stopped;
  return found;
};

async function finishHead(socket: TLSSocket, token: string): Promise<number | null> {
  const closed = once(socket, "close").then(() => null);
  const data = once(socket, "data").then(([chunk]) => Number(String(chunk).slice(9, 12)));
  socket.on("error", () => {});
  socket.write(`Authorization: Bearer ${token}\r\nContent-Length: 2\r\n\r\n{}`);
  const status = await Promise.race([data, closed]);
  socket.destroy();
  return status;
}
