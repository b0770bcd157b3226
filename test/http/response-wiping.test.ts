/** A response's bytes are wiped, whatever happens to the connection. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect } from "chai";
import { sendWhole } from "../../src/http/response.js";
import { later } from "../../tools/rig/clean-up.js";
import { untilWiped } from "../support/bytes.js";

describe("bytes of responses", () => {
  it("wipes the bytes of a response once the client has received them", async () => {
    const { client, responses } = await askTwice();
    const [first] = responses;
    const bytes = respond(first);
    const [received] = (await once(client, "data")) as [Buffer];
    expect(received.toString()).to.contain("secret");
    await untilWiped(bytes);
  });

  it("wipes the bytes of a response that waits for another when the client disconnects", async () => {
    const { client, responses } = await askTwice();
    const bytes = respond(responses[1]);
    client.destroy();
    await untilWiped(bytes);
  });

  it("wipes the bytes of a response to a client that has already disconnected", async () => {
    const { client, responses } = await askTwice();
    client.destroy();
    const socket = responses[1]?.req.socket;
    if (socket !== undefined && !socket.destroyed) await once(socket, "close");
    await untilWiped(respond(responses[1]));
  });
});

/** Two pending requests on one connection. */
async function askTwice(): Promise<{ client: Socket; responses: readonly ServerResponse[] }> {
  const responses: ServerResponse[] = [];
  const server = createServer((_req, res) => responses.push(res)).listen(0, "127.0.0.1");
  later(() => void server.close());
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  later(() => void client.destroy());
  client.write("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  while (responses.length < 2) await once(server, "request");
  return { client, responses };
}

function respond(res: ServerResponse | undefined): Uint8Array {
  if (res === undefined) throw new Error("there is no such request");
  const bytes = Buffer.from("secret");
  sendWhole(res, { status: 200, pieces: [bytes] });
  return bytes;
}
