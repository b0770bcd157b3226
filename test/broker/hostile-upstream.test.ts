/** Responses that two clients could read in two ways, or that were not asked for: the upstream is bound, and not trusted for it. */
import type { TLSSocket } from "node:tls";
import { expect } from "chai";
import {
  type Agent,
  openTunnel,
  sendThrough,
  startAgent,
  startBound,
  startTls,
  startUpstream,
} from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";

type Rig = { readonly agent: Agent; readonly at: string; readonly respond: (...responses: readonly string[]) => void };

const get = (at: string, ...lines: readonly string[]) =>
  `${["GET /x HTTP/1.1", `Host: ${at}`, ...lines].join("\r\n")}\r\n\r\n`;

const refused: readonly (readonly [what: string, response: string])[] = [
  ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
  ["a length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["another coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
  ["a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na"],
  ["a bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"],
  ["a bare CR", "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n"],
  ["a folded line", "HTTP/1.1 200 OK\r\nX: a\r\n Content-Length: 5\r\n\r\n"],
  ["a NUL", "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"],
  ["space before a colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n"],
  ["another version", "HTTP/2.0 200 OK\r\n\r\n"],
  ["no status line", "220 mail.test ESMTP\r\n\r\n"],
  ["a head of 300 KiB", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(300_000)}\r\n\r\n`],
  [
    "an upgrade that was not asked for",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
  ],
];

describe("hostile upstreams", () => {
  const rig = shared(async (): Promise<Rig> => {
    const upstream = await startUpstream();
    let responses: readonly string[] = [];
    upstream.server.removeAllListeners("secureConnection").on("secureConnection", (socket: TLSSocket) => {
      let text = "";
      socket
        .on("error", () => {})
        .on("data", (piece: Buffer) => {
          text += piece.toString("latin1");
          if (!text.endsWith("\r\n\r\n")) return;
          const [next = "", ...rest] = responses;
          responses = rest;
          text = "";
          socket.write(Buffer.from(next, "latin1"));
        });
    });
    const { server, at } = await startBound(upstream);
    const respond = (...next: readonly string[]) => {
      responses = next;
    };
    return { agent: await startAgent(server), at, respond };
  });

  for (const [what, response] of refused) {
    it(`a response with ${what} is not passed on`, async () => {
      const { agent, at, respond } = rig();
      respond(response);
      expect(await sendThrough(agent, at, get(at))).to.match(/^HTTP\/1.1 502 .*Strongroom-Broker: refused/s);
    });
  }

  it("an upgrade to HTTP/2 that the program requested is not passed on", async () => {
    const { agent, at, respond } = rig();
    respond("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
    const asked = get(at, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__");
    expect(await sendThrough(agent, at, asked)).to.match(/^HTTP\/1.1 502 /);
  });

  it("a response loses its trailers, and one with a head of 100 KiB arrives whole", async () => {
    const { agent, at, respond } = rig();
    const trailers = "Server-Timing: a;dur=1\r\nAuthorization: x\r\n";
    const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Server-Timing\r\n\r\n";
    respond(`${head}5\r\nhello\r\n0\r\n${trailers}\r\n`);
    expect(await sendThrough(agent, at, get(at, "Connection: close"))).to.equal(`${head}5\r\nhello\r\n0\r\n\r\n`);
    const long = `HTTP/1.1 200 OK\r\n${`Set-Cookie: ${"x".repeat(990)}\r\n`.repeat(100)}Content-Length: 4\r\n\r\nlong`;
    respond(long);
    expect(await sendThrough(agent, at, get(at, "Connection: close"))).to.equal(long);
  });

  it("a response arrives after a thousand early hints", async () => {
    const { agent, at, respond } = rig();
    respond(`${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1000)}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast`);
    const all = await sendThrough(agent, at, get(at, "Connection: close"));
    expect(all.split("HTTP/1.1 103 ")).to.have.length(1001);
    expect(all).to.match(/200 OK\r\nContent-Length: 4\r\n\r\nlast$/);
  });

  it("an unrequested second response is not passed on to a later request", async () => {
    const { agent, at, respond } = rig();
    const own = (text: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
    respond(own("first") + own("forged"), own("second"));
    const opened = await openTunnel(agent, at);
    if (typeof opened === "string") throw new Error(opened);
    const secure = await startTls(agent, opened, "localhost", "localhost");
    expect(await next(secure, get(at), "first")).not.to.contain("forged");
    expect(await next(secure, get(at), "second")).not.to.contain("forged");
    secure.destroy();
  });
});

/** Sends a request, and returns what comes until the wanted text. */
function next(socket: TLSSocket, request: string, wanted: string): Promise<string> {
  let text = "";
  return new Promise((resolve, reject) => {
    const take = (piece: Buffer) => {
      text += piece.toString("latin1");
      if (!text.includes(wanted) && !text.includes("forged")) return;
      socket.off("data", take);
      resolve(text);
    };
    socket.on("data", take).once("close", () => reject(new Error(`closed after ${JSON.stringify(text)}`)));
    socket.write(request);
  });
}
