/** WebSockets through the broker: frames in both directions, as RFC 6455 draws them, while the vault is unlocked and after. */
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { expect } from "chai";
import {
  type Agent,
  openTunnel,
  sendThrough,
  startAgent,
  startBound,
  startTls,
  startUpstream,
  value,
} from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustLock, mustUnlock } from "../../tools/rig/test-client.js";

type Rig = {
  readonly server: TestServer;
  readonly agent: Agent;
  readonly at: string;
  /** Frames of the last WebSocket that was opened. */
  readonly atUpstream: () => Frames;
};

const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const [text, binary, close] = [1, 2, 8] as const;

type Frame = { readonly kind: number; readonly payload: Buffer };

/** Sends every message back, and confirms the end. */
async function echo(frames: Frames): Promise<void> {
  for (let frame = await frames.next(); frame !== null; frame = await frames.next()) {
    frames.send(frame.kind, frame.payload, null);
    if (frame.kind === close) frames.socket.end();
  }
}

function encodeFrame(kind: number, payload: Buffer, mask: Buffer | null): Buffer {
  const { length } = payload;
  const size =
    length < 126 ? [length] : length < 65_536 ? [126, length >> 8, length & 255] : [127, ...encode64(length)];
  size[0] = (size[0] ?? 0) | (mask === null ? 0 : 0x80);
  const sent = mask === null ? payload : masked(payload, mask);
  return Buffer.concat([Buffer.from([0x80 | kind, ...size]), mask ?? Buffer.alloc(0), sent]);
}

function encode64(length: number): number[] {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(length));
  return [...bytes];
}

function masked(payload: Buffer, mask: Buffer): Buffer {
  return payload.map((byte, i) => byte ^ (mask[i % 4] ?? 0)) as Buffer;
}

/** One side of a WebSocket, after its handshake. */
class Frames {
  readonly socket: Duplex;
  readonly #pieces: AsyncIterator<Buffer>;
  #bytes: Buffer<ArrayBuffer>;

  constructor(socket: Duplex, received = Buffer.alloc(0)) {
    this.socket = socket.on("error", () => {});
    this.#pieces = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    this.#bytes = received;
  }

  send(kind: number, payload: Buffer, mask: Buffer | null): void {
    this.socket.write(encodeFrame(kind, payload, mask));
  }

  /** Returns null at the end of the connection. */
  async next(): Promise<Frame | null> {
    const start = await this.#read(2);
    if (start === null) return null;
    const [first = 0, second = 0] = start;
    const short = second & 0x7f;
    const long = short < 126 ? null : await this.#read(short === 126 ? 2 : 8);
    const length = long === null ? short : long.length === 2 ? long.readUInt16BE() : Number(long.readBigUInt64BE());
    const mask = (second & 0x80) === 0 ? null : await this.#read(4);
    const payload = (await this.#read(length)) ?? Buffer.alloc(0);
    return { kind: first & 0x0f, payload: mask === null ? payload : masked(payload, mask) };
  }

  async #read(length: number): Promise<Buffer | null> {
    while (this.#bytes.length < length) {
      const { value: piece, done } = await this.#pieces.next();
      if (done === true) return null;
      this.#bytes = Buffer.concat([this.#bytes, piece]);
    }
    const found = this.#bytes.subarray(0, length);
    this.#bytes = this.#bytes.subarray(length);
    return found;
  }
}

const handshake = (at: string, path = "/ws") =>
  `GET ${path} HTTP/1.1\r\nHost: ${at}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n` +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

async function readHead(socket: Duplex): Promise<{ readonly text: string; readonly rest: Buffer<ArrayBuffer> }> {
  let bytes = Buffer.alloc(0);
  for (;;) {
    const end = bytes.indexOf("\r\n\r\n");
    if (end >= 0) return { text: bytes.toString("latin1", 0, end), rest: bytes.subarray(end + 4) };
    const piece = socket.read() as Buffer | null;
    if (piece === null) await new Promise((resolve) => socket.once("readable", resolve));
    else bytes = Buffer.concat([bytes, piece]);
  }
}

describe("WebSockets", () => {
  const rig = shared(async (): Promise<Rig> => {
    const upstream = await startUpstream();
    let last: Frames | null = null;
    upstream.server.on("upgrade", (req: IncomingMessage, socket: Duplex) => {
      if (req.headers.authorization !== `Bearer ${value}`) return void socket.destroy();
      const accept = createHash("sha1").update(`${req.headers["sec-websocket-key"]}${guid}`).digest("base64");
      const head = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"];
      // The first frame comes with the response's head, as a server may send it.
      const first = encodeFrame(text, Buffer.from("first"), null);
      socket.write(
        Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`), first]),
      );
      last = new Frames(socket);
      void echo(last);
    });
    const { server, at } = await startBound(upstream, { paths: ["/ws"] });
    const atUpstream = () => {
      if (last === null) throw new Error("no WebSocket was opened");
      return last;
    };
    return { server, agent: await startAgent(server), at, atUpstream };
  });

  async function openWebSocket(): Promise<Frames> {
    const { agent, at } = rig();
    const opened = await openTunnel(agent, at);
    if (typeof opened === "string") throw new Error(opened);
    const socket = await startTls(agent, opened, "localhost", "localhost");
    socket.write(handshake(at));
    const head = await readHead(socket);
    expect(head.text).to.match(/^HTTP\/1.1 101 .*Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/s);
    const frames = new Frames(socket, head.rest);
    expect(String((await frames.next())?.payload)).to.equal("first");
    return frames;
  }

  it("a WebSocket carries frames of all lengths in both directions", async () => {
    const frames = await openWebSocket();
    const payloads = [0, 1, 125, 126, 65_535, 65_536, 300_000].map((length) => randomBytes(length));
    for (const payload of payloads) frames.send(binary, payload, randomBytes(4));
    for (const payload of payloads) {
      const frame = await frames.next();
      expect(frame?.kind).to.equal(binary);
      expect(frame?.payload.equals(payload), `${payload.length} bytes`).to.equal(true);
    }
    frames.socket.destroy();
  });

  it("a WebSocket continues after a lock, while a new one gets 503", async () => {
    const { server, agent, at, atUpstream } = rig();
    const frames = await openWebSocket();
    await mustLock(server);
    frames.send(text, Buffer.from("to the upstream"), randomBytes(4));
    expect(String((await frames.next())?.payload)).to.equal("to the upstream");
    atUpstream().send(text, Buffer.from("unasked"), null);
    expect(String((await frames.next())?.payload)).to.equal("unasked");
    expect(await sendThrough(agent, at, handshake(at))).to.match(/^HTTP\/1.1 503 .*VAULT_LOCKED/s);
    await mustUnlock(server);
    frames.socket.destroy();
  });

  it("the last frames before an immediate close arrive, and the other side's reply", async () => {
    const frames = await openWebSocket();
    frames.send(binary, Buffer.alloc(200_000, "x"), randomBytes(4));
    frames.send(close, Buffer.from([3, 232]), randomBytes(4));
    expect((await frames.next())?.payload.length).to.equal(200_000);
    expect(await frames.next()).to.deep.equal({ kind: close, payload: Buffer.from([3, 232]) });
    expect(await frames.next()).to.equal(null);
  });

  it("a WebSocket at a path that the binding does not allow is refused", async () => {
    const { agent, at } = rig();
    expect(await sendThrough(agent, at, handshake(at, "/other"))).to.match(/^HTTP\/1.1 403 /);
  });
});
