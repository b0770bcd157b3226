/** The ends of the client library's requests: timeout, cancellation and the closing of the client, in every stage. */
import { execFileSync } from "node:child_process";
import { chmodSync, closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { StrongroomError } from "strongroom/client";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { shareTestServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { turns } from "../support/latch.js";
import { makeClient, mustFail, proxiedClient } from "../support/library.js";

/** The code of each request's error, or `done`. */
async function outcomes(requests: readonly Promise<unknown>[]): Promise<string[]> {
  const settled = await Promise.allSettled(requests);
  return settled.map((result) => {
    if (result.status === "fulfilled") return "done";
    return result.reason instanceof StrongroomError ? result.reason.code : String(result.reason);
  });
}

describe("lifetime of requests", () => {
  const server = shareTestServer({}, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "a", "v");
  });

  it("a signal cancels a request, and the client remains usable", async () => {
    const { proxy, client } = await proxiedClient(server());
    await client.status();
    proxy.silence();
    const controller = new AbortController();
    const work = client.get("a", { signal: controller.signal });
    await turns();
    controller.abort(new Error("enough"));
    const error = await mustFail(work, "ABORTED", /caller cancelled/);
    expect(error.cause).to.deep.include({ message: "enough" });
    await mustFail(client.delete("a", { signal: AbortSignal.abort() }), "ABORTED", /check before/);
  });

  it("a request ends when it times out", async () => {
    const { proxy, client } = await proxiedClient(server());
    proxy.silence();
    await mustFail(client.get("a", { timeoutMs: 50 }), "TIMEOUT", /within 50 ms/);
    const hasty = makeClient(server(), { address: proxy.url, timeoutMs: 50 });
    await mustFail(hasty.put("a", "v", { replaceMetadata: true }), "TIMEOUT", /check before you repeat/);
  });

  it("close ends a running request, and can be called again", async () => {
    const { proxy, client } = await proxiedClient(server());
    await client.get("a");
    proxy.silence();
    const work = client.get("a");
    await client.close();
    await mustFail(work, "ABORTED", /closed/);
    await mustFail(client.get("a"), "ABORTED", /closed/);
    await client.close();
  });

  it("close ends all requests, and those that wait for a connection are never sent", async () => {
    const { proxy, client } = await proxiedClient(server());
    const direct = makeClient(server());
    const paths = Array.from({ length: 40 }, (_, i) => `waiting/${i}`);
    await direct.batch(paths.map((put) => ({ put, value: "v" })));
    proxy.silence();
    const deletes = paths.map((path) => client.delete(path));
    while (proxy.connections() < 32) await sleep(5);
    await client.close();
    expect(await outcomes(deletes)).to.deep.equal(paths.map(() => "ABORTED"));
    expect((await direct.list({ prefix: "waiting/" })).entries.length).to.be.at.least(8);
    expect(proxy.connections()).to.equal(32);
  });

  it("close ends a request after another one has lost its connection", async () => {
    const { proxy, client } = await proxiedClient(server());
    await client.put("slow", "v");
    await Promise.all([client.get("a"), client.get("a")]);
    proxy.silence();
    const slow = client.delete("slow");
    while (await makeClient(server()).getOrUndefined("slow")) await sleep(5);
    proxy.breakKept();
    expect(await outcomes([client.delete("a")])).to.deep.equal(["UNREACHABLE"]);
    await client.close();
    expect(await outcomes([slow])).to.deep.equal(["ABORTED"]);
  });

  it("a timeout, a signal and close end requests while the server is still being found", async function () {
    needs(this, process.platform !== "win32", "Unix");
    const tokenFile = join(temporaryDirectory(), "token");
    execFileSync("mkfifo", [tokenFile]);
    const client = makeClient(server(), { tokenFile });
    const controller = new AbortController();
    const late = client.list({ timeoutMs: 50 });
    const [cancelled, running] = [client.list({ signal: controller.signal }), client.list()];
    later(() => closeSync(openSync(tokenFile, constants.O_RDWR))); // its reader ends
    expect(await outcomes([late])).to.deep.equal(["TIMEOUT"]);
    controller.abort();
    await client.close();
    expect(await outcomes([cancelled, running])).to.deep.equal(["ABORTED", "ABORTED"]);
  });

  for (const timeoutMs of [Number.POSITIVE_INFINITY, 2 ** 31, 0]) {
    it(`a request with timeoutMs ${timeoutMs} never times out`, async () => {
      const client = makeClient(server(), { timeoutMs });
      expect((await client.get("a")).reveal()).to.equal("v");
      expect((await client.get("a", { timeoutMs })).reveal()).to.equal("v");
    });
  }

  it("a request looks for the server again after it was not found", async function () {
    needs(this, process.platform !== "win32", "Unix");
    const client = makeClient(server());
    chmodSync(server().home, 0o755);
    expect(await outcomes([client.list(), client.list()])).to.deep.equal(["UNTRUSTED_HOME", "UNTRUSTED_HOME"]);
    chmodSync(server().home, 0o700);
    expect(await outcomes([client.list()])).to.deep.equal(["done"]);
  });
});
