/** POST /v1/snapshot: all sealed secrets of one moment, for a backup. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut, mustRefuse, mustSucceed, send } from "../../tools/rig/test-client.js";

const request = { method: "POST", path: "/v1/snapshot" };

async function mustSnapshot(server: TestServer): Promise<string> {
  const { directory, secretCount } = mustSucceed(await send(server, request));
  expect(secretCount).to.equal(2);
  return String(directory);
}

describe("POST /v1/snapshot", () => {
  it("a snapshot before init returns 400 BAD_REQUEST", async () => {
    mustRefuse(await send(await startTestServer(), request), 400, "BAD_REQUEST");
  });

  it("a snapshot requires the token", async () => {
    mustRefuse(await send(await startTestServer(), { ...request, token: null }), 401, "UNAUTHORIZED");
  });

  it("a snapshot is a directory with copies of the header and of every secret, locked or unlocked", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "a/b", "1");
    await mustPut(server, "c", "2");
    const unlocked = await mustSnapshot(server);
    await mustPut(server, "c", "3");
    await mustLock(server);
    const kept = join(server.vaultPath, "gen-1");
    const file = join("secrets", "c.sealed");
    expect(readFileSync(join(unlocked, file))).not.to.deep.equal(readFileSync(join(kept, file)));
    const locked = await mustSnapshot(server);
    expect(existsSync(unlocked), "replaced by the next snapshot").to.equal(false);
    expect(readdirSync(locked, { recursive: true }).sort()).to.deep.equal(
      readdirSync(kept, { recursive: true }).sort(),
    );
    expect(readFileSync(join(locked, file))).to.deep.equal(readFileSync(join(kept, file)));
    expect(readFileSync(join(locked, "header.json"))).to.deep.equal(readFileSync(join(kept, "header.json")));
  });

  it("a snapshot is removed at the next start", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustPut(server, "a/b", "1");
    await mustPut(server, "c", "2");
    const directory = await mustSnapshot(server);
    await server.stop();
    await startTestServer({ home: server.home });
    expect(existsSync(directory)).to.equal(false);
  });
});
