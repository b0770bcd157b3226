/** The port for Vault's clients: its listener, tokens, lockout, errors, and the method LIST. */
import { expect } from "chai";
import { startTestServer } from "../../tools/rig/server.js";
import {
  exchangeRaw,
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  send,
} from "../../tools/rig/test-client.js";
import { startVaultServer, type VaultServer, vault, withPort } from "../../tools/rig/vault-client.js";

describe("Vault's clients", () => {
  it("the port for Vault's clients is off by default, and status shows it when it is on", async () => {
    expect((await startTestServer()).vaultPort).to.equal(null);
    const server = await startVaultServer();
    expect((await mustStatus(server))["vaultPort"]).to.equal(server.vaultPort);
  });

  it("sys/health reports the state without a token, by Vault's statuses", async () => {
    const server = withPort(await startTestServer({ vaultPort: 0 }));
    const health = async (query = "", method = "GET") =>
      (await vault(server, method, `sys/health${query}`, { token: null })).status;
    expect(await health()).to.equal(501);
    expect(await health("?uninitcode=200")).to.equal(200);
    await mustInit(server);
    const { json, headers } = await vault(server, "GET", "sys/health", { token: null });
    expect(json).to.include({ initialized: true, sealed: false, standby: false });
    expect(headers["content-type"]).to.equal("application/json");
    await mustLock(server);
    expect(await health()).to.equal(503);
    expect(await health("?sealedcode=299&standbyok=true")).to.equal(299);
    expect(await health("", "HEAD")).to.equal(503);
    expect(await health("?sealedcode=x")).to.equal(400);
  });

  it("the token is taken as X-Vault-Token or bearer; a wrong one gets 403 and counts, a missing one not", async () => {
    const server = await startVaultServer();
    await mustPut(server, "app/a", "1");
    const list = (request: object) => vault(server, "LIST", "secret/metadata/", request);
    expect((await list({})).status).to.equal(200);
    expect((await list({ token: null, headers: { authorization: `Bearer ${server.token}` } })).status).to.equal(200);
    expect((await list({ headers: { "x-vault-request": "true", "x-vault-namespace": "" } })).status).to.equal(200);
    for (const path of ["secret/metadata/", "secret/data/app/a", "auth/token/lookup-self", "sys/no-such", "x"]) {
      for (const token of [null, null, ""]) expect((await vault(server, "GET", path, { token })).status).to.equal(403);
    }
    for (let failure = 0; failure < 10; failure++) {
      const { status, json } = await list({ token: "hvs.wrong" });
      expect(status).to.equal(403);
      expect(json.errors[0]).to.equal("permission denied");
    }
    expect((await list({})).status).to.equal(429);
  });

  it("an unsupported request gets an error that never looks like missing data", async () => {
    const server = await startVaultServer();
    await mustPut(server, "x/y", "1");
    expect((await vault(server, "GET", "secret/data/none")).json).to.deep.equal({ errors: [] });
    const requests: [number, string, string, RegExp][] = [
      [404, "GET", "sys/policies/acl", /sys\/ is not supported/],
      [404, "POST", "auth/token/create-orphan", /auth\/ is not supported/],
      [404, "POST", "auth/token/create/role", /auth\/ is not supported/],
      [404, "POST", "sys/wrapping/wrap", /not supported/],
      [404, "LIST", "secret/detailed-metadata/x", /no details/],
      [404, "GET", "transit/backup/k", /cannot be backed up/],
      [404, "POST", "transit/restore/k", /cannot be restored/],
      [404, "GET", "transit/wrapping_key", /import/],
      [404, "POST", "transit/config/keys", /settings for all keys/],
      [404, "GET", "secret//data/x/y", /two slashes/],
      [404, "LIST", "secret//metadata/x", /two slashes/],
      [404, "GET", "/secret/data/x/y", /two slashes/],
      [400, "GET", "secret/data/x//y", /empty/],
      [405, "GET", "transit/encrypt/k", /supports only POST/],
      [405, "DELETE", "sys/health", /supports only GET/],
      [405, "PATCH", "secret/delete/x", /supports only POST/],
    ];
    for (const [status, method, path, text] of requests) {
      const answer = await vault(server, method, path, method === "POST" ? { body: {} } : {});
      expect([answer.status, Object.keys(answer.json)], path).to.deep.equal([status, ["errors"]]);
      expect(answer.json.errors[0], path).to.match(text);
    }
  });

  it("warnings name KV version 1 and mounts with a slash, where clients look for them", async () => {
    const server = await startVaultServer();
    await mustPut(server, "x/y", "1");
    for (const [method, path] of [
      ["GET", "secret/x/y"],
      ["GET", "x/y"],
      ["POST", "secret/x/y"],
      ["LIST", "secret/x"],
      ["DELETE", "secret/x/y"],
      ["PATCH", "secret/x/y"],
      ["GET", "database/creds/x"],
      ["GET", "transit/constructor"],
      ["GET", "team/kv/data/foo"],
      ["POST", "team/kv/data/foo"],
    ] as const) {
      const { status, json } = await vault(server, method, path, method === "POST" ? { body: { a: "b" } } : {});
      expect([status, json.warnings], path).to.deep.equal([404, json.errors]);
      expect(json.warnings[0], path).to.match(/KV version 1/);
      expect(json.warnings[0].startsWith("the name of a mount has no slash"), path).to.equal(path.startsWith("team/"));
    }
  });

  it("responses have Vault's form: sealed 503, namespaces and wrapping 400", async () => {
    const server = await startVaultServer();
    for (const header of ["x-vault-namespace", "x-vault-wrap-ttl"]) {
      const { status, json } = await vault(server, "LIST", "secret/metadata", { headers: { [header]: "60" } });
      expect(status).to.equal(400);
      expect(json.errors[0]).to.match(/namespaces|wrapped/);
    }
    await mustLock(server);
    const sealed = await vault(server, "LIST", "secret/metadata");
    expect([sealed.status, sealed.json]).to.deep.equal([503, { errors: ["Vault is sealed"] }]);
  });
});

async function mustPutAll(server: VaultServer, folder: string, count: number): Promise<void> {
  const operations = Array.from({ length: count }, (_, n) => ({ put: `${folder}${n}`, value: "1" }));
  mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations } }));
}

describe("LIST for Vault's clients", () => {
  it("LIST shows a folder's names, by the method, by ?list=true and by ?list=1", async () => {
    const server = await startVaultServer();
    for (const path of ["app/a", "app/db/password", "app/db/user", "app/db", "other"]) await mustPut(server, path, "1");
    const keys = async (path: string, method = "LIST") => (await vault(server, method, path)).json.data?.keys;
    expect(await keys("secret/metadata")).to.deep.equal(["app/", "other"]);
    expect(await keys("secret/metadata/app")).to.deep.equal(["a", "db", "db/"]);
    expect(await keys("secret/metadata/app/?list=true", "GET")).to.deep.equal(["a", "db", "db/"]);
    expect(await keys("app/metadata/db?list=1", "GET")).to.deep.equal(["password", "user"]);
    expect(await keys("app/metadata/")).to.deep.equal(["a", "db", "db/"]);
    expect((await vault(server, "LIST", "secret/metadata/nothing")).status).to.equal(404);
  });

  it("LIST skips the rest of folders with more names than a page", async () => {
    const server = await startVaultServer();
    await mustPutAll(server, "app/f0/", 600);
    await mustPutAll(server, "app/f0/more/", 600); // a page has 1,000
    for (const path of ["app/f0", "app/f1/a", "app/f2"]) await mustPut(server, path, "1");
    const list = await vault(server, "LIST", "secret/metadata/app");
    expect(list.json.data.keys).to.deep.equal(["f0", "f0/", "f1/", "f2"]);
  });

  it("LIST shows a client token only its own paths, as if nothing else existed", async () => {
    const server = await startVaultServer();
    for (const path of ["app/a", "app/db/password", "other/x"]) await mustPut(server, path, "1");
    const { token } = await mustCreateToken(server, { name: "ci", can: ["list"], paths: ["app/db/"] });
    const list = (path: string) => vault(server, "LIST", path, { token });
    expect((await list("secret/metadata")).json.data.keys).to.deep.equal(["app/"]);
    expect((await list("secret/metadata/app")).json.data.keys).to.deep.equal(["db/"]);
    expect((await list("secret/metadata/other")).json).to.deep.equal((await list("secret/metadata/none")).json);
  });

  const head = (server: VaultServer, line: string, more = "") =>
    `${line} HTTP/1.1\r\nHost: localhost\r\nX-Vault-Token: ${server.token}\r\n${more}\r\n`;

  it("LIST is understood between pipelined requests, after bodies of every kind", async () => {
    const server = await startVaultServer();
    await mustPut(server, "app/a", "1");
    const list = head(server, "LIST /v1/secret/metadata");
    const body = "LIST /v1/x HTTP/1.1\r\n\r\nLIST ";
    const inLength = head(server, "POST /v1/none/x", `Content-Length: ${body.length}\r\n`) + body;
    const chunks = `5\r\nLIST \r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const inChunks = head(server, "POST /v1/none/x", "Transfer-Encoding: chunked\r\n") + chunks;
    const all = [list, inLength, list, "\r\n\r\n", list, inLength, inLength, list].join("");
    const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status).join(" ");
    const at = { ...server, port: server.vaultPort };
    expect(statuses(await exchangeRaw(at, all))).to.equal("200 404 200 200 404 404 200");
    expect(statuses(await exchangeRaw(at, inChunks))).to.equal("404");
  });

  it("LINK from a client is malformed, although LIST is respelled as LINK", async () => {
    const server = await startVaultServer();
    const at = { ...server, port: server.vaultPort };
    expect(await exchangeRaw(at, head(server, "LINK /v1/secret/metadata"))).to.match(/^HTTP\/1\.1 400 .*"errors":\[/s);
  });
});
