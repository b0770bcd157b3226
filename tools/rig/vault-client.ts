/** Requests to the port for Vault's clients, exactly as given, and servers that have one. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { Agent, request } from "node:https";
import { later } from "./clean-up.js";
import { startTestServer, type TestOptions, type TestServer } from "./server.js";
import { contextFor, mustInit } from "./test-client.js";

export type VaultServer = TestServer & { readonly vaultPort: number };

/** Where requests go: a server of the tests, or another server with the same API. */
export type VaultPort = Pick<VaultServer, "vaultPort" | "certificate" | "token">;

export type VaultResponse = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Null: the body is empty. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
  readonly json: any;
};

export type VaultRequest = {
  readonly body?: object | string | null;
  /** Null: no header. */
  readonly token?: string | null;
  readonly headers?: OutgoingHttpHeaders;
};

/** Starts a server with an unlocked vault and the port. */
export async function startVaultServer(options: TestOptions = {}): Promise<VaultServer> {
  const server = await startTestServer({ vaultPort: 0, ...options });
  await mustInit(server);
  return withPort(server);
}

export function withPort(server: TestServer): VaultServer {
  const { vaultPort } = server;
  if (vaultPort === null) throw new Error("the port for Vault's clients is off");
  return { ...server, vaultPort };
}

const agents = new Map<number, Agent>();

function portAgent({ vaultPort, certificate }: VaultPort): Agent {
  const known = agents.get(vaultPort);
  if (known !== undefined) return known;
  const agent = new Agent({ keepAlive: true, secureContext: contextFor(certificate) });
  agents.set(vaultPort, agent);
  later(() => {
    agents.delete(vaultPort);
    agent.destroy();
  });
  return agent;
}

/** `path`: without `/v1/`. */
export function vault(
  server: VaultPort,
  method: string,
  path: string,
  { body, token = server.token, headers = {} }: VaultRequest = {},
): Promise<VaultResponse> {
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const length = text === undefined ? {} : { "content-length": Buffer.byteLength(text) };
  const authorization = token === null ? {} : { "x-vault-token": token };
  const options = {
    ...{
      host: "localhost",
      servername: "localhost",
      port: server.vaultPort,
      agent: portAgent(server),
      method,
      path: `/v1/${path}`,
    },
    headers: { ...authorization, ...length, ...headers },
  };
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const received = Buffer.concat(chunks).toString("utf8");
        const { statusCode: status = 0, headers: found } = response;
        resolve({ status, headers: found, text: received, json: received === "" ? null : JSON.parse(received) });
      });
    });
    sent.on("error", reject);
    sent.end(text);
  });
}
