/** docs/http-api.md, Client tokens: what each scope covers, in each state, for every endpoint. */
import { expect } from "chai";
import type { Scope } from "../../src/access/scopes.js";
import { scopes } from "../../src/contract/names.js";
import { endpoints } from "../../src/http/endpoints.js";
import { passphrase, shareTestServer, startTestServer, type TestServer } from "../support/server.js";
import { mustCreateToken, mustInit, mustLock, mustPut, mustUnlock, type Send, send } from "../support/test-client.js";

type Row = {
  readonly request: Send;
  /** Scopes of which one is needed; none: the root token. `any`: every token. */
  readonly may: readonly Scope[] | "any";
  /** What a permitted request gets while unlocked, and while locked. */
  readonly unlocked: string;
  readonly locked: string;
};

const isLocked = "403 VAULT_LOCKED";
const wrongBody = { passphrase: "wrong", newPassphrase: "new", label: "a" };
const secret = "/v1/secrets/app/a";
const versions = "/v1/versions/app/a";
const transitKey = "/v1/transit/keys/app/key";
const anyUse: readonly Scope[] = ["encrypt", "decrypt", "sign"];

function batch(...operations: object[]): Send {
  return { method: "POST", path: "/v1/batch", body: { operations } };
}

/** Only the root token: what it gets is tested elsewhere. */
function root(method: string, path: string, body: object = {}): Row {
  return { request: { method, path, body }, may: [], unlocked: "", locked: "" };
}

/** Written by hand from the contract. Requests of one state run one after the other; deletes come last. */
const rows: Readonly<Record<string, Row>> = {
  "GET /v1/status": { request: { path: "/v1/status" }, may: "any", unlocked: "200", locked: "200" },
  "GET /v1/openapi.json": { request: { path: "/v1/openapi.json" }, may: "any", unlocked: "200", locked: "200" },
  "GET /v1/tokens/self": { request: { path: "/v1/tokens/self" }, may: "any", unlocked: "200", locked: "200" },
  "GET /v1/audit": { request: { path: "/v1/audit" }, may: ["audit"], unlocked: "200", locked: "200" },
  "POST /v1/audit/verify": {
    request: { method: "POST", path: "/v1/audit/verify", body: { checkpoints: [] } },
    may: ["audit"],
    unlocked: "200",
    locked: isLocked,
  },
  "GET /v1/vitals": { request: { path: "/v1/vitals?lines=1" }, may: ["metrics"], unlocked: "200", locked: "200" },
  "POST /v1/review": root("POST", "/v1/review"),
  "GET /v1/review": root("GET", "/v1/review"),
  "POST /v1/review/token": {
    request: { method: "POST", path: "/v1/review/token", body: { code: 1 } },
    may: "any",
    unlocked: "400 BAD_REQUEST",
    locked: "400 BAD_REQUEST",
  },
  "POST /v1/review/storm": root("POST", "/v1/review/storm", { passphrase: 1 }),
  "POST /v1/init": root("POST", "/v1/init", { passphrase, force: true }),
  "POST /v1/shutdown": root("POST", "/v1/shutdown"),
  "POST /v1/snapshot": root("POST", "/v1/snapshot"),
  "POST /v1/passphrase": root("POST", "/v1/passphrase", wrongBody),
  "POST /v1/rotate": root("POST", "/v1/rotate", { ...wrongBody, keys: [] }),
  "GET /v1/uses": root("GET", "/v1/uses"),
  "GET /v1/uses/:path": root("GET", "/v1/uses/app/a"),
  "PUT /v1/uses/:path": root("PUT", "/v1/uses/app/a", { host: "example.com" }),
  "DELETE /v1/uses/:path": root("DELETE", "/v1/uses/app/a?host=example.com"),
  "POST /v1/agents": root("POST", "/v1/agents"),
  "GET /v1/approvals": root("GET", "/v1/approvals"),
  "POST /v1/approvals/:id": root("POST", "/v1/approvals/none", { approve: false }),
  "GET /v1/broker": {
    request: { path: "/v1/broker" },
    may: ["use"],
    unlocked: "404 NOT_FOUND",
    locked: isLocked,
  },
  "GET /v1/keys": root("GET", "/v1/keys"),
  "POST /v1/keys": root("POST", "/v1/keys", wrongBody),
  "DELETE /v1/keys/:id": root("DELETE", "/v1/keys/none"),
  "GET /v1/tokens": root("GET", "/v1/tokens"),
  "POST /v1/tokens": root("POST", "/v1/tokens", { name: "new" }),
  "POST /v1/tokens/root": root("POST", "/v1/tokens/root"),
  "POST /v1/tokens/:name": root("POST", "/v1/tokens/get"),
  "DELETE /v1/tokens/:name": root("DELETE", "/v1/tokens/get"),
  "GET /v1/secrets": { request: { path: "/v1/secrets" }, may: ["list"], unlocked: "200", locked: isLocked },
  "GET /v1/secrets?background": {
    request: { path: "/v1/secrets?background=true" },
    may: ["list"],
    unlocked: "200",
    locked: isLocked,
  },
  "GET /v1/secrets/?background": {
    request: { path: "/v1/secrets/?background=true" },
    may: ["list"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/check": {
    request: { method: "POST", path: "/v1/check", body: { key: Buffer.alloc(32).toString("base64") } },
    may: ["get"],
    unlocked: "200",
    locked: isLocked,
  },
  "GET /v1/secrets/": { request: { path: "/v1/secrets/" }, may: ["list"], unlocked: "200", locked: isLocked },
  "GET /v1/secrets/:path": { request: { path: secret }, may: ["get"], unlocked: "200", locked: isLocked },
  "PUT /v1/secrets/:path": {
    request: { method: "PUT", path: secret, body: { value: "w" } },
    may: ["put"],
    unlocked: "200",
    locked: isLocked,
  },
  "GET /v1/versions/:path": { request: { path: versions }, may: ["list"], unlocked: "200", locked: isLocked },
  "GET /v1/versions/:path?version": {
    request: { path: `${versions}?x&version=1` },
    may: ["get"],
    unlocked: "200",
    locked: isLocked,
  },
  "GET /v1/versions/:path?%76ersion": {
    request: { path: `${versions}?%76ersion=1` },
    may: ["get"],
    unlocked: "200",
    locked: isLocked,
  },
  "PATCH /v1/metadata/:path": {
    request: { method: "PATCH", path: "/v1/metadata/app/a", body: { type: null } },
    may: ["put"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/versions/:path": {
    request: { method: "POST", path: versions, body: { version: 1 } },
    may: ["put"],
    unlocked: "200",
    locked: isLocked,
  },
  "DELETE /v1/versions/:path": {
    request: { method: "DELETE", path: versions },
    may: ["delete"],
    unlocked: "200",
    locked: isLocked,
  },
  "DELETE /v1/versions/:path?version": {
    request: { method: "DELETE", path: `${versions}?version=1` },
    may: ["delete"],
    unlocked: "200",
    locked: isLocked,
  },
  "GET /v1/trash": { request: { path: "/v1/trash" }, may: ["list"], unlocked: "200", locked: isLocked },
  "POST /v1/trash/:path": {
    request: { method: "POST", path: "/v1/trash/app/a" },
    may: ["delete"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/untrash/:path": {
    request: { method: "POST", path: "/v1/untrash/app/a" },
    may: ["put"],
    unlocked: "409 ALREADY_EXISTS",
    locked: isLocked,
  },
  "DELETE /v1/trash/:path": {
    request: { method: "DELETE", path: "/v1/trash/app/a" },
    may: ["delete"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/batch": {
    request: batch(),
    may: ["get", "put", "delete"],
    unlocked: "200",
    locked: isLocked,
  },
  "GET /v1/transit/keys": { request: { path: "/v1/transit/keys" }, may: anyUse, unlocked: "200", locked: isLocked },
  "GET /v1/transit/keys/:name": { request: { path: transitKey }, may: anyUse, unlocked: "200", locked: isLocked },
  "POST /v1/transit/keys/:name": root("POST", transitKey),
  "DELETE /v1/transit/keys/:name": root("DELETE", transitKey),
  "POST /v1/transit/keys/:name/rotate": root("POST", `${transitKey}/rotate`),
  "POST /v1/transit/keys/:name/config": root("POST", `${transitKey}/config`),
  "GET /v1/transit/export/:name": root("GET", "/v1/transit/export/app/key"),
  "POST /v1/transit/encrypt/:name": {
    request: { method: "POST", path: "/v1/transit/encrypt/app/key", body: { batch: [] } },
    may: ["encrypt"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/transit/decrypt/:name": {
    request: { method: "POST", path: "/v1/transit/decrypt/app/key", body: { batch: [] } },
    may: ["decrypt"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/transit/rewrap/:name": {
    request: { method: "POST", path: "/v1/transit/rewrap/app/key", body: { batch: [] } },
    may: anyUse,
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/transit/sign/:name": {
    request: { method: "POST", path: "/v1/transit/sign/app/key", body: { batch: [] } },
    may: ["sign"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/transit/verify/:name": {
    request: { method: "POST", path: "/v1/transit/verify/app/key", body: { batch: [] } },
    may: anyUse,
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/transit/hmac/:name": {
    request: { method: "POST", path: "/v1/transit/hmac/app/key", body: { batch: [] } },
    may: ["sign"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/transit/datakey/:name": {
    request: { method: "POST", path: "/v1/transit/datakey/app/key", body: { batch: [] } },
    may: ["encrypt"],
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/transit/random": {
    request: { method: "POST", path: "/v1/transit/random", body: {} },
    may: anyUse,
    unlocked: "200",
    locked: isLocked,
  },
  "POST /v1/otp/:path": {
    request: { method: "POST", path: "/v1/otp/app/a" },
    may: ["use"],
    unlocked: "400 BAD_REQUEST",
    locked: isLocked,
  },
  "DELETE /v1/secrets/:path": {
    request: { method: "DELETE", path: secret },
    may: ["delete"],
    unlocked: "200",
    locked: isLocked,
  },
  "GET /v1/metrics": { request: { path: "/v1/metrics" }, may: ["metrics"], unlocked: "200", locked: "200" },
  "POST /v1/unlock": {
    request: { method: "POST", path: "/v1/unlock", body: { passphrase: 1 } },
    may: ["unlock"],
    unlocked: "400 BAD_REQUEST",
    locked: "400 BAD_REQUEST",
  },
  "POST /v1/lock": { request: { method: "POST", path: "/v1/lock" }, may: ["lock"], unlocked: "200", locked: "200" },
};

function outcome({ status, json }: Awaited<ReturnType<typeof send>>): string {
  return status === 200 ? "200" : `${status} ${String(json["code"])}`;
}

async function scopedTokens(server: TestServer): Promise<ReadonlyMap<Scope, string>> {
  const tokens = new Map<Scope, string>();
  for (const can of scopes) tokens.set(can, (await mustCreateToken(server, { name: can, can: [can] })).token);
  return tokens;
}

/** Whether a token with only this scope may send the request. */
function isPermitted({ may }: Row, scope: Scope): boolean {
  return may === "any" || may.includes(scope);
}

function isRead({ request: { method = "GET" } }: Row): boolean {
  return ["GET", "HEAD", "LIST"].includes(method);
}

describe("the table of endpoints", () => {
  it("has a row in this test for each of its own", () => {
    const tested = Object.keys(rows).filter((name) => !name.includes("%"));
    expect(tested.sort()).to.deep.equal(endpoints.map(({ at }) => at).sort());
  });
});

describe("a client token while the vault is", () => {
  const server = shareTestServer({ reviewPage: true }, async (started) => {
    await mustInit(started);
    await send(started, { method: "POST", path: transitKey });
    tokens = await scopedTokens(started);
  });
  let tokens: ReadonlyMap<Scope, string>;

  async function prepare(state: string): Promise<void> {
    if (state === "locked") return void (await mustLock(server()));
    await mustUnlock(server());
    await mustPut(server(), "app/a", "trashed");
    await send(server(), { method: "POST", path: "/v1/trash/app/a" }); // with its versions, of which few are kept
    await mustPut(server(), "app/a", "v");
    await mustPut(server(), "app/a", "w");
  }

  async function mustNeedScope(state: "unlocked" | "locked", row: Row): Promise<void> {
    let isPrepared = false;
    for (const scope of scopes) {
      if (!isPrepared) await prepare(state);
      const answer = outcome(await send(server(), { ...row.request, token: tokens.get(scope) ?? "" }));
      expect(answer, scope).to.equal(isPermitted(row, scope) ? row[state] : "403 FORBIDDEN");
      isPrepared = !isPermitted(row, scope) || isRead(row); // what is refused has changed nothing
    }
  }

  for (const state of ["unlocked", "locked"] as const) {
    for (const [name, row] of Object.entries(rows)) {
      it(`${state} may send ${name} only with ${String(row.may) || "the root token"}`, () => mustNeedScope(state, row));
    }
  }
});

describe("the text of a client token while the vault is not initialized", () => {
  it("is no token: it cannot have been made, or was dropped with its vault", async () => {
    const server = await startTestServer({ reviewPage: true });
    for (const { request } of Object.values(rows)) {
      if (["/v1/status", "/v1/review/token"].includes(request.path)) continue; // they need no token
      const answer = await send(server, { ...request, token: `src_${"A".repeat(43)}` });
      expect(outcome(answer)).to.be.oneOf(["401 UNAUTHORIZED", "429 RATE_LIMITED"]);
    }
  });
});
