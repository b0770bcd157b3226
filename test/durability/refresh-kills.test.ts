/** A refresh token that a provider rotates while the server is killed: what the next server can do follows from what the vault has. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { bind, sendThrough, startAgent, startUpstream, upstreamTrust } from "../../tools/rig/broker-rig.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import {
  closeConnections,
  mustInit,
  mustPut,
  mustStatus,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { Random, runSeed } from "../support/random.js";

const kills = Number(process.env["STRONGROOM_REFRESH_KILLS"] ?? 1);

const path = "oauth/killed";

/** A provider that rotates its refresh token at each refresh. `isLenient`: it also takes the one before the newest. */
class Provider {
  isLenient = true;
  issued = 0;
  /** Called once a token is issued, before the response is sent. */
  onIssue: () => void = () => {};

  takes(token: string): boolean {
    return token === this.newest || (this.isLenient && token === `refresh-${this.issued - 1}`);
  }

  get newest(): string {
    return `refresh-${this.issued}`;
  }

  readonly handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const form = new URLSearchParams(Buffer.concat(await req.toArray()).toString());
    if (req.url !== "/token") return void res.end("done\n");
    const isTaken = this.takes(form.get("refresh_token") ?? "");
    if (isTaken) this.issued++;
    const tokens = { access_token: "access", token_type: "bearer", refresh_token: this.newest };
    if (isTaken) this.onIssue();
    res.writeHead(isTaken ? 200 : 400, { "content-type": "application/json" });
    res.end(JSON.stringify(isTaken ? tokens : { error: "invalid_grant" }));
  };
}

type Rig = { readonly provider: Provider; readonly port: number; readonly args: readonly string[] };

describe("a refresh and kill -9", () => {
  it(`${kills} kills during a refresh each leave a working token or an error that says reauthorize (seed ${runSeed})`, async function () {
    this.timeout(0);
    const random = new Random(runSeed);
    const provider = new Provider();
    const upstream = await startUpstream(["localhost"], (req, res) => void provider.handle(req, res));
    const args = ["--broker-port", "0", "--upstream-ca", upstreamTrust([upstream]).upstreamCa];
    const rig = { provider, port: upstream.port, args };
    let server = await startProcess(args);
    await mustInit(server);
    await store(server, provider.newest);
    const oauth = { tokenUrl: `https://localhost:${upstream.port}/token`, clientId: "client" };
    await bind(server, path, { host: "localhost", port: upstream.port, private: true, oauth });
    let kept = 0;
    for (let n = 0; n < kills; n++) {
      provider.isLenient = random.chance(0.5);
      // On a busy machine no store ends within these milliseconds, so some rounds wait for the response.
      const delayMs = random.chance(0.2) ? null : random.below(30);
      server = await killInRefresh(server, rig, delayMs);
      if (await judge(server, rig, delayMs === null)) kept++;
    }
    if (kills >= 100) expect(kept).to.be.within(1, kills - 1);
  });
});

/** Asserts the outcome of the next request; returns whether the vault had the newest token, as it must after a response. */
async function judge(server: ServerProcess, { provider, port }: Rig, hasResponse: boolean): Promise<boolean> {
  const { value } = mustSucceed(await send(server, { path: `/v1/secrets/${path}` }));
  const { refreshToken } = JSON.parse(String(value));
  const isNewest = refreshToken === provider.newest;
  if (hasResponse) expect(refreshToken, "once a request has its response").to.equal(provider.newest);
  const isTaken = provider.takes(refreshToken);
  const wanted = isTaken ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 502 .*"code":"reauthorize"/s;
  expect(await request(server, port), `${refreshToken}, after ${provider.newest}`).to.match(wanted);
  expect((await mustStatus(server))["reauthorize"]).to.deep.equal(isTaken ? undefined : [path]);
  await store(server, provider.newest); // ends the access token also
  return isNewest;
}

function store(server: ServerProcess, refreshToken: string) {
  return mustPut(server, path, { value: JSON.stringify({ refreshToken }) });
}

async function request(server: ServerProcess, port: number): Promise<string> {
  const agent = await startAgent(server, { paths: [path] });
  const at = `localhost:${port}`;
  return sendThrough(agent, at, `GET /x HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`);
}

/**
 * Has the server refresh, and kills it after a token was issued; returns the next, unlocked one.
 * @param delayMs milliseconds after that; null: once the request that needs the token has its response
 */
async function killInRefresh(
  server: ServerProcess,
  { provider, port, args }: Rig,
  delayMs: number | null,
): Promise<ServerProcess> {
  const issued = new Promise<void>((resolve) => {
    provider.onIssue = resolve;
  });
  const answer = request(server, port).catch(() => "");
  await issued;
  if (delayMs === null) expect(await answer).to.match(/^HTTP\/1\.1 200 /);
  else await sleep(delayMs);
  server.child.kill("SIGKILL");
  await Promise.all([server.ended, answer]);
  closeConnections(server);
  const next = await startProcess(args, { STRONGROOM_HOME: server.home });
  await mustUnlock(next);
  return next;
}
