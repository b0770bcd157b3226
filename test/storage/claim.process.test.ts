/** Finding the server that holds a vault, with servers in processes of their own. */
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { findHolder } from "../../src/storage/files/claim.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { startProcess } from "../../tools/rig/process.js";
import { mustSucceed, send } from "../../tools/rig/test-client.js";

describe("the claim on a vault, held by another process", () => {
  it("a server is found with its pid and address while it serves, and not after it has stopped", async () => {
    const server = await startProcess();
    expect(await findHolder(server.vaultPath)).to.deep.equal({ pid: server.child.pid, url: server.url });
    mustSucceed(await send(server, { method: "POST", path: "/v1/shutdown" }));
    await server.ended;
    expect(await findHolder(server.vaultPath)).to.equal(null);
  });

  it("a killed server is not found, though its pid file is still there", async () => {
    const server = await startProcess();
    server.child.kill("SIGKILL");
    await server.ended;
    expect(readFileSync(join(server.vaultPath, "server.pid"), "utf8")).to.contain(server.url);
    expect(await findHolder(server.vaultPath)).to.equal(null);
  });

  it("a copied home and its original each name their own server", async () => {
    const server = await startProcess();
    const home = join(temporaryDirectory(), "copy");
    cpSync(server.home, home, { recursive: true, preserveTimestamps: true, filter: (path) => !path.endsWith(".sock") });
    const copy = await startProcess([], { STRONGROOM_HOME: home });
    expect(await findHolder(copy.vaultPath)).to.deep.equal({ pid: copy.child.pid, url: copy.url });
    expect(await findHolder(server.vaultPath)).to.deep.equal({ pid: server.child.pid, url: server.url });
  });
});
