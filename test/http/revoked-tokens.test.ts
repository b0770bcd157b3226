/** Connections of a revoked token. */
import { once } from "node:events";
import type { TLSSocket } from "node:tls";
import { expect } from "chai";
import { later } from "../../tools/rig/clean-up.js";
import { startTestServer } from "../../tools/rig/server.js";
import { connectRaw, mustCreateToken, mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";

describe("a token that is revoked", () => {
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
