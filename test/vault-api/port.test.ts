/** The port for Vault's clients: its listener, tokens, lockout, errors, and the method LIST. */
import { expect } from "chai";
import { startTestServer } from "../support/server.js";
import {
  exchangeRaw,
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  send,
} from "../support/test-client.js";
import { startVaultServer, type VaultServer, vault, withPort } from "./vault-client.js";

describe("the port for Vault's clients", () => {
  it("is off by default, and status says where it is when it is on", async () => {
    expect((await startTestServer()).vaultPort).to.equal(null);
    const server = await startVaultServer();
    expect((await mustStatus(server))["vaultPort"]).to.equal(server.vaultPort);
  });

  it("says its state without a token, by Vault's statuses", async () => {
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

  it("takes the token as X-Vault-Token or bearer, and refuses a wrong one with 403, which counts; a missing one never does", async () => {
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

  it("responds in Vault's form: sealed 503, an unknown route 404 without errors, namespaces and wrapping 400", async () => {
    const server = await startVaultServer();
    const unknown = await vault(server, "GET", "database/creds/x");
    expect([unknown.status, unknown.json]).to.deep.equal([404, { errors: [] }]);
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

describe("LIST on the port for Vault's clients", () => {
  it("shows a folder's names, by the method, by ?list=true and by ?list=1", async () => {
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

  it("jumps over folders with more names than a page", async () => {
    const server = await startVaultServer();
    await mustPutAll(server, "app/f0/", 600);
    await mustPutAll(server, "app/f0/more/", 600); // a page has 1,000
    for (const path of ["app/f0", "app/f1/a", "app/f2"]) await mustPut(server, path, "1");
    const list = await vault(server, "LIST", "secret/metadata/app");
    expect(list.json.data.keys).to.deep.equal(["f0", "f0/", "f1/", "f2"]);
  });

  it("shows a client token only its own paths, as if nothing else existed", async () => {
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

  it("is understood between pipelined requests, behind bodies of every kind", async () => {
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

  it("is malformed as LINK, which is what it is respelled as", async () => {
    const server = await startVaultServer();
    const at = { ...server, port: server.vaultPort };
    expect(await exchangeRaw(at, head(server, "LINK /v1/secret/metadata"))).to.match(/^HTTP\/1\.1 400 .*"errors":\[/s);
  });
});
