/** Tokens for Vault's clients: what they are, child tokens, the login, and their ends. */
import { expect } from "chai";
import { newChildValue } from "../../src/access/token-value.js";
import { shared } from "../../tools/rig/clean-up.js";
import { type Json, mustCreateToken, mustList, mustLock, mustPut, send } from "../../tools/rig/test-client.js";
import { startVaultServer, type VaultServer, vault } from "../../tools/rig/vault-client.js";
import { failingFiles } from "../support/failing-files.js";
import { FakeClock } from "../support/manual-clock.js";

const hour = 3600;

describe("tokens for Vault's clients", () => {
  const clock = new FakeClock();
  const server = shared(() => startVaultServer({ clock, idleTimeoutMs: 0 }));
  let made = 0;
  beforeEach(() => clock.advance(300_000)); // ends a lockout

  async function newToken(rights: object = {}): Promise<{ readonly name: string; readonly token: string }> {
    const name = `t${++made}`;
    return mustCreateToken(server(), { name, ttlSeconds: hour, ...rights });
  }

  /** Returns `auth` of a child token. */
  async function mustMake(token: string, body: object = {}) {
    const answer = await vault(server(), "POST", "auth/token/create", { token, body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json.auth;
  }

  const self = (token: string) => vault(server(), "GET", "auth/token/lookup-self", { token });

  it("lookup-self shows a token with its remaining time", async () => {
    const { name, token } = await newToken({ can: ["get", "list"] });
    clock.advance(60_000);
    const { data } = (await self(token)).json;
    expect(data).to.deep.include({ id: token, accessor: name, display_name: name, policies: ["list", "get"] });
    expect(data).to.include({ creation_ttl: hour, ttl: hour - 60, orphan: true, renewable: false, type: "service" });
    expect(Date.parse(data.expire_time)).to.equal(clock.now() + (hour - 60) * 1000);
    const other = await vault(server(), "POST", "auth/token/lookup", { token, body: { token } });
    expect(other.json.data).to.deep.equal(data);
  });

  it("lookup-self shows the root token without an end", async () => {
    const { data } = (await self(server().token)).json;
    expect(data).to.deep.include({ policies: ["root"], ttl: 0, expire_time: null, id: server().token });
  });

  it("only the root token looks up other tokens", async () => {
    const { name, token } = await newToken();
    const looked = await vault(server(), "POST", "auth/token/lookup", { body: { token } });
    expect(looked.json.data).to.include({ id: token, accessor: name });
    const { token: other } = await newToken();
    expect((await vault(server(), "POST", "auth/token/lookup", { token: other, body: { token } })).status).to.equal(
      403,
    );
    expect((await vault(server(), "POST", "auth/token/lookup", { body: { token: "none" } })).status).to.equal(403);
  });

  it("a renewal returns the time that is left", async () => {
    const { token } = await newToken();
    clock.advance(600_000);
    const answer = await vault(server(), "POST", "auth/token/renew-self", { token, body: { increment: "768h" } });
    expect(answer.json.auth).to.include({ client_token: token, lease_duration: hour - 600, renewable: false });
  });

  it("a child token has its parent's rights within its lifetime, and token ls shows it", async () => {
    const { name, token } = await newToken({ can: ["get"], paths: ["app/"] });
    const auth = await mustMake(token, { ttl: "20m", display_name: "Terraform!", renewable: false });
    expect(auth).to.include({ lease_duration: 1200, orphan: false, token_type: "service" });
    expect(auth.accessor).to.match(new RegExp(`^${name}\\.terraform--[0-9a-f]{8}$`));
    expect((await mustMake(token, { ttl: "768h" })).lease_duration).to.equal(hour);
    expect((await mustMake(token, { explicit_max_ttl: "1m30s" })).lease_duration).to.equal(90);
    expect((await mustMake(token, { ttl: "", lease: "0.25h" })).lease_duration).to.equal(900);
    expect((await mustMake(token, { ttl: "1500ms" })).lease_duration).to.equal(1);
    const { tokens } = (await send(server(), { path: "/v1/tokens" })).json as { tokens: { name: string }[] };
    const listed = tokens.find(({ name: one }) => one === auth.accessor);
    expect(listed).to.deep.include({ can: ["get"], paths: ["app/"], parent: name });
  });

  it("a child token has fewer scopes than its parent on request, and never more", async () => {
    const { token } = await newToken({ can: ["get", "list", "put"] });
    expect((await mustMake(token, { policies: ["get", "default"] })).policies).to.deep.equal(["get"]);
    for (const policies of [["delete"], ["root"], ["admin"]]) {
      const answer = await vault(server(), "POST", "auth/token/create", { token, body: { policies } });
      expect(answer.status, String(policies)).to.be.oneOf([400, 403]);
    }
  });

  it("a child token of the policy default can only manage itself, however that is written", async () => {
    await mustPut(server(), "app/a", "1");
    const { token: parent } = await newToken({ can: ["get", "list", "put", "sign"], paths: ["app/"] });
    const others: [string, string, object?][] = [
      ["GET", "secret/data/app/a"],
      ["POST", "secret/data/app/a", { data: {} }],
      ["LIST", "secret/metadata/app"],
      ["GET", "secret/config"],
      ["LIST", "transit/keys"],
      ["POST", "transit/random"],
      ["GET", "sys/mounts"],
      ["GET", "sys/internal/ui/mounts"],
      ["GET", "sys/internal/ui/mounts/app"],
      ["POST", "auth/token/create"],
      ["POST", "sys/seal"],
    ];
    for (const policies of [
      ["default"],
      "default",
      "default,",
      ["default", ""],
      [""],
      " Default ",
      ["default", "default"],
    ]) {
      for (const made of [server().token, parent]) {
        const { client_token: token, policies: shown } = await mustMake(made, { policies });
        expect(shown, JSON.stringify(policies)).to.deep.equal(["default"]);
        for (const [method, path, body] of others) {
          const answer = await vault(server(), method, path, { token, ...(body && { body }) });
          expect([answer.status, answer.json.errors?.[0]], path).to.deep.equal([403, "permission denied"]);
        }
        expect((await send(server(), { path: "/v1/secrets", token })).status).to.equal(403);
        expect((await self(token)).json.data.policies).to.deep.equal(["default"]);
        expect((await vault(server(), "POST", "auth/token/renew-self", { token })).status).to.equal(200);
        expect((await vault(server(), "POST", "auth/token/revoke-self", { token })).status).to.equal(204);
        expect((await self(token)).status).to.equal(403);
      }
    }
  });

  it("a child token has its parent's policies only where none are named", async () => {
    const { token } = await newToken({ can: ["get", "list"] });
    for (const policies of [undefined, null, [], ""])
      expect((await mustMake(token, { policies })).policies, String(policies)).to.deep.equal(["list", "get"]);
    for (const policies of [["default", "get"], "get,default", "GET, get"])
      expect((await mustMake(token, { policies })).policies, String(policies)).to.deep.equal(["get"]);
    const { auth } = (await vault(server(), "POST", "auth/token/create", { body: { policies: ["root", "get"] } })).json;
    expect(auth.policies).to.include.members(["list", "get", "put", "delete", "use"]);
    const all = await newToken({ can: auth.policies });
    for (const policies of [["root"], "root,get", ["default", "put"], ["unknown"], [5], { get: true }, 7]) {
      const answer = await vault(server(), "POST", "auth/token/create", { token: all.token, body: { policies } });
      const isOwn = JSON.stringify(policies) === '["default","put"]';
      expect(answer.status, JSON.stringify(policies)).to.equal(isOwn ? 200 : 400);
    }
  });

  it("options that would change the kind of a token are refused", async () => {
    const wishes = [
      { no_parent: true },
      { num_uses: 1 },
      { period: "1h" },
      { type: "batch" },
      { id: "mine" },
      { ttl: "x" },
      { ttl: "-1h" },
      { no_default_policy: true },
      { no_default_policy: "T", policies: ["default"] },
      { role_name: "admin" },
      { entity_alias: "ann" },
    ];
    for (const body of wishes) {
      const answer = await vault(server(), "POST", "auth/token/create", { body });
      expect(answer.status, JSON.stringify(body)).to.equal(400);
    }
    const neutral = { no_parent: false, num_uses: 0, period: "", type: "service", id: null, meta: { a: "b" } };
    const asText = { no_parent: "F", no_default_policy: "0", num_uses: "0", period: "0h", entity_alias: "", ttl: "" };
    for (const body of [neutral, asText])
      expect((await vault(server(), "POST", "auth/token/create", { body })).status).to.equal(200);
    expect((await vault(server(), "PUT", "auth/token/create", { body: "null" })).status).to.equal(200);
  });

  it("a token revokes itself and its children, and the root token never", async () => {
    const { token } = await newToken();
    const { client_token: child } = await mustMake(token);
    expect((await self(child)).status).to.equal(200);
    expect((await vault(server(), "POST", "auth/token/revoke-self", { token })).status).to.equal(204);
    for (const one of [token, child]) expect((await self(one)).status).to.equal(403);
    expect((await vault(server(), "POST", "auth/token/revoke-self")).status).to.equal(400);
    const { token: another } = await newToken();
    for (const token of [another, another, "none"]) // a client that got no response revokes again
      expect((await vault(server(), "POST", "auth/token/revoke", { body: { token } })).status).to.equal(204);
    expect((await self(another)).status).to.equal(403);
  });

  it("an invalid token is neither renewed nor looked up, and its revocation succeeds", async () => {
    const { token: ended } = await newToken();
    const { token: other } = await newToken();
    expect((await vault(server(), "POST", "auth/token/revoke-self", { token: ended })).status).to.equal(204);
    for (const token of [ended, "none"]) {
      const ask = (operation: string, by: object = {}) =>
        vault(server(), "POST", `auth/token/${operation}`, { body: { token }, ...by });
      expect(await ask("renew")).to.deep.include({ status: 400, json: { errors: ["token not found"] } });
      expect(await ask("lookup")).to.deep.include({ status: 403 });
      expect(await ask("revoke")).to.deep.include({ status: 204 });
      for (const operation of ["renew", "lookup", "revoke"])
        expect(await ask(operation, { token: other }), "of another token").to.deep.include({ status: 403 });
      for (const operation of ["lookup-accessor", "renew-accessor", "revoke-accessor", "revoke-orphan"])
        expect((await ask(operation)).status, operation).to.equal(404);
    }
    for (const operation of ["renew-self", "lookup-self", "revoke-self"])
      expect((await vault(server(), "POST", `auth/token/${operation}`, { token: ended })).status).to.equal(403);
  });

  it("a former value in its overlap revokes only itself and its children, also by the root token", async () => {
    for (const [operation, byRoot] of [
      ["revoke-self", false],
      ["revoke", false],
      ["revoke", true],
    ] as const) {
      const { name, token: former } = await newToken();
      const { client_token: child } = await mustMake(former);
      const rotated = await send(server(), {
        method: "POST",
        path: `/v1/tokens/${name}`,
        body: { overlapSeconds: 600 },
      });
      const body = { token: former };
      const sent = { body, ...(!byRoot && { token: former }) };
      expect((await vault(server(), "POST", `auth/token/${operation}`, sent)).status).to.equal(204);
      for (const [token, status] of [
        [former, 403],
        [child, 403],
        [rotated.json["token"] as string, 200],
      ] as const)
        expect((await self(token)).status, operation).to.equal(status);
    }
  });

  it("an expired child token does not count as a guess, and at most 20 a second are made", async () => {
    const { name, token } = await newToken();
    const { client_token: child } = await mustMake(token, { ttl: "60s" });
    const statuses = [];
    for (let i = 0; i < 20; i++) statuses.push((await vault(server(), "POST", "auth/token/create", { token })).status);
    expect(statuses).to.deep.equal([...Array<number>(19).fill(200), 429]);
    const busy = await vault(server(), "POST", "auth/approle/login", {
      token: null,
      body: { role_id: name, secret_id: token },
    });
    expect([busy.status, busy.headers["retry-after"]]).to.deep.equal([429, "1"]);
    clock.advance(60_000);
    const login = { token: null, body: { role_id: "x", secret_id: child } };
    for (const value of [child, newChildValue(clock.now() - 1000)])
      for (let i = 0; i < 12; i++) {
        expect((await self(value)).status).to.equal(403);
        expect((await send(server(), { path: "/v1/tokens/self", token: value })).status).to.equal(401);
        expect((await vault(server(), "POST", "auth/approle/login", login)).status).to.equal(400);
      }
    expect((await self(token)).status).to.equal(200);
  });

  it("a login with a token's name and value makes a token of its own", async () => {
    const { name, token } = await newToken({ can: ["list"] });
    const body = { role_id: name, secret_id: token };
    const answer = await vault(server(), "POST", "auth/approle/login", { token: null, body });
    const { auth } = answer.json;
    expect(auth).to.deep.include({ policies: ["list"], lease_duration: hour, orphan: false });
    await vault(server(), "POST", "auth/token/revoke-self", { token: auth.client_token });
    expect((await self(auth.client_token)).status).to.equal(403);
    expect((await self(token)).status).to.equal(200);
  });

  it("a login counts as a use of the token", async () => {
    const { name: role_id, token: secret_id } = await newToken();
    const lastUse = async () => {
      const { tokens } = (await send(server(), { path: "/v1/tokens" })).json as { tokens: Record<string, unknown>[] };
      return tokens.find(({ name }) => name === role_id)?.["lastUsedAt"];
    };
    expect(await lastUse()).to.equal(null);
    await vault(server(), "POST", "auth/approle/login", { token: null, body: { role_id, secret_id } });
    expect(await lastUse()).to.equal(new Date(clock.now()).toISOString());
  });

  it("wrong logins count as wrong tokens", async () => {
    const { name, token } = await newToken();
    const log = (role_id: string, secret_id: string) =>
      vault(server(), "POST", "auth/approle/login", { token: null, body: { role_id, secret_id } });
    const wrong = await log("other", token);
    expect([wrong.status, wrong.json.errors]).to.deep.equal([400, ["invalid role or secret ID"]]);
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push((await log(name, "guess")).status);
    expect(statuses.at(-1)).to.equal(429);
    expect((await log(name, token)).status).to.equal(429);
  });

  it("logins with a revoked or expired value do not count towards the lockout", async () => {
    const [revoked, expired] = [await newToken(), await newToken({ ttlSeconds: 60 })];
    await send(server(), { method: "DELETE", path: `/v1/tokens/${revoked.name}` });
    clock.advance(60_000);
    for (const { name: role_id, token: secret_id } of [revoked, expired]) {
      for (let i = 0; i < 10; i++) {
        const body = { role_id, secret_id };
        const answer = await vault(server(), "POST", "auth/approle/login", { token: null, body });
        expect([answer.status, answer.json.errors]).to.deep.equal([400, ["invalid role or secret ID"]]);
      }
    }
    expect((await self(server().token)).status).to.equal(200);
  });

  it("a wrong token gets 403, and counts towards the lockout", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push((await self("wrong")).status);
    expect([statuses[0], statuses.at(-1)]).to.deep.equal([403, 429]);
  });

  it("the audit log records who made a child token", async () => {
    const { name, token } = await newToken();
    const { accessor } = await mustMake(token);
    const { records } = (await send(server(), { path: "/v1/audit?limit=1000" })).json as { records: object[] };
    expect(records.at(-1)).to.include({ event: "token-create", token: name, name: accessor });
  });
});

describe("logins of Vault's clients", () => {
  const logIn = (server: VaultServer, secret: string) =>
    vault(server, "POST", "auth/approle/login", { token: null, body: { role_id: "ci", secret_id: secret } });

  it("a login is recorded in the name of the token that logs in, unless it fails", async () => {
    const server = await startVaultServer();
    const { token } = await mustCreateToken(server, { name: "ci", can: ["get"] });
    await logIn(server, "wrong");
    const { status, json } = await logIn(server, token);
    expect(status).to.equal(200);
    const { records } = (await send(server, { path: "/v1/audit?limit=1000" })).json as { records: readonly Json[] };
    const made = records.filter((record) => record["token"] === "ci");
    expect(made.map(({ seq: _, time: __, ...record }) => record)).to.deep.equal([
      { event: "token-create", token: "ci", address: "127.0.0.1", name: json.auth.accessor, status: 200 },
    ]);
  });

  it("a login makes no token while the required audit log takes no records", async () => {
    const { files, fail } = failingFiles();
    const clock = new FakeClock();
    const server = await startVaultServer({ clock, files, audit: "all", auditOnFailure: "deny" });
    const { token } = await mustCreateToken(server, { name: "ci", can: ["get"] });
    fail("writeFile", "ENOSPC");
    await mustPut(server, "a", "v").catch(() => {}); // has a record
    clock.advance(50);
    await send(server, { path: "/v1/audit" });
    expect((await logIn(server, token)).status).to.equal(503);
    expect((await send(server, { path: "/v1/tokens" })).json["tokens"]).to.have.lengthOf(1);
    const native = await send(server, { method: "POST", path: "/v1/tokens", body: { name: "late" } });
    expect(native.status).to.equal(503);
  });
});

describe("tokens for Vault's clients, sealed", () => {
  const server = shared(() => startVaultServer());

  it("every request for a token returns 503 while sealed", async () => {
    await mustList(server());
    await mustLock(server());
    const requests: [string, string][] = [
      ["GET", "lookup-self"],
      ...["lookup", "renew", "renew-self", "revoke", "revoke-self", "create"].map((name): [string, string] => [
        "POST",
        name,
      ]),
    ];
    for (const [method, name] of requests) await mustBeSealed(server(), method, `auth/token/${name}`);
    await mustBeSealed(server(), "POST", "auth/approle/login");
  });
});

async function mustBeSealed(server: VaultServer, method: string, path: string): Promise<void> {
  const body = { role_id: "root", secret_id: server.token, token: server.token };
  const answer = await vault(server, method, path, method === "GET" ? {} : { body });
  expect([answer.status, answer.json.errors], path).to.deep.equal([503, ["Vault is sealed"]]);
}
