/** Ends of passphrases in the server's memory while the connections that they came on stay open, searched for from outside. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect, type TLSSocket } from "node:tls";
import { expect } from "chai";
import { later, shared } from "../../tools/rig/clean-up.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { scanProcess } from "../../tools/rig/scanner.js";

const canary = "canary-that-the-scanner-must-find";

/** Bytes of an AES block: of this many lengths, one ends each request's TLS record one byte before the end of a block. */
const blockBytes = 16;
const endBytes = 8;

describe("the server's memory, after a passphrase on a connection that stays open", function () {
  this.timeout(0);
  before(function () {
    if (!existsSync("/proc/self/mem")) this.skip(); // only Linux lets a process be read from outside
  });

  const server = shared(() => startProcess([], { STRONGROOM_SERVER_NAMES: canary }));
  type Row = readonly [client: string, ciphers: string | undefined, maxVersion: "TLSv1.2" | "TLSv1.3", closes: boolean];
  const rows: readonly Row[] = [
    ["a client that supports all ciphers", undefined, "TLSv1.3", false],
    ["a client that supports all ciphers of TLS 1.2", undefined, "TLSv1.2", false],
    ["a client that supports only AES", "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384", "TLSv1.3", true],
    ["a client that supports only AES in TLS 1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2", true],
  ];
  for (const [client, ciphers, maxVersion, closes] of rows) {
    it(`holds no end of it; of ${client}`, async () => {
      const ends = new Map([["canary", Buffer.from(canary)]]);
      for (let length = 0; length < blockBytes; length++) {
        const passphrase = randomBytes(blockBytes + endBytes + length)
          .toString("base64url")
          .slice(0, blockBytes + endBytes + length);
        const options = { ciphers, maxVersion } as const;
        const response = await unlockOn(await connected(server(), options), server(), passphrase);
        expect(/^connection: close/im.test(response), response).to.equal(closes);
        ends.set(`the end of ${passphrase.length} bytes`, Buffer.from(passphrase.slice(-endBytes)));
      }
      const found = scanProcess(server().child.pid ?? 0, ends);
      expect(found.get("canary")?.full, "the scanner's canary").to.be.above(0);
      const left = [...found].filter(([name, { full }]) => name !== "canary" && full > 0).map(([name]) => name);
      expect(left).to.deep.equal([]);
    });
  }
});

type Options = { readonly ciphers: string | undefined; readonly maxVersion: "TLSv1.2" | "TLSv1.3" };

async function connected({ port, certificate }: ServerProcess, { ciphers, maxVersion }: Options): Promise<TLSSocket> {
  const own = ciphers === undefined ? {} : { ciphers };
  const socket = connect({ host: "127.0.0.1", port, servername: "localhost", ca: certificate, maxVersion, ...own });
  later(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

/** Returns the response, a refusal: there is no vault. A connection that the server closes is closed. */
async function unlockOn(socket: TLSSocket, { token }: ServerProcess, passphrase: string): Promise<string> {
  const body = JSON.stringify({ passphrase });
  const head = `POST /v1/unlock HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n`;
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  const [first] = (await once(socket, "data")) as [Buffer];
  const response = first.toString("latin1");
  if (/^connection: close/im.test(response)) await once(socket, "close");
  return response;
}
