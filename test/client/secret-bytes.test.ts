/** `getBytes`: a value that never becomes a string, over the socket and over TLS. */
import { chmodSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { type ErrorCode, StrongroomClient } from "strongroom/client";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { makeClient, mustFail } from "../support/library.js";

describe("getBytes", () => {
  const server = shareLocalServer({}, mustInit);
  const clients: Readonly<Record<string, () => StrongroomClient>> = {
    "over TLS": () => makeClient(server()),
    "over the socket": () => {
      const client = new StrongroomClient({ home: server().home, environment: {} });
      later(() => client.close());
      return client;
    },
  };
  const all = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 256));
  const values: readonly (readonly [string, string | Buffer])[] = [
    ["a text", "geheim ✓ 😀"],
    ["an empty text", ""],
    ["a text of escapes", `"\\/\b\f\n\r\t\u0000\u001f\u007f","value":"x"}`],
    ["a text of 1 MiB", "é".repeat(2 ** 19)],
    ["no bytes", Buffer.of()],
    ["one byte", Buffer.of(0)],
    ["two bytes", Buffer.of(255, 254)],
    ["all bytes", all],
  ];
  for (const [way, client] of Object.entries(clients)) {
    for (const [what, value] of values) {
      it(`getBytes returns ${what} as it was stored, ${way}`, async () => {
        const custom = { value: '"value":"no"', owner: "ci" };
        const body = typeof value === "string" ? { value } : { value: value.toString("base64"), encoding: "base64" };
        await mustPut(server(), "value/value", { ...body, custom });
        const secret = await client().getBytes("value/value");
        expect(Buffer.from(secret.reveal()).equals(Buffer.from(value))).to.equal(true);
        expect(secret).to.deep.include({
          path: "value/value",
          metadata: { custom },
          encoding: (body as { encoding?: string }).encoding,
        });
        expect(JSON.stringify(secret)).not.to.contain("geheim");
        secret.wipe();
        expect(Buffer.from(secret.reveal()).every((byte) => byte === 0)).to.equal(true);
      });
    }

    it(`getBytes throws the server's errors, ${way}`, async () => {
      await mustFail(client().getBytes("missing"), "NOT_FOUND", /no secret/);
      await mustFail(client().getBytes("a//b"), "BAD_REQUEST", /path/);
    });
  }

  const broken: readonly (readonly [string, string, ErrorCode?])[] = [
    ["nothing", "", "UNREACHABLE"],
    ["no HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["no length", 'HTTP/1.1 200 OK\r\n\r\n{"value":"x"}'],
    ["a response that ends halfway", 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"value":"x"', "UNREACHABLE"],
    ["a huge length", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{"],
    ["a head without end", `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}`],
    ["no secret", 'HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n{"value":"x"}'],
    ["no JSON", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"],
  ];
  for (const [what, text, code = "PROTOCOL"] of broken) {
    it(`getBytes refuses ${what} from a foreign server`, async () => {
      const socket = join(temporaryDirectory(), "s");
      const foreign = createServer((peer) => peer.on("error", () => {}).once("data", () => peer.end(text)));
      await new Promise<void>((resolve) => foreign.listen(socket, resolve));
      chmodSync(socket, 0o600);
      later(() => void foreign.close());
      const client = new StrongroomClient({ socket, token: "t", environment: {} });
      later(() => client.close());
      await mustFail(
        client.getBytes("a"),
        code,
        /not one of a Strongroom server|not a Strongroom server|closed before the response/,
      );
    });
  }
});
