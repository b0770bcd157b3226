/** A start: each of the server's ports responds from the moment it is open. */
import { connect as connectTcp, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { freePort } from "../../tools/rig/postgres.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustInit, mustStatus } from "../../tools/rig/test-client.js";

type Opened = "connected" | "refused";

function opened(socket: Socket, event: "connect" | "secureConnect"): Promise<Opened> {
  return new Promise((resolve) => {
    socket.once(event, () => resolve("connected")).once("error", () => resolve("refused"));
  });
}

/** Connects as soon as the port is open, and returns all that comes in response to the request. */
async function firstResponse(dial: () => Socket, event: "connect" | "secureConnect", request: string): Promise<string> {
  for (;;) {
    const socket = dial();
    if ((await opened(socket, event)) === "connected") return received(socket, request);
    await nextTurn();
  }
}

function received(socket: Socket, request: string): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    later(() => void socket.destroy());
    socket.on("error", () => {}).on("close", () => resolve(text));
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    socket.write(request);
  });
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
const connectRequest = "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n";

describe("starts", () => {
  it("each port responds to what comes as soon as it is open", async () => {
    const [port, vaultPort, brokerPort] = [await freePort(), await freePort(), await freePort()];
    const socket = `${temporaryDirectory()}/s.sock`;
    const host = "127.0.0.1";
    const overTls = (to: number) => () => connectTls({ host, port: to, rejectUnauthorized: false });
    const responses = [
      firstResponse(overTls(port), "secureConnect", get("/v1/status")),
      firstResponse(overTls(vaultPort), "secureConnect", get("/v1/sys/seal-status")),
      firstResponse(() => connectTcp({ host, port: brokerPort }), "connect", connectRequest),
      firstResponse(() => connectTcp(socket), "connect", get("/v1/status")),
    ];
    await startTestServer({ port, vaultPort, brokerPort, socket });
    const statuses = (await Promise.all(responses)).map((text) => text.slice(0, "HTTP/1.1 200".length));
    expect(statuses).to.deep.equal(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 407", "HTTP/1.1 200"]);
  });

  it("a start that fails at its last port leaves none open", async () => {
    const taken: TestServer = await startTestServer();
    await mustInit(taken);
    const [vaultPort, brokerPort] = [await freePort(), await freePort()];
    const refused = startTestServer({ port: taken.port, vaultPort, brokerPort });
    expect(String(await refused.catch((error: unknown) => error))).to.contain(`port ${taken.port} of`);
    for (const port of [vaultPort, brokerPort])
      expect(await opened(connectTcp({ host: "127.0.0.1", port }), "connect"), String(port)).to.equal("refused");
    expect(await mustStatus(taken)).to.include({ locked: false });
  });
});
