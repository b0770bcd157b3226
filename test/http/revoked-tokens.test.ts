/** Connections of a revoked token. */
import { once } from "node:events";
import type { TLSSocket } from "node:tls";
import { expect } from "chai";
import { later } from "../../tools/rig/clean-up.js";
import { startTestServer } from "../../tools/rig/server.js";
import { connectRaw, mustCreateToken, mustInit, mustSucceed, send } from "../../tools/rig/test-client.js";

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
