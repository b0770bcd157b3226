/** The broker's reader of message heads: what it refuses, and that Node's own parser agrees with what it accepts. */
import { createServer, type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { expect } from "chai";
import { array, assert, asyncProperty, constantFrom, integer, oneof, string, tuple } from "fast-check";
import { bodyReader, type MessageKind } from "../../src/broker/body.js";
import { HeadError, headLength, type RequestHead, readRequestHead, readResponseHead } from "../../src/broker/head.js";

const bytes = (text: string) => Buffer.from(text, "latin1");

function read(text: string): RequestHead | string {
  try {
    const length = headLength(bytes(text));
    return length === null ? "incomplete" : readRequestHead(bytes(text).subarray(0, length));
  } catch (error) {
    if (error instanceof HeadError) return error.message;
    throw error;
  }
}

const request = (...lines: readonly string[]) => `${["GET / HTTP/1.1", "Host: a.test", ...lines].join("\r\n")}\r\n\r\n`;

describe("the broker's head reader", () => {
  const refused: readonly (readonly [rule: string, text: string])[] = [
    ["two lengths", request("Content-Length: 1", "Content-Length: 2")],
    ["a name that some servers read as another one", request("X.HTTP.Method.Override: DELETE")],
    ["a length that only some servers read", request("Content_Length: 5", "Content-Length: 0")],
    ["a coding that only some servers read", request("Transfer_Encoding: chunked")],
    ["the same length twice", request("Content-Length: 1", "Content-Length: 1")],
    ["a list of lengths", request("Content-Length: 1, 1")],
    ["a length with a sign", request("Content-Length: +1")],
    ["a length with a leading zero", request("Content-Length: 01")],
    ["a length with chunks", request("Content-Length: 1", "Transfer-Encoding: chunked")],
    ["two codings", request("Transfer-Encoding: gzip, chunked")],
    ["an unknown coding", request("Transfer-Encoding: xchunked")],
    ["a coding behind a tab and control character", request("Transfer-Encoding:\x0bchunked")],
    ["two codings in two lines", request("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")],
    ["a bare LF", "GET / HTTP/1.1\nHost: a.test\n\n"],
    ["a bare LF between lines", "GET / HTTP/1.1\r\nHost: a.test\nX: y\r\n\r\n"],
    ["a bare CR", "GET / HTTP/1.1\r\nHost: a.test\rX: y\r\n\r\n"],
    ["a bare LF as the blank line", "GET / HTTP/1.1\r\nHost: a.test\r\n\n"],
    ["a folded line", request("X: a", " b")],
    ["a space before the colon", request("Content-Length : 1")],
    ["a name with a space", request("X Y: a")],
    ["a line without a colon", request("X")],
    ["a NUL in a value", request("X: a\0b")],
    ["no Host", "GET / HTTP/1.1\r\n\r\n"],
    ["two Hosts", request("Host: b.test")],
    ["HTTP/1.0", "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n"],
    ["HTTP/2.0", "GET / HTTP/2.0\r\nHost: a.test\r\n\r\n"],
    ["two spaces in the request line", "GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
    ["a tab in the request line", "GET\t/ HTTP/1.1\r\nHost: a.test\r\n\r\n"],
    ["a target with a space", "GET /a b HTTP/1.1\r\nHost: a.test\r\n\r\n"],
    ["an empty line first", "\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
    ["Connection that names the credential's header", request("Connection: authorization")],
    ["a body before a WebSocket", request("Connection: Upgrade", "Upgrade: websocket", "Transfer-Encoding: chunked")],
    ["an expectation that no server knows", request("Expect: 200-ok")],
    ["more than 100 lines", request(...new Array<string>(101).fill("X: y"))],
    ["more than 16 KiB", request(`X: ${"y".repeat(16 * 1024)}`)],
    ["more than 16 KiB without an end", `GET / HTTP/1.1\r\nX: ${"y".repeat(17 * 1024)}`],
  ];
  for (const [rule, text] of refused) {
    it(`a head with ${rule} is refused`, () => {
      expect(read(text)).to.be.a("string").and.not.equal("incomplete");
    });
  }

  it("the reader waits for the end of a head, in pieces of any size", () => {
    const text = request("Content-Length: 3");
    for (let length = 0; length < text.length; length++)
      expect(headLength(bytes(text.slice(0, length)))).to.equal(null);
    expect(headLength(bytes(`${text}abc`))).to.equal(text.length);
  });

  it("the reader returns method, target, host, length, upgrade and close of a head", () => {
    const head = read(
      request("Content-Length: 0", "Connection: keep-alive, Upgrade", "Upgrade: websocket", "Expect: 100-Continue"),
    );
    expect(head).to.include({
      method: "GET",
      target: "/",
      host: "a.test",
      body: 0,
      hasBody: true,
      asksWebSocket: true,
      asksClose: false,
    });
  });

  it("a CONNECT of HTTP/1.0 without a Host is accepted", () => {
    expect(read("CONNECT a.test:443 HTTP/1.0\r\n\r\n")).to.include({ method: "CONNECT", host: null });
  });

  const responses: readonly (readonly [head: string, method: string, body: number | string, closes: boolean])[] = [
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 5, false],
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", 0, false],
    ["HTTP/1.1 204\r\n\r\n", "GET", 0, false],
    ["HTTP/1.1 200 OK\r\n\r\n", "GET", "until-close", false],
    ["HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 5, true],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n", "GET", "chunked", true],
  ];
  for (const [text, method, body, closes] of responses) {
    it(`the response ${JSON.stringify(text)} to ${method} is read`, () => {
      expect(readResponseHead(bytes(text), method)).to.include({ body, closes });
    });
  }

  it("Node's parser agrees with every head that the reader accepts", async () => {
    const runs = Number(process.env["STRONGROOM_HEAD_RUNS"] ?? 100);
    const piece = oneof(
      constantFrom(
        "Host: b.test",
        "Content-Length: 1",
        "Content-Length:1 ",
        "Transfer-Encoding: chunked",
        "Connection: close",
      ),
      constantFrom(
        "Connection: upgrade",
        "Upgrade: h2c",
        "Expect: 100-continue",
        "X:\ty",
        "X: \xe9",
        "X: a\0",
        "x-a:",
        " folded",
      ),
      tuple(string({ maxLength: 6 }), string({ maxLength: 6 })).map(([name, value]) => `${name}: ${value}`),
    );
    const end = constantFrom("\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r");
    const line = tuple(
      constantFrom("GET", "POST", "M-SEARCH", "PUT"),
      constantFrom("/", "/a?b=c", "/a#b", "a", "/é"),
      constantFrom("1.1", "1.0"),
    );
    const head = tuple(line, array(tuple(piece, end), { maxLength: 5 }), integer({ min: 0, max: 9 })).map(
      ([[method, target, version], lines, host]) => {
        const named = host > 0 ? "Host: a.test\r\n" : "";
        return `${method} ${target} HTTP/${version}\r\n${named}${lines.map(([text, ending]) => text + ending).join("")}\r\n`;
      },
    );
    await assert(
      asyncProperty(head, async (text) => {
        const ours = read(text);
        if (typeof ours === "string") return;
        const theirs = await readByNode(text);
        expect(theirs, JSON.stringify(text)).to.deep.equal({
          method: ours.method,
          url: ours.target,
          host: ours.host,
          length: typeof ours.body === "number" ? String(ours.body) : ours.body,
        });
      }),
      { numRuns: runs },
    );
  });
});

type Seen = { readonly method: string; readonly url: string; readonly host: string; readonly length: string };

/** Returns the head that Node's server reads from the same bytes; null when it refuses them. */
function readByNode(text: string): Promise<Seen | null> {
  return new Promise((resolve) => {
    const seen = ({ method, url, headers }: IncomingMessage) => {
      const length = headers["transfer-encoding"] ?? headers["content-length"] ?? "0";
      resolve({ method: method ?? "", url: url ?? "", host: headers.host ?? "", length: length.toLowerCase() });
      connection.destroy();
    };
    const server = createServer(seen).on("clientError", () => resolve(null));
    server.on("checkContinue", seen).on("checkExpectation", seen).on("upgrade", seen);
    const connection = new Duplex({ read() {}, write: (_piece, _encoding, done) => done() });
    server.emit("connection", connection);
    connection.push(bytes(text));
  });
}

describe("the broker's reader of bodies", () => {
  type Consumed = { readonly taken: number; readonly ended: boolean; readonly passed: string };

  function consume(text: string, size: number, kind: MessageKind = "request"): Consumed | string {
    const reader = bodyReader("chunked", kind);
    let [taken, passed] = [0, ""];
    try {
      for (let at = 0; at < text.length && !reader.ended; at += size) {
        const found = reader.take(bytes(text.slice(at, at + size)));
        taken += found.taken;
        passed += Buffer.concat(found.passed).toString("latin1");
      }
      return { taken, ended: reader.ended, passed };
    } catch (error) {
      if (error instanceof HeadError) return error.message;
      throw error;
    }
  }

  for (const size of [1, 2, 3, 7, 100]) {
    it(`a chunked body ends with its last chunk, read ${size} bytes at a time`, () => {
      const body = "5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n";
      const whole = { taken: body.length, ended: true, passed: body };
      expect(consume(`${body}GET / HTTP/1.1`, size)).to.deep.equal(whole);
      expect(consume(`${body}HTTP/1.1 200 OK`, size, "response")).to.deep.equal(whole);
    });

    it(`trailers of a response are dropped, and those of a request refused, read ${size} bytes at a time`, () => {
      const [chunks, trailers] = ["5\r\nhello\r\n0\r\n", "Server-Timing: a;dur=1\r\nSet-Cookie: a=b\r\n\r\n"];
      const body = chunks + trailers;
      const passed = `${chunks}\r\n`;
      expect(consume(`${body}HTTP/1.1 200 OK`, size, "response")).to.deep.equal({
        taken: body.length,
        ended: true,
        passed,
      });
      expect(consume(body, size)).to.equal("trailers are not supported");
    });
  }

  const readable = [
    `5;${"x".repeat(1000)}\r\nhello\r\n0\r\n\r\n`,
    "5 \r\nhello\r\n0 \r\n\r\n",
    `${"0".repeat(16)}5\r\nhello\r\n0\r\n\r\n`,
  ];
  for (const text of readable) {
    it(`chunks ${JSON.stringify(text).slice(0, 30)} pass in a response, and not in a request`, () => {
      expect(consume(text, 7, "response")).to.deep.equal({ taken: text.length, ended: true, passed: text });
      expect(consume(text, 7)).to.be.a("string");
    });
  }

  it("endless trailers of a response are refused", () => {
    expect(consume(`0\r\n${"X: y\r\n".repeat(20_000)}`, 100, "response")).to.equal("the trailers are too long");
    expect(consume(`0\r\nX: ${"y".repeat(20_000)}`, 100, "response")).to.equal(
      "a line of the chunked body is too long",
    );
  });

  const invalid = [
    "5\nhello\r\n0\r\n\r\n",
    "x\r\n",
    "-1\r\n",
    " 5\r\n",
    "5 \r\nhello",
    "5\r\nhelloX\r\n",
    "0\r\nX: y\r\n\r\n",
    "0x5\r\n",
    "1".repeat(13),
    "\r\n",
  ];
  for (const text of invalid) {
    it(`the chunks ${JSON.stringify(text)} are refused`, () => {
      expect(consume(`${text}\r\n`, 1)).to.be.a("string");
    });
  }
});
