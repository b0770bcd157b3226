/** A client token that is revoked stays so, whenever the server is killed; an acknowledged one is there after it. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { type ApiResponse, closeConnections, mustCreateToken, mustInit, send } from "../../tools/rig/test-client.js";
import { Random, runSeed } from "../support/random.js";

const kills = Number(process.env["STRONGROOM_TOKEN_KILLS"] ?? 2);

/** So many that changes of the tokens have a document of their own. */
const manyPaths = Array.from({ length: 64 }, (_, i) => `app/${"p".repeat(200)}/${"p".repeat(90)}-${i}/`);

async function selfStatus(server: ServerProcess, token: string): Promise<string> {
  const { status, json } = await send(server, { path: "/v1/tokens/self", token });
  return `${status} ${String(json["reason"])}`;
}

async function kill(server: ServerProcess): Promise<ServerProcess> {
  server.child.kill("SIGKILL");
  await server.ended;
  closeConnections(server);
  return startProcess([], { STRONGROOM_HOME: server.home });
}

/** Revokes a token and kills the server, before or after the response; returns the next server, and whether it responded. */
async function revokeAndKill(server: ServerProcess, name: string, random: Random): Promise<[ServerProcess, boolean]> {
  const request = { method: "DELETE", path: `/v1/tokens/${name}` };
  const answer: Promise<ApiResponse | null> = send(server, request).catch(() => null);
  if (random.chance(0.5)) expect((await answer)?.status).to.equal(200);
  else await sleep(random.below(12));
  const next = await kill(server);
  return [next, (await answer)?.status === 200];
}

describe("kill -9 and client tokens", () => {
  it("tokens of the old vault lock no client out after a forced init and a kill", async () => {
    const server = await startProcess();
    await mustInit(server);
    const { token } = await mustCreateToken(server, { name: "ci" });
    await mustInit(server, { passphrase: "another passphrase", force: true });
    const next = await kill(server);
    for (let n = 0; n < 12; n++) expect(await selfStatus(next, token)).to.equal("401 revoked");
    expect((await send(next, { path: "/v1/tokens/self" })).status).to.equal(200);
  });
});

describe("a revocation and kill -9", () => {
  it(`${kills} kills before or after a revocation's response undo no acknowledged revocation (seed ${runSeed})`, async function () {
    this.timeout(0);
    const random = new Random(runSeed);
    let server = await startProcess();
    await mustInit(server);
    const kept = await mustCreateToken(server, { name: "kept", ttlSeconds: 0, paths: manyPaths });
    const tokens = new Map<string, string>();
    for (let i = 0; i < kills; i++) tokens.set(`t${i}`, (await mustCreateToken(server, { name: `t${i}` })).token);
    const revoked = new Set<string>();
    for (const [name, token] of tokens) {
      const [next, responded] = await revokeAndKill(server, name, random);
      server = next;
      if (responded) revoked.add(token);
      for (const gone of revoked) expect(await selfStatus(server, gone)).to.equal("401 revoked");
      expect(await selfStatus(server, token)).to.be.oneOf(["401 revoked", "200 undefined"]);
      expect(await selfStatus(server, kept.token)).to.equal("200 undefined");
    }
    if (kills >= 100) expect(revoked.size).to.be.within(1, kills - 1);
  });
});
