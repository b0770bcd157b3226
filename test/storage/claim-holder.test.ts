/** Finding the server that holds a vault by its pid file. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { findHolder } from "../../src/storage/files/claim-holder.js";
import { temporaryDirectory } from "../support/clean-up.js";
import { startProcess } from "../support/process.js";
import { startTestServer } from "../support/server.js";
import { mustSucceed, send } from "../support/test-client.js";

describe("the holder of a vault", () => {
  it("is found with pid and address while it serves, and not after it stops", async () => {
    const server = await startProcess();
    expect(await findHolder(server.vaultPath)).to.deep.equal({ pid: server.child.pid, url: server.url });
    mustSucceed(await send(server, { method: "POST", path: "/v1/shutdown" }));
    await server.ended;
    expect(await findHolder(server.vaultPath)).to.equal(null);
  });

  it("is not found after a kill, although its pid file remains", async () => {
    const server = await startProcess();
    server.child.kill("SIGKILL");
    await server.ended;
    expect(readFileSync(pidFile(server), "utf8")).to.contain(server.url);
    expect(await findHolder(server.vaultPath)).to.equal(null);
  });

  it("is not another process that reuses its pid", async () => {
    const server = await startTestServer();
    const entry = earlierEntry(server);
    expect(entry.pid).to.equal(process.pid);
    const vaultPath = temporaryDirectory();
    writeFileSync(pidFile({ vaultPath }), JSON.stringify({ ...entry, started: `${entry.started}0` }));
    expect(await findHolder(vaultPath)).to.equal(null);
  });

  it("of a copied home is its own server, although the copy has the pid file of the original", async () => {
    const server = await startProcess();
    const home = join(temporaryDirectory(), "copy");
    cpSync(server.home, home, { recursive: true, preserveTimestamps: true });
    const copy = await startProcess([], { STRONGROOM_HOME: home });
    expect(await findHolder(copy.vaultPath)).to.deep.equal({ pid: copy.child.pid, url: copy.url });
    expect(await findHolder(server.vaultPath)).to.deep.equal({ pid: server.child.pid, url: server.url });
  });

  it("of a copied home is null while only the original is served", async () => {
    const server = await startTestServer();
    const copy = join(temporaryDirectory(), "copy");
    cpSync(server.vaultPath, copy, { recursive: true });
    expect(await findHolder(server.vaultPath)).to.not.equal(null);
    expect(await findHolder(copy)).to.equal(null);
  });

  it("has no address before it listens", async () => {
    const vaultPath = temporaryDirectory();
    writeFileSync(pidFile({ vaultPath }), JSON.stringify({ ...earlierEntry(await startTestServer()), url: null }));
    expect(await findHolder(vaultPath)).to.deep.equal({ pid: process.pid, url: null });
  });

  for (const text of ["", "{", "null", '"pid"', '{"pid":0}', '{"pid":-1}', '{"pid":"1"}', '{"pid":1.5}']) {
    it(`is null when the pid file contains ${JSON.stringify(text)}`, async () => {
      const vaultPath = temporaryDirectory();
      writeFileSync(pidFile({ vaultPath }), text);
      expect(await findHolder(vaultPath)).to.equal(null);
    });
  }

  it("cannot be entered while its file is a directory: the start says to move it away", async () => {
    const { home, vaultPath, stop } = await startTestServer();
    await stop();
    mkdirSync(pidFile({ vaultPath }));
    const refused: unknown = await startTestServer({ home }).catch((error: Error) => error.message);
    expect(refused).to.contain(`${pidFile({ vaultPath })} is not a plain file: move it away`);
  });

  it("is null without a pid file or a vault", async () => {
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
