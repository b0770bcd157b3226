/** Responses in buffers of our own are what Node itself would have sent. */
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { expect } from "chai";
import { type ResponseStart, sendOwned } from "../../src/http/sending.js";
import { later } from "../../tools/rig/clean-up.js";

const headers = ["Content-Type", "text/plain", "Cache-Control", "no-store"];

type Respond = (res: ServerResponse, all: string[], length: number, pieces: readonly Buffer[], etag?: string) => void;

const byNode: Respond = (res, all, _length, pieces) => {
  res.writeHead(200, all);
  for (const piece of pieces.slice(0, -1)) res.write(piece);
  res.end(pieces.at(-1));
};

const owned: Respond = (res, all, length, pieces, etag) => {
  expect(
    sendOwned(
      res,
      responseStart(() => all, length, etag),
      pieces,
    ),
  ).to.equal(true);
};

function responseStart(headers: () => string[], length: number, etag: string | undefined): ResponseStart {
  return { status: 200, headers, type: "text/plain", length, etag };
}

describe("responses in buffers of our own", () => {
  const bodies: readonly (readonly [string, readonly string[]])[] = [
    ["one small piece", ["a secret"]],
    ["many pieces", Array.from({ length: 50 }, (_, i) => `piece ${i},`)],
    ["an empty piece", [""]],
    ["a piece larger than a buffer", ["x".repeat(200_000)]],
    ["large pieces between small ones", ["a", "b".repeat(70_000), "c", "d".repeat(70_000), "e"]],
  ];
  for (const [what, texts] of bodies) {
    for (const etag of [undefined, "n0O6NdgaeP0QMXWP"]) {
      it(`a response of ${what} with ${etag === undefined ? "no" : "an"} etag is byte for byte what Node sends, also again on a connection`, async () => {
        const [ours, theirs] = [await received(owned, texts, etag), await received(byNode, texts, etag)];
        expect(ours).to.equal(theirs);
        expect(ours.split(texts.join("")).length).to.be.at.least(3);
      });
    }
  }

  for (const etag of [undefined, "n0O6NdgaeP0QMXWP"]) {
    it(`a response with ${etag === undefined ? "no" : "an"} etag has Node compute its head once a second`, async () => {
      let heads = 0;
      const seconds = new Set<number>();
      const noteSecond = () => seconds.add(Math.trunc(Date.now() / 1000));
      const respond: Respond = (res, all, length, pieces) => {
        const headers = () => {
          heads++;
          return all;
        };
        noteSecond();
        sendOwned(res, responseStart(headers, length, etag), pieces);
        noteSecond();
      };
      await received(respond, ["a secret"], etag);
      expect(heads).to.be.at.most(seconds.size);
    });
  }
});

/** Returns all bytes that three requests on one connection get, without the dates. */
async function received(respond: Respond, texts: readonly string[], etag?: string): Promise<string> {
  const server = createServer((_req, res) => {
    const pieces = texts.map((text) => Buffer.from(text));
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const all = [...headers, "Content-Length", String(length), ...(etag === undefined ? [] : ["ETag", `"${etag}"`])];
    respond(res, all, length, pieces, etag);
  }).listen(0, "127.0.0.1");
  later(() => void server.close());
  await once(server, "listening");
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  later(() => agent.destroy());
  const connections = new Set<Socket>();
  let bytes = "";
  for (let n = 0; n < 3; n++) {
    const sent = request({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", agent }).end();
    sent.once("socket", (socket) => {
      if (connections.has(socket)) return;
      connections.add(socket);
      socket.on("data", (chunk: Buffer) => {
        bytes += chunk.toString("latin1");
      });
    });
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    await once(response.resume(), "end");
  }
  expect(connections.size).to.equal(1);
  return bytes.replaceAll(/Date: .*\r\n/g, "");
}
