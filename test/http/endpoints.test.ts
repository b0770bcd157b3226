/** docs/reference/http-api.md, Endpoints: the request and response of each endpoint. */

import { join } from "node:path";
import { expect } from "chai";
import { readManifest } from "../../src/manifest.js";
import { passphrase, shareTestServer, startTestServer } from "../../tools/rig/server.js";
import {
  api,
  mustGet,
  mustInit,
  mustList,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  send,
} from "../../tools/rig/test-client.js";

const tag = /^[\w-]{16}$/;
const isoMilliseconds = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("lifecycle endpoints", () => {
  it("POST /v1/init returns ok, message and vaultPath, and unlocks", async () => {
    const server = await startTestServer();
    const { body } = await api(server, "post", "/v1/init").send({ passphrase }).expect(200);
    expect(body).to.have.all.keys("ok", "message", "vaultPath");
    expect(body.ok).to.equal(true);
    expect(body.message).to.match(/initialized and unlocked/);
    expect(body.vaultPath).to.equal(join(server.home, "vault"));
    expect(await mustStatus(server)).to.include({ initialized: true, locked: false });
  });

  it("POST /v1/unlock returns ok and message", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await api(server, "post", "/v1/lock").expect(200);
    const { body } = await api(server, "post", "/v1/unlock").send({ passphrase }).expect(200);
    expect(body).to.have.all.keys("ok", "message");
    expect(body.ok).to.equal(true);
  });

  it("POST /v1/lock returns ok and message", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const { body } = await api(server, "post", "/v1/lock").expect(200);
    expect(body).to.have.all.keys("ok", "message");
    expect(body.ok).to.equal(true);
  });

  it("POST /v1/shutdown returns ok and message, and the server stops", async () => {
    const server = await startTestServer();
    const { body } = await api(server, "post", "/v1/shutdown").expect(200);
    expect(body).to.have.all.keys("ok", "message");
    expect(body.ok).to.equal(true);
    await server.stopped;
  });

  it("lock, shutdown and delete need no body and ignore one", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "a", "1");
    for (const [method, path] of [
      ["DELETE", "/v1/secrets/a"],
      ["POST", "/v1/lock"],
      ["POST", "/v1/shutdown"],
    ] as const) {
      expect((await send(server, { method, path, body: "not JSON" })).status, path).to.equal(200);
    }
  });
});

describe("GET /v1/status", () => {
  const server = shareTestServer({ idleTimeoutMs: 123_456 });

  it("GET /v1/status returns exactly the fields of the vault status object and four more", async () => {
    const status = await mustStatus(server());
    expect(status).to.have.all.keys(
      ...["initialized", "locked", "secretCount", "vaultPath"],
      ...["serverRunning", "port", "idleTimeoutMs", "lastActivity"],
      ...["version", "lastLock", "certificate", "changes"],
    );
    expect(status["certificate"]).to.have.keys("endsAt");
    expect(status["version"]).to.equal(readManifest().version);
    expect(status["lastLock"]).to.have.keys("reason", "at").and.include({ reason: "start" });
    expect(status["vaultPath"]).to.equal(join(server().home, "vault"));
    expect(status["serverRunning"]).to.equal(true);
    expect(status["port"]).to.equal(server().port);
    expect(status["idleTimeoutMs"]).to.equal(123_456);
    expect(status["lastActivity"]).to.match(isoMilliseconds);
  });

  it("GET /v1/status?require=unlocked returns 503 with the same body without an unlocked vault", async () => {
    const fresh = await startTestServer();
    const required = { path: "/v1/status?require=unlocked", token: null };
    const before = await send(fresh, required);
    expect([before.status, before.json]).to.deep.equal([503, await mustStatus(fresh)]);
    await mustInit(fresh);
    expect((await send(fresh, required)).status).to.equal(200);
    await mustLock(fresh);
    const locked = await send(fresh, required);
    expect([locked.status, locked.json["locked"]]).to.deep.equal([503, true]);
    expect(locked.json["lastLock"]).to.include({ reason: "request" });
  });

  for (const query of ["require", "require=", "require=locked", "require=unlocked&require=unlocked"])
    it(`GET /v1/status refuses ?${query}`, async () => {
      mustRefuse(await send(server(), { path: `/v1/status?${query}`, token: null }), 400, "BAD_REQUEST");
    });

  it("GET /v1/status ignores any other parameter", async () => {
    for (const query of ["x", "%zz", "requires=unlocked"])
      expect((await send(server(), { path: `/v1/status?${query}`, token: null })).status, query).to.equal(200);
  });

  it("GET /v1/status needs no token and ignores a wrong one", async () => {
    expect((await send(server(), { path: "/v1/status", token: null })).status).to.equal(200);
    expect((await send(server(), { path: "/v1/status", token: "wrong" })).status).to.equal(200);
  });

  it("GET /v1/status reports initialized false, locked true and secretCount 0 before init", async () => {
    expect(await mustStatus(server())).to.include({ initialized: false, locked: true, secretCount: 0 });
  });
});

describe("secret endpoints", () => {
  const server = shareTestServer({}, mustInit);

  it("PUT returns ok, path, bytes, the supplied metadata, version and etag", async () => {
    const body = { value: "sécret", type: "api-key", description: "for tests" };
    const { body: answer } = await api(server(), "put", "/v1/secrets/put/all").send(body).expect(200);
    const metadata = { type: "api-key", description: "for tests" };
    expect(answer).to.deep.include({ ok: true, path: "put/all", bytes: 7, metadata, version: 1 });
    expect(answer.etag).to.match(tag);
    expect(answer).to.have.all.keys("ok", "path", "bytes", "metadata", "version", "etag");
  });

  it("PUT without type and description returns empty metadata", async () => {
    const { body: answer } = await api(server(), "put", "/v1/secrets/put/bare").send({ value: "v" }).expect(200);
    expect(answer).to.deep.include({ ok: true, path: "put/bare", bytes: 1, metadata: {} });
  });

  it("GET returns path, value, metadata, createdAt, updatedAt, version and etag", async () => {
    await mustPut(server(), "get/one", { value: "v", type: "other", description: "d" });
    const { body } = await api(server(), "get", "/v1/secrets/get/one").expect(200);
    expect(body).to.have.all.keys("path", "value", "metadata", "createdAt", "updatedAt", "version", "etag");
    expect(body).to.deep.include({ path: "get/one", value: "v", metadata: { type: "other", description: "d" } });
    expect(body.createdAt).to.match(isoMilliseconds);
    expect(body.updatedAt).to.match(isoMilliseconds);
  });

  it("GET /v1/secrets returns entries of path, metadata, createdAt, updatedAt, version and etag, never a value", async () => {
    await mustPut(server(), "list/one", { value: "list-canary", type: "certificate" });
    await mustPut(server(), "list/two", { value: "list-canary", description: "second" });
    const { body, text } = await api(server(), "get", "/v1/secrets?prefix=list/").expect(200);
    expect(body).to.have.all.keys("entries");
    expect(text).not.to.contain("list-canary");
    for (const entry of body.entries) {
      expect(entry).to.have.all.keys("path", "metadata", "createdAt", "updatedAt", "version", "etag");
      expect(entry.createdAt).to.match(isoMilliseconds);
      expect(entry.updatedAt).to.match(isoMilliseconds);
    }
  });

  it("a field that was not supplied is absent from metadata in listings", async () => {
    await mustPut(server(), "absent/none", "v");
    await mustPut(server(), "absent/type", { value: "v", type: "other" });
    await mustPut(server(), "absent/description", { value: "v", description: "d" });
    const found = (await mustList(server(), "?prefix=absent/")).map(({ metadata }) => metadata);
    expect(found).to.deep.equal([{ description: "d" }, {}, { type: "other" }]);
  });

  it("DELETE returns ok, path and message, and the secret is gone", async () => {
    await mustPut(server(), "delete/me", "v");
    const { body } = await api(server(), "delete", "/v1/secrets/delete/me").expect(200);
    expect(body).to.have.all.keys("ok", "path", "message");
    expect(body).to.include({ ok: true, path: "delete/me" });
    mustRefuse(await send(server(), { path: "/v1/secrets/delete/me" }), 404, "NOT_FOUND");
    expect(await mustList(server(), "?prefix=delete/")).to.deep.equal([]);
  });

  it("PUT on an existing path replaces value and metadata: omitted fields disappear, createdAt stays", async () => {
    await mustPut(server(), "replace", { value: "old", type: "other", description: "old" });
    const before = await mustGet(server(), "replace");
    await mustPut(server(), "replace", { value: "new", type: "password" });
    const after = await mustGet(server(), "replace");
    expect(after).to.deep.include({ value: "new", metadata: { type: "password" }, createdAt: before["createdAt"] });
    expect(Date.parse(String(after["updatedAt"]))).to.be.at.least(Date.parse(String(before["updatedAt"])));
  });

  for (const type of ["oauth-token", "api-key", "password", "certificate", "other"]) {
    it(`the type ${type} is allowed`, async () => {
      await mustPut(server(), `type/${type}`, { value: "v", type });
      expect((await mustGet(server(), `type/${type}`))["metadata"]).to.deep.equal({ type });
    });
  }

  const values: readonly (readonly [string, string])[] = [
    ["an empty value", ""],
    ["quotes, backslashes and slashes", '"\\/'],
    ["every control character", String.fromCharCode(...Array.from({ length: 32 }, (_, i) => i), 127)],
    ["characters of one to four bytes", "aé€😀"],
    ["line and paragraph separators", "\u2028\u2029"],
    ["a value that looks like JSON", '{"value":"x"}'],
    ["a megabyte", "x".repeat(2 ** 20)],
  ];
  for (const [name, value] of values) {
    it(`returns ${name} unchanged`, async () => {
      const { bytes } = await mustPut(server(), "value", value);
      expect(bytes).to.equal(Buffer.byteLength(value));
      expect((await mustGet(server(), "value"))["value"] === value).to.equal(true);
    });
  }

  for (const method of ["get", "delete"] as const) {
    it(`${method.toUpperCase()} of a path that does not exist returns 404 NOT_FOUND`, async () => {
      await api(server(), method, "/v1/secrets/no/such")
        .expect(404)
        .expect(/"code":"NOT_FOUND"/);
    });
  }
});

describe("times", () => {
  it("updatedAt never goes backwards, even when the clock does", async () => {
    const { FakeClock } = await import("../support/manual-clock.js");
    const clock = new FakeClock();
    const server = await startTestServer({ clock, idleTimeoutMs: 0 });
    await mustInit(server);
    await mustPut(server, "a", "1");
    const before = await mustGet(server, "a");
    clock.jump(-3_600_000);
    await mustPut(server, "a", "2");
    const after = await mustGet(server, "a");
    expect(after["updatedAt"]).to.equal(before["updatedAt"]);
    clock.jump(7_200_000);
    await mustPut(server, "a", "3");
    const later = await mustGet(server, "a");
    expect(later["createdAt"]).to.equal(before["createdAt"]);
    expect(Date.parse(String(later["updatedAt"])) - Date.parse(String(before["updatedAt"]))).to.equal(3_600_000);
  });
});
