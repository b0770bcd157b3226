/** Plaintext in the client library's buffers: wiped also when a request or its response fails halfway. */
import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { chmodSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { StrongroomClient } from "strongroom/client";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { untilWiped } from "../support/bytes.js";

const canary = "plaintext-canary";

/** Runs the work, and returns all array buffers that the client made during it. */
async function buffersMadeBy(work: () => Promise<unknown>): Promise<Buffer[]> {
  const made: Buffer[] = [];
  const real = globalThis.ArrayBuffer;
  globalThis.ArrayBuffer = new Proxy(real, {
    construct(target, args) {
      const buffer = Reflect.construct(target, args) as ArrayBuffer;
      made.push(Buffer.from(buffer));
      return buffer;
    },
  });
  try {
    await work();
  } finally {
    globalThis.ArrayBuffer = real;
  }
  return made;
}

describe("wiped requests", () => {
  const client = new StrongroomClient();
  const requests: Readonly<Record<string, () => Promise<unknown>>> = {
    "a put with an invalid description": () =>
      client.put("a", canary, { description: "\ud800", replaceMetadata: true }),
    "a rotation with an invalid passphrase among its keys": () => client.rotate("p", [canary, "\ud800"]),
    "a batch with an invalid value": () =>
      client.batch([
        { put: "a", value: canary },
        { put: "b", value: "\ud800" },
      ]),
  };
  for (const [name, send] of Object.entries(requests)) {
    it(`${name} is wiped`, async () => {
      let code: unknown;
      const made = await buffersMadeBy(() => send().catch((error: { code: string }) => (code = error.code)));
      expect(code).to.equal("BAD_REQUEST");
      expect(made.length).to.be.greaterThan(3);
      for (const buffer of made) expect(buffer.toString()).not.to.contain(canary);
    });
  }
});

describe("wiped responses", () => {
  before(function () {
    needs(this, process.platform !== "win32", "Unix");
  });

  /** A client of a server that sends half a response. */
  async function clientOfPartialServer(): Promise<{ readonly client: StrongroomClient; readonly cut: () => void }> {
    const home = temporaryDirectory();
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-length": "1000" }).write(canary);
    });
    const socket = join(home, "half.sock");
    server.listen(socket);
    await once(server, "listening");
    chmodSync(socket, 0o600);
    const cut = () => server.closeAllConnections();
    later(() => {
      cut();
      server.close();
    });
    return { client: new StrongroomClient({ home, socket, token: "t" }), cut };
  }

  /** The chunks of all responses of this process, as its HTTP client receives them. */
  function receivedChunks(): Buffer[] {
    const chunks: Buffer[] = [];
    const listen = (message: unknown) => {
      const { response } = message as { readonly response: IncomingMessage };
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
    };
    channel("http.client.response.finish").subscribe(listen);
    later(() => void channel("http.client.response.finish").unsubscribe(listen));
    return chunks;
  }

  type End = (cut: () => void, caller: AbortController, client: StrongroomClient) => unknown;
  const cases: readonly (readonly [string, string, End])[] = [
    ["the connection closes", "UNREACHABLE", (cut) => cut()],
    ["the caller cancels", "ABORTED", (_, caller) => caller.abort()],
    ["the client closes", "ABORTED", (_, __, client) => client.close()],
  ];
  for (const [name, expected, end] of cases) {
    it(`a partial response is wiped when ${name}`, async () => {
      const chunks = receivedChunks();
      const { client, cut } = await clientOfPartialServer();
      const caller = new AbortController();
      const outcome = client.get("a", { signal: caller.signal }).catch((reason: unknown) => reason);
      while (chunks.length === 0) await sleep(5);
      expect(chunks.map(String)).to.deep.equal([canary]);
      end(cut, caller, client);
      expect(await outcome).to.include({ code: expected });
      await untilWiped(...chunks);
    });
  }
});
