/** The root token when it is replaced while its requests wait, and what the connections of a revoked token lose. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import type { TLSSocket } from "node:tls";
import { expect } from "chai";
import { later } from "../../tools/rig/clean-up.js";
import { passphrase, startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  connectRaw,
  type Json,
  mustCreateToken,
  mustGet,
  mustInit,
  mustPut,
  mustRefuse,
  mustSucceed,
  send,
} from "../../tools/rig/test-client.js";
import { heldFiles } from "../support/held-files.js";

const secret = "/v1/secrets/app/a";
const transitChanges: readonly (readonly [name: string, method: string, path: string, body: object])[] = [
  ["rotate a transit key", "POST", "/v1/transit/keys/app/key/rotate", {}],
  ["configure a transit key", "POST", "/v1/transit/keys/app/key/config", { deletionAllowed: false }],
  ["delete a transit key", "DELETE", "/v1/transit/keys/app/key", {}],
];

const binding = { host: "example.com" };
const withBody: readonly (readonly [method: string, path: string, body: object])[] = [
  ["POST", "/v1/tokens", { name: "late", can: ["get"] }],
  ["POST", "/v1/tokens/root", {}],
  ["POST", "/v1/tokens/ci", {}],
  ["POST", "/v1/keys", { passphrase, label: "late" }],
  ["POST", "/v1/init", { passphrase, force: true }],
  ["POST", "/v1/transit/keys/app/new", {}],
  ["POST", "/v1/transit/random", {}],
  ["PUT", "/v1/uses/app/a", binding],
];

/** Sends the body once `before` is done, while the server waits for it. Returns the status of the response. */
async function sendLate(
  server: TestServer,
  [method, path, body]: (typeof withBody)[number],
  before: () => Promise<void>,
) {
  const { port, certificate, token } = server;
  const text = JSON.stringify(body);
  const options = { host: "127.0.0.1", port, servername: "localhost", ca: certificate, method, path };
  const headers = { authorization: `Bearer ${token}`, "content-length": text.length, expect: "100-continue" };
  const slow = request({ ...options, headers });
  const response = once(slow, "response");
  await new Promise((resolve) => slow.once("continue", resolve).flushHeaders());
  await before();
  slow.end(text);
  const [{ statusCode }] = (await response) as [IncomingMessage];
  return statusCode;
}

describe("a token that is revoked", () => {
  it("is the root token, of which no change is carried out once its value was replaced without an overlap", async () => {
    const { files, hold } = heldFiles();
    const server = await startTestServer({ files });
    await mustInit(server);
    await mustPut(server, "app/a", "first");
    const { reached, release } = hold("/app/");
    const before = send(server, { method: "PUT", path: secret, body: { value: "second" } });
    await reached;
    const late = send(server, { method: "PUT", path: secret, body: { value: "late" } });
    const bound = send(server, { method: "PUT", path: "/v1/uses/app/a", body: binding });
    await send(server, { path: "/v1/tokens/self" }); // the late one has come by now
    const { token } = mustSucceed(await send(server, { method: "POST", path: "/v1/tokens/root" })) as { token: string };
    release();
    mustSucceed(await before);
    for (const refused of [late, bound]) mustRefuse(await refused, 401, "UNAUTHORIZED");
    expect((await mustGet({ ...server, token }, "app/a"))["value"]).to.equal("second");
  });

  it("is the root token, which makes no token, key or anything else once it was replaced before the body came", async () => {
    const server = await startTestServer({});
    await mustInit(server);
    await mustPut(server, "app/a", "first");
    await mustCreateToken(server, { name: "ci", can: ["get"] });
    let current = server;
    for (const sent of withBody) {
      const before = current;
      const status = await sendLate(before, sent, async () => {
        const { token } = mustSucceed(await send(before, { method: "POST", path: "/v1/tokens/root" }));
        current = { ...before, token: String(token) };
      });
      expect(status, sent[1]).to.equal(401);
    }
    const { tokens } = mustSucceed(await send(current, { path: "/v1/tokens" })) as { tokens: Json[] };
    expect(tokens.map(({ name }) => name)).to.deep.equal(["ci"]);
    expect((await mustGet(current, "app/a"))["value"]).to.equal("first");
    expect(mustSucceed(await send(current, { path: "/v1/transit/keys" }))["keys"]).to.deep.equal([]);
  });

  for (const [name, method, path, body] of transitChanges)
    it(`does not ${name} that storage was still reading, once the root token was replaced`, async () => {
      const { files, hold } = heldFiles();
      const server = await startTestServer({ files, ...uncached });
      await mustInit(server);
      const key = "/v1/transit/keys/app/key";
      for (const [to, sent] of [
        ["", { type: "ed25519" }],
        ["/config", { deletionAllowed: true }],
      ])
        mustSucceed(await send(server, { method: "POST", path: `${key}${to}`, body: sent as object }));
      const { reached, release } = hold("/app/");
      const late = send(server, { method, path, body });
      await reached;
      const { token } = mustSucceed(await send(server, { method: "POST", path: "/v1/tokens/root" })) as Json;
      release();
      mustRefuse(await late, 401, "UNAUTHORIZED");
      const list = mustSucceed(await send({ ...server, token: String(token) }, { path: "/v1/transit/keys" }));
      expect(list["keys"]).to.deep.equal([{ name: "app/key", type: "ed25519", latestVersion: 1 }]);
      const shown = mustSucceed(await send({ ...server, token: String(token) }, { path: key }));
      expect(shown["deletionAllowed"]).to.equal(true);
    });

  it("no longer keeps its connections open where there are too many", async () => {
    const server = await startTestServer({
      maxConnections: 8,
      limits: { keepAliveTimeout: 600_000, sendTimeout: 600_000 },
    });
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "ci" });
    const request = `GET /v1/tokens/self HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const ask = async (socket: TLSSocket) => {
      socket.write(request);
      return String(((await once(socket, "data")) as [Buffer])[0]).slice(9, 12);
    };
    const open = async () => {
      const socket = connectRaw(server).on("error", () => {});
      later(() => void socket.destroy());
      await once(socket, "secureConnect");
      return socket;
    };
    const sockets: TLSSocket[] = [];
    for (let n = 0; n < 3; n++) {
      const socket = await open();
      expect(await ask(socket)).to.equal("200");
      sockets.push(socket);
    }
    mustSucceed(await send(server, { method: "DELETE", path: "/v1/tokens/ci" }));
    const closed = once(sockets[0] as TLSSocket, "close");
    for (const socket of sockets) expect(await ask(socket)).to.equal("401");
    await open();
    await closed;
  });
});

describe("a token that can put, and neither list nor get", () => {
  it("learns no metadata by an undo or a change of the metadata", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "app/a", { value: "v", description: "not for this token" });
    await mustPut(server, "app/a", { value: "w" });
    const { token } = await mustCreateToken(server, { name: "ci", can: ["put"] });
    const undo = { method: "POST", path: "/v1/versions/app/a", body: { version: 1 } };
    const patch = { method: "PATCH", path: "/v1/metadata/app/a", body: { type: "other" } };
    for (const request of [undo, patch]) {
      expect(mustSucceed(await send(server, { ...request, token }))["metadata"]).to.deep.equal({});
      expect(mustSucceed(await send(server, request))["metadata"]).to.include({ description: "not for this token" });
    }
  });
});
