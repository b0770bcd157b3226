/** A server with a broker, and an upstream that records what arrives, as the witness. */
import { writeFileSync } from "node:fs";
import { createServer as createTls, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { generate } from "selfsigned";
import { later, shared, temporaryDirectory } from "../support/clean-up.js";
import { startTestServer, type TestServer } from "../support/server.js";
import { type Json, mustInit, mustPut, mustSucceed, send } from "../support/test-client.js";

type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly bytes: number;
};
export type Upstream = { readonly port: number; readonly certificate: string; readonly seen: Seen[] };

/** An upstream that records what arrives, as the witness. */
export async function startUpstream(): Promise<Upstream> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "upstream" }], {
    keyType: "ec",
    extensions: [
      { name: "basicConstraints", cA: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] },
    ],
  });
  const seen: Seen[] = [];
  const server: TlsServer = createTls({ cert, key }, (req, res) => {
    let bytes = 0;
    req.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    req.on("end", () => {
      seen.push({ method: req.method ?? "", url: req.url ?? "", headers: req.headers, bytes });
      res.end(`${req.method} ${req.url} ${bytes}\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, certificate: cert, seen };
}

type Rig = { readonly server: TestServer; readonly upstream: Upstream };

export const value = "kept-in-the-vault-7f3a";

/** For all tests of a file: `app/key` is bound to the upstream, with the route `up`. */
export function brokerRig(): () => Rig {
  return shared(async (): Promise<Rig> => {
    const upstream = await startUpstream();
    const server = await startWithBroker(upstream);
    await mustPut(server, "app/key", { value });
    await bind(server, "app/key", { host: "localhost", port: upstream.port, private: true, name: "up" });
    return { server, upstream };
  });
}

export async function bind(server: TestServer, path: string, body: object): Promise<Json> {
  return mustSucceed(await send(server, { method: "PUT", path: `/v1/uses/${path}`, body }));
}

export async function startWithBroker({ certificate }: Upstream): Promise<TestServer> {
  const upstreamCa = join(temporaryDirectory(), "upstream.pem");
  writeFileSync(upstreamCa, certificate);
  const server = await startTestServer({ brokerPort: 0, upstreamCa });
  await mustInit(server);
  return server;
}
