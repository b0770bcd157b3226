/** Finding the server that holds a vault by its pid file. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { findHolder } from "../../src/storage/files/claim.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { startTestServer } from "../../tools/rig/server.js";

describe("the claim on a vault", () => {
  it("a server is found with its pid and address while it serves, and not after it has stopped", async () => {
    const { vaultPath, url, stop } = await startTestServer();
    expect(await findHolder(vaultPath)).to.deep.equal({ pid: process.pid, url });
    await stop();
    expect(await findHolder(vaultPath)).to.equal(null);
  });

  it("a killed server is not found, though its pid file is still there", async () => {
    const server = await startTestServer();
    const entry = ownEntry(server);
    await server.stop();
    const { pid } = spawnSync("true");
    writeFileSync(pidFile(server), JSON.stringify({ ...entry, pid }));
    expect(await findHolder(server.vaultPath)).to.equal(null);
  });

  it("another process that reuses the pid is not the holder", async () => {
    const server = await startTestServer();
    const entry = earlierEntry(server);
    expect(entry.pid).to.equal(process.pid);
    const vaultPath = temporaryDirectory();
    writeFileSync(pidFile({ vaultPath }), JSON.stringify({ ...entry, started: `${entry.started}0` }));
    expect(await findHolder(vaultPath)).to.equal(null);
  });

  it("a copied home has no holder while only the original is served", async () => {
    const server = await startTestServer();
    const copy = join(temporaryDirectory(), "copy");
    copyTree(server.vaultPath, copy);
    expect(await findHolder(server.vaultPath)).to.not.equal(null);
    expect(await findHolder(copy)).to.equal(null);
  });

  it("a copied home and its original each name their own server", async () => {
    const server = await startTestServer();
    const home = join(temporaryDirectory(), "copy");
    copyTree(server.home, home);
    const copy = await startTestServer({ home });
    expect(await findHolder(copy.vaultPath)).to.deep.equal({ pid: process.pid, url: copy.url });
    expect(await findHolder(server.vaultPath)).to.deep.equal({ pid: process.pid, url: server.url });
  });

  it("a holder that does not listen yet has no address", async () => {
    const vaultPath = temporaryDirectory();
    writeFileSync(pidFile({ vaultPath }), JSON.stringify({ ...earlierEntry(await startTestServer()), url: null }));
    expect(await findHolder(vaultPath)).to.deep.equal({ pid: process.pid, url: null });
  });

  for (const text of ["", "{", "null", '"pid"', '{"pid":0}', '{"pid":-1}', '{"pid":"1"}', '{"pid":1.5}']) {
    it(`a pid file with ${JSON.stringify(text)} names no holder`, async () => {
      const vaultPath = temporaryDirectory();
      writeFileSync(pidFile({ vaultPath }), text);
      expect(await findHolder(vaultPath)).to.equal(null);
    });
  }

  it("a directory in place of the pid file stops the start with a message that says to move it away", async () => {
    const { home, vaultPath, stop } = await startTestServer();
    await stop();
    mkdirSync(pidFile({ vaultPath }));
    const refused: unknown = await startTestServer({ home }).catch((error: Error) => error.message);
    expect(refused).to.contain(`${pidFile({ vaultPath })} is not a plain file: move it away`);
  });

  it("a missing pid file or vault has no holder", async () => {
    const vaultPath = temporaryDirectory();
    expect(await findHolder(vaultPath)).to.equal(null);
    expect(await findHolder(join(vaultPath, "missing"))).to.equal(null);
  });
});

type Place = { readonly vaultPath: string };

function pidFile({ vaultPath }: Place): string {
  return join(vaultPath, "server.pid");
}

/** An entry of earlier versions, without the directory. */
function earlierEntry(place: Place) {
  const { pid, started } = ownEntry(place);
  return { pid, started };
}

function ownEntry(place: Place): { readonly pid: number; readonly started: string } {
  return JSON.parse(readFileSync(pidFile(place), "utf8")) as ReturnType<typeof ownEntry>;
}
