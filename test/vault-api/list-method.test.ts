/** The method LIST before the parser: pieces of any size, pipelined requests, and bodies that look like requests. */
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect } from "chai";
import fc from "fast-check";
import { addPipeline, inTurn } from "../../src/http/connections.js";
import { later } from "../../tools/rig/clean-up.js";

type Sent = {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly framing: "length" | "chunks" | "none";
};

const seen: string[] = [];

/** A server that notes method, path and body of each request. */
async function startNoting(): Promise<number> {
  const server = createServer();
  const serve = inTurn((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(Buffer.from(chunk)));
    req.on("end", () => {
      seen.push(`${req.method} ${req.url} ${Buffer.concat(chunks).toString("latin1")}`);
      res.end("ok");
    });
  });
  server.on("request", serve).on("connection", (socket) => addPipeline(socket, { takesList: true }));
  server.on("clientError", (_error, socket) => {
    seen.push("malformed");
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  later(() => void server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function requestText({ method, path, body, framing }: Sent): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\n`;
  if (framing === "none") return `${head}\r\n`;
  if (framing === "length") return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  const chunk = body === "" ? "" : `${body.length.toString(16)}\r\n${body}\r\n`;
  return `${head}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`;
}

/** Sends the text in pieces, and returns what the server saw once it has answered all, or closed. */
async function exchange(
  port: number,
  text: string,
  cuts: readonly number[],
  count: number,
): Promise<readonly string[]> {
  seen.length = 0;
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  const closed = once(socket, "close");
  let answers = 0;
  socket
    .on("error", () => {})
    .on("data", (bytes) => {
      answers += bytes.toString().split("HTTP/1.1 200").length - 1;
      if (answers === count) socket.end();
    });
  const ends = [...new Set(cuts.map((cut) => cut % text.length))].sort((a, b) => a - b);
  for (const [i, end] of [...ends, text.length].entries()) {
    socket.write(text.slice(ends[i - 1] ?? 0, end), "latin1");
    if (i % 3 === 2) await new Promise(setImmediate);
  }
  await closed;
  return [...seen];
}

const bodies = [
  "",
  "LIST ",
  "LIST /v1/x HTTP/1.1\r\n\r\n",
  "\r\n\r\nLIST /a HTTP/1.1\r\nHost: x\r\n\r\n",
  "0\r\n\r\nLIST ",
  "LINK LIST\r\n",
  "x".repeat(3000),
  "\r\n\r",
];

const request: fc.Arbitrary<Sent> = fc.record({
  method: fc.constantFrom("LIST", "GET", "POST", "LOCK", "PUT"),
  path: fc.constantFrom("/v1/secret/metadata", "/LIST", "/L?list=LIST"),
  body: fc.constantFrom(...bodies),
  framing: fc.constantFrom("length", "chunks", "none"),
});

describe("the method LIST before the parser", () => {
  it("LIST reaches the handler as LINK with head and body unchanged, however it is cut and pipelined", async () => {
    const port = await startNoting();
    const all = fc.array(request, { minLength: 1, maxLength: 6 });
    const breaks = fc.constantFrom("", "\r\n", "\r\n\r\n");
    await fc.assert(
      fc.asyncProperty(all, fc.array(fc.nat(), { maxLength: 40 }), breaks, async (requests, cuts, between) => {
        const expected = requests.map(({ method, path, body, framing }) => {
          return `${method === "LIST" ? "LINK" : method} ${path} ${framing === "none" ? "" : body}`;
        });
        const text = requests.map(requestText).join(between);
        expect(await exchange(port, text, cuts, requests.length)).to.deep.equal(expected);
      }),
      { numRuns: Number(process.env["STRONGROOM_LIST_FUZZ"] ?? 60) },
    );
  });

  it("LIST is understood when it is cut at every byte", async () => {
    const port = await startNoting();
    const requests: readonly Sent[] = bodies.flatMap((body) => [
      { method: "LIST", path: "/a", body: "", framing: "none" },
      { method: "POST", path: "/b", body, framing: "chunks" },
    ]);
    const text = requests.map(requestText).join("");
    const cuts = Array.from({ length: Math.min(text.length, 900) }, (_, i) => i + 1);
    const found = await exchange(port, text, cuts, requests.length);
    expect(found).to.deep.equal(
      requests.map(({ method, path, body }) => `${method === "LIST" ? "LINK" : method} ${path} ${body}`),
    );
  });

  it("LINK, near misses of LIST, and LIST after thousands of empty lines are malformed", async () => {
    const port = await startNoting();
    for (const method of ["LINK", "LISK", "LIS", "LISTS", "list"]) {
      expect(await exchange(port, `${method} /a HTTP/1.1\r\nHost: x\r\n\r\n`, [3], 1), method).to.deep.equal([
        "malformed",
      ]);
    }
    const flood = requestText({ method: "POST", path: "/a", body: "\r\n\r\n".repeat(5000), framing: "chunks" });
    const found = await exchange(port, `${flood}LIST /b HTTP/1.1\r\nHost: x\r\n\r\n`, [], 2);
    expect(found.map((one) => one.slice(0, 9))).to.have.members(["POST /a \r", "malformed"]);
  });
});
