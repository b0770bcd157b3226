/** The client library's limits of a response's size: what a hostile or broken server sends cannot fill memory. */
import { once } from "node:events";
import { chmodSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { StrongroomClient } from "strongroom/client";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { mustFail } from "../support/library.js";

const MiB = 2 ** 20;

type Hostile = { readonly client: StrongroomClient; readonly closed: Promise<unknown>; readonly sent: () => number };

describe("limits of responses", () => {
  before(function () {
    needs(this, process.platform !== "win32", "Unix");
  });

  /** A client of a server that responds without end. */
  async function startEndless(head: (response: ServerResponse) => void, maxResponseBytes?: number): Promise<Hostile> {
    const home = temporaryDirectory();
    let sent = 0;
    let close = () => {};
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    const server = createServer((_, response) => {
      response.on("close", close);
      head(response);
      const fill = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, " "))) sent += 65_536;
      };
      response.on("drain", fill);
      fill();
    });
    const socket = join(home, "endless.sock");
    server.listen(socket);
    await once(server, "listening");
    chmodSync(socket, 0o600);
    const client = new StrongroomClient({ home, socket, token: "t", maxResponseBytes });
    later(async () => {
      await client.close();
      server.closeAllConnections();
      server.close();
    });
    return { client, closed, sent: () => sent };
  }

  const ok = (response: ServerResponse) => void response.writeHead(200, { "content-type": "application/json" });

  it("a response to a change is cut off after 1 MiB, with the warning that it may have happened", async () => {
    const { client, closed, sent } = await startEndless(ok);
    await mustFail(client.lock(), "PROTOCOL", /more than 1048576 bytes.*may still have happened/);
    await closed;
    expect(sent()).to.be.lessThan(8 * MiB); // with what the socket's buffers hold
  });

  it("an error response is cut off after 1 MiB, also for a read", async () => {
    const { client, closed, sent } = await startEndless((response) => void response.writeHead(500));
    await mustFail(client.get("a"), "PROTOCOL", /more than 1048576 bytes/);
    await closed;
    expect(sent()).to.be.lessThan(8 * MiB);
  });

  it("a list, a batch and a text are cut off at maxResponseBytes", async () => {
    const { client } = await startEndless(ok, 3 * MiB);
    for (const work of [() => client.list(), () => client.batch([{ delete: "a" }]), () => client.metrics()])
      await mustFail(work(), "PROTOCOL", /more than 3145728 bytes.*ask for less/);
  });

  it("a response that announces more than a string can hold is not read", async () => {
    const announce = (response: ServerResponse) => void response.writeHead(200, { "content-length": String(2 ** 29) });
    const { client, closed, sent } = await startEndless(announce);
    await mustFail(client.get("a"), "PROTOCOL", /more than 536870888 bytes/);
    await closed;
    expect(sent()).to.be.lessThan(8 * MiB);
  });
});
