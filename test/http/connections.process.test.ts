/** docs/reference/http-api.md, Limits: pipelined requests, stalled clients, and the number of connections. */
import { readFileSync } from "node:fs";
import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { TLSSocket } from "node:tls";
import { expect } from "chai";
import { later } from "../../tools/rig/clean-up.js";
import { builtHere, startProcess } from "../../tools/rig/process.js";
import { passphrase, shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  connectRaw,
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  openRaw,
  parseRaw,
  send,
  sendRaw,
} from "../../tools/rig/test-client.js";
import { canRun } from "../support/mounts.js";
import { isMissing } from "../support/needs.js";

function requestTo(server: TestServer, line: string, body = "", token: string | null = server.token): string {
  const authorization = token === null ? "" : `Authorization: Bearer ${token}\r\n`;
  return `${line} HTTP/1.1\r\nHost: localhost\r\n${authorization}Content-Length: ${body.length}\r\n\r\n${body}`;
}

function statusesIn(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
}

describe("pipelined requests", () => {
  const server = shareTestServer({}, mustInit);
  const put = (value: string) => requestTo(server(), "PUT /v1/secrets/a", JSON.stringify({ value }));
  const get = () => requestTo(server(), "GET /v1/secrets/a");
  const remove = () => requestTo(server(), "DELETE /v1/secrets/a");

  it("carries out a pipelined PUT and DELETE in their order", async () => {
    for (let round = 0; round < 30; round++) {
      expect(await exchangeStatuses(server(), put("v") + remove(), 2)).to.deep.equal([200, 200]);
      expect((await send(server(), { path: "/v1/secrets/a" })).status).to.equal(404);
    }
  });

  it("carries out a pipelined GET, PUT, GET, DELETE and GET in their order", async () => {
    await mustPut(server(), "a", "first");
    const received = await exchange(server(), get() + put("second") + get() + remove() + get(), 5);
    expect(statusesIn(received)).to.deep.equal([200, 200, 200, 200, 404]);
    expect(received.match(/"value":"\w+"/g)).to.deep.equal(['"value":"first"', '"value":"second"']);
  });

  it("carries out pipelined requests in their order when they arrive in pieces of 7 bytes", async () => {
    const pieces = (put("v") + remove() + put("w") + get()).match(/.{1,7}/gs) ?? [];
    const socket = await opened(server());
    const received = collect(socket);
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await untilContains(received, '"value":"w"');
    expect(statusesIn(received())).to.deep.equal([200, 200, 200, 200]);
  });

  it("a request pipelined after an unlock sees the unlocked vault", async () => {
    await mustPut(server(), "a", "v");
    await mustLock(server());
    const unlock = requestTo(server(), "POST /v1/unlock", JSON.stringify({ passphrase }));
    expect(await exchangeStatuses(server(), unlock + get(), 2)).to.deep.equal([200, 200]);
  });

  it("500 requests pipelined on one connection all get their responses", async () => {
    const requests = get() + requestTo(server(), "GET /v1/status").repeat(499);
    expect(await exchangeStatuses(server(), requests, 500)).to.deep.equal(Array(500).fill(200));
  });

  it("separates pipelined requests with large chunked bodies that contain empty lines", async () => {
    const body = JSON.stringify({ value: "x".repeat(100_000) }, null, "\r\n\r\n");
    const head = `PUT /v1/secrets/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server().token}\r\n`;
    const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    expect(await exchangeStatuses(server(), chunked + remove() + chunked + get(), 4)).to.deep.equal(Array(4).fill(200));
  });
});

describe("oversized headers", () => {
  const server = shareTestServer();

  it("a 400 for oversized headers arrives although the client keeps sending, 20 of 20", async () => {
    const headers = `GET /v1/status HTTP/1.1\r\nHost: localhost\r\n${`X: ${"x".repeat(1_000)}\r\n`.repeat(1_000)}\r\n`;
    for (let round = 0; round < 20; round++) {
      const { status, json } = parseRaw(await sendRaw(server(), headers));
      expect(status).to.equal(400);
      expect(json["code"]).to.equal("BAD_REQUEST");
    }
  });
});

describe("input that costs more to parse than to send", () => {
  const server = shareTestServer({}, mustInit);
  const requestHead = (line: string, header: string, token = true) => {
    const authorization = token ? `Authorization: Bearer ${server().token}\r\n` : "";
    return `${line} HTTP/1.1\r\nHost: localhost\r\n${authorization}${header}\r\n\r\n`;
  };
  const chunked = "Transfer-Encoding: chunked";
  const tiny = "1\r\n \r\n";

  it("200 empty lines before a request end its connection", async () => {
    const socket = await opened(server());
    socket.write("\r\n".repeat(200));
    await closing(socket);
  });

  it("one empty line before a request is accepted, as old clients send it", async () => {
    expect(await exchangeStatuses(server(), `\r\n${requestTo(server(), "GET /v1/status")}`, 1)).to.deep.equal([200]);
  });

  it("a body of empty lines is parsed in large pieces", async () => {
    const body = `${"\r\n\r\n".repeat(64 * 1024)}{"operations":[]}`;
    const pieces = countedPieces();
    const batch = requestHead("POST /v1/batch", `Content-Length: ${body.length}`) + body;
    expect(await exchangeStatuses(server(), batch, 1)).to.deep.equal([200]);
    expect(pieces()).to.be.within(1, 2 * (body.length / 1024));
  });

  it("a body is not parsed when its request needs none", async () => {
    for (const [line, token, status] of [
      ["GET /v1/status", false, 200],
      ["GET /v1/metrics", true, 200],
      ["GET /v1/audit", false, 401],
      ["GET /v1/nothing", true, 404],
    ] as const) {
      const socket = await opened(server());
      const received = collect(socket);
      const pieces = countedPieces();
      socket.write(requestHead(line, chunked, token));
      await untilContains(received, "\r\n\r\n");
      socket.write(tiny.repeat(20_000));
      await closing(socket);
      expect(parseHead(received())).to.include({ status, closes: true }, line);
      expect(pieces()).to.be.below(200, line);
    }
  });

  it("a body in chunks of a few bytes is refused", async () => {
    const batch = requestHead("POST /v1/batch", chunked);
    const socket = await opened(server());
    const received = collect(socket);
    socket.write(batch + tiny.repeat(100_000));
    await closing(socket);
    expect(received())
      .to.match(/^HTTP\/1\.1 400 /)
      .and.to.contain("send it in larger ones");
    const few = `${batch}${tiny.repeat(1_000)}11\r\n{"operations":[]}\r\n0\r\n\r\n`;
    expect(await exchangeStatuses(server(), few, 1)).to.deep.equal([200]);
  });
});

describe("slow clients", () => {
  it("a client that never reads loses its connection after the send timeout", async () => {
    const server = await startTestServer({ limits: { sendTimeout: 500 } });
    const socket = await opened(server);
    socket.pause();
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const request = requestTo(server, "GET /v1/openapi.json");
    const flood = setInterval(() => socket.writableLength < 2 ** 20 && socket.write(request.repeat(500)), 5);
    later(() => clearInterval(flood));
    await closed;
    mustSucceed(await send(server, { path: "/v1/status" }));
  });

  it("a client that floods the server without a valid token loses its connection immediately", async () => {
    const server = await startTestServer();
    for (const token of [null, "wrong"]) {
      const socket = await opened(server);
      socket.write(requestTo(server, "GET /v1/status", "", token).repeat(100));
      await closing(socket);
    }
  });

  it("a client that reads slowly keeps its connection", async () => {
    const size = 32 * 2 ** 20;
    const server = await startTestServer({ limits: { sendTimeout: 3_000 }, maxValueBytes: size });
    await mustInit(server);
    await mustPut(server, "a", "x".repeat(size));
    const socket = await opened(server);
    let length = 0;
    const begun = performance.now();
    const pace = setInterval(() => socket.resume(), 10);
    later(() => clearInterval(pace));
    const whole = new Promise<void>((resolve, reject) => {
      socket.once("close", () => reject(new Error(`closed after ${length} bytes`)));
      socket.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length > size) resolve();
        if (length > 6_000 * (performance.now() - begun)) socket.pause();
      });
    });
    socket.write(requestTo(server, "GET /v1/secrets/a"));
    await whole;
  });

  it("a client keeps its connection while its request runs for longer than the send timeout", async () => {
    const server = await startTestServer({ limits: { sendTimeout: 20 }, scryptLogN: 17 });
    await mustInit(server);
  });
});

describe("memory of clients that never read", () => {
  it("1,024 clients that never read cost at most 64 MiB while they pipeline status", async () => {
    const server = await startProcess();
    const { pid = 0 } = server.child;
    const idle = residentMiB(pid, "VmRSS");
    const flood = requestTo(server, "GET /v1/status", "", null).repeat(1_000);
    for (let batch = 0; batch < 64; batch++) {
      const sockets = Array.from({ length: 16 }, () =>
        connectRaw(server)
          .on("error", () => {})
          .pause(),
      );
      later(() => {
        for (const socket of sockets) socket.destroy();
      });
      await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("secureConnect", resolve))));
      for (const socket of sockets) socket.write(flood);
    }
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
    expect(residentMiB(pid, "VmHWM") - idle).to.be.below(64);
  });
});

/** Linux only. VmHWM: the peak. */
function residentMiB(pid: number, field: "VmRSS" | "VmHWM"): number {
  const [, kibibytes] = new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) / 1024;
}

describe("memory of announced bodies", () => {
  it("64 announced bodies of 16 MiB that are not sent cost less than 160 MiB", async () => {
    const server = await startProcess();
    const { pid = 0 } = server.child;
    await mustInit(server);
    const before = residentMiB(pid, "VmRSS");
    const head = requestTo(server, "POST /v1/batch").replace("Content-Length: 0", "Content-Length: 16777216");
    const sockets = await Promise.all(Array.from({ length: 64 }, () => opened(server)));
    for (const socket of sockets) socket.write(`${head}{`);
    mustSucceed(await send(server, { path: "/v1/status" }));
    await Promise.all(
      sockets.map((socket) => {
        socket.destroy();
        return closing(socket);
      }),
    );
    for (let round = 0; round < 10; round++) mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
    expect(residentMiB(pid, "VmHWM") - before).to.be.below(160);
  });
});

describe("large bodies", () => {
  const bodyBytes = 16 * 2 ** 20;

  /** A batch whose last bytes are not sent yet. */
  async function unfinished(server: TestServer) {
    const socket = await opened(server);
    const received = collect(socket);
    const head = requestTo(server, "POST /v1/batch").replace("Content-Length: 0", `Content-Length: ${bodyBytes}`);
    socket.write(head);
    await new Promise<void>((resolve) => socket.write(Buffer.alloc(bodyBytes - 1, " "), () => resolve()));
    return { socket, received };
  }

  it("large bodies beyond 128 MiB get 503 until others end, while puts, gets and a lock get through", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const held = await Promise.all(Array.from({ length: 8 }, () => unfinished(server)));
    const refused = await unfinished(server);
    await untilContains(refused.received, "UNAVAILABLE");
    expect(refused.received())
      .to.match(/^HTTP\/1\.1 503 /)
      .and.match(/^retry-after: 1\r$/im);
    await mustPut(server, "a", "x".repeat(32_000));
    await mustGet(server, "a");
    held[0]?.socket.destroy();
    await untilTaken(server);
    for (const { socket } of held.slice(1)) socket.write("}");
    await Promise.all(held.slice(1).map(({ received }) => untilContains(received, "BAD_REQUEST")));
    await mustLock(server);
  });

  /** Sends a large body until there is room for it. */
  async function untilTaken(server: TestServer): Promise<void> {
    for (;;) {
      const { socket, received } = await unfinished(server);
      socket.write("}");
      await untilContains(received, "HTTP/1.1 ");
      socket.destroy();
      if (received().startsWith("HTTP/1.1 400")) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
});

describe("the limit of connections", () => {
  it("connections without a valid token are closed at the limit, oldest first", async () => {
    const server = await startTestServer({ maxConnections: 36 });
    const authenticated = await opened(server);
    const received = collect(authenticated);
    authenticated.write(requestTo(server, "GET /v1/secrets"));
    await untilContains(received, "VAULT_LOCKED");
    const others: TLSSocket[] = [];
    for (let i = 0; i < 20; i++) others.push(await opened(server));
    await Promise.all(others.slice(0, 11).map((socket) => closing(socket)));
    expect(others.slice(11).filter((socket) => socket.destroyed)).to.deep.equal([]);
    expect(authenticated.destroyed).to.equal(false);
    expect(server.logged().match(/too-many-connections/g)).to.have.lengthOf(1);
  });

  it("a client with the token gets in, 10 of 10, while hostile ones keep every place taken", async () => {
    const server = await startTestServer({ maxConnections: 100 });
    const hostile = new Set<TLSSocket>();
    let isOver = false;
    const attack = () => {
      if (isOver) return;
      const socket = connectRaw(server).on("error", () => {});
      hostile.add(socket);
      socket.once("close", () => {
        hostile.delete(socket);
        setTimeout(attack, 50).unref();
      });
      socket.once("secureConnect", () => socket.write("GET /v1/secrets HTTP/1.1\r\nHost: localhost\r\n"));
    };
    for (let i = 0; i < 60; i++) attack();
    later(() => {
      isOver = true;
      for (const socket of hostile) socket.destroy();
    });
    await mustStatus(server).catch(() => {});
    for (let i = 0; i < 10; i++) {
      const { status } = parseRaw(await sendRaw(server, requestTo(server, "POST /v1/lock"), 1));
      expect(status).to.equal(200);
    }
  });

  it("the authenticated connection that has been idle the longest makes room for a new one", async () => {
    const server = await startTestServer({ maxConnections: 10 });
    const sockets: TLSSocket[] = [];
    for (let i = 0; i < 10; i++) sockets.push(await authenticated(server));
    const [first, second] = sockets as [TLSSocket, TLSSocket];
    await use(first, server);
    const closed = closing(second);
    mustSucceed(await send(server, { path: "/v1/status" }));
    await closed;
    await use(first, server);
    expect(sockets.filter(({ destroyed }) => destroyed)).to.deep.equal([second]);
  });

  it("a new connection is closed when all others have a request in progress", async () => {
    const server = await startTestServer({ maxConnections: 10 });
    await mustInit(server);
    for (let i = 0; i < 10; i++) {
      const socket = await opened(server);
      const head = requestTo(server, "PUT /v1/secrets/a");
      socket.write(head.replace("Content-Length: 0", "Content-Length: 9\r\nExpect: 100-continue"));
      await untilContains(collect(socket), "100 Continue");
    }
    const socket = connectRaw(server).on("error", () => {});
    await closing(socket);
  });
});

describe("the limit of descriptors", () => {
  if (isMissing(canRun("prlimit", "--nofile") ? null : "needs prlimit")) return;

  it("a server with 128 descriptors and idle connections lets clients in, and reads and writes files", async () => {
    const server = await startProcess([], {}, { ...builtHere, under: ["prlimit", "--nofile=128:128"] });
    await mustInit(server);
    for (const to of [server, { ...server, overSocket: true }]) {
      for (let i = 0; i < 100; i++) {
        const socket = (await openRaw(to)).on("error", () => {}); // the server closes it
        later(() => void socket.destroy());
        await use(socket, server);
      }
    }
    expect(server.logged()).to.contain("fewer-connections");
    for (const to of [server, { ...server, overSocket: true }]) {
      await mustPut(to, "folder/a", "value");
      expect((await mustGet(to, "folder/a"))["value"]).to.equal("value");
    }
  });
});

async function authenticated(server: TestServer): Promise<TLSSocket> {
  const socket = await opened(server);
  await use(socket, server);
  return socket;
}

/** Sends a request with the token, and waits for the response. */
async function use(socket: Socket, server: TestServer): Promise<void> {
  const received = collect(socket);
  socket.write(requestTo(server, "GET /v1/audit"));
  await untilContains(received, "HTTP/1.1 ");
}

/** Counts the pieces of bodies that the parser passes on, until the test ends. */
function countedPieces(): () => number {
  const { prototype } = IncomingMessage;
  let count = 0;
  prototype.push = function (this: IncomingMessage, ...given) {
    count++;
    return Readable.prototype.push.apply(this, given);
  };
  later(() => void Reflect.deleteProperty(prototype, "push"));
  return () => count;
}

function parseHead(received: string): { status: number; closes: boolean } {
  return { status: statusesIn(received)[0] ?? 0, closes: /^connection: close\r$/im.test(received) };
}

async function exchange(server: TestServer, text: string, responses: number): Promise<string> {
  const socket = await opened(server);
  const received = collect(socket);
  socket.write(text);
  while (statusesIn(received()).length < responses) await new Promise((resolve) => setTimeout(resolve, 2));
  socket.destroy();
  return received();
}

async function exchangeStatuses(server: TestServer, text: string, responses: number): Promise<number[]> {
  return statusesIn(await exchange(server, text, responses));
}

function opened(server: TestServer): Promise<TLSSocket> {
  const socket = connectRaw(server);
  later(() => void socket.destroy());
  return new Promise((resolve, reject) => {
    socket.once("secureConnect", () => resolve(socket));
    socket.once("error", reject);
  });
}

async function closing(socket: TLSSocket): Promise<void> {
  socket.on("error", () => {}).resume();
  if (!socket.destroyed) await new Promise((resolve) => socket.once("close", resolve));
}

/** Returns a function that returns what was received so far. */
function collect(socket: Socket): () => string {
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  return () => received;
}

/** Fails by the test's own timeout. */
async function untilContains(received: () => string, text: string): Promise<void> {
  while (!received().includes(text)) await new Promise((resolve) => setTimeout(resolve, 5));
}
