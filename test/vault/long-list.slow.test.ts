/** Lists of more entries than one part of a response has: complete, streamed, and ended by a lock or a forced init. */
import { expect } from "chai";
import { filledHome, numberedPath } from "../../bench/vaults.js";
import type { FileOperations } from "../../src/files/durable.js";
import type { FinishedRequest } from "../../src/observer.js";
import { cleanUpMark, cleanUpTo } from "../../tools/rig/clean-up.js";
import { passphrase, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustLock, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { heldFiles } from "../support/held-files.js";
import { FakeClock } from "../support/manual-clock.js";

/** Three parts. */
const count = 17_000;
const inSecondPart = numberedPath(12_000);
const list = { path: "/v1/secrets" };

describe("lists of 17,000 secrets", function () {
  this.timeout(180_000);
  let home = "";
  let mark = 0;
  before(async () => {
    mark = cleanUpMark();
    home = await filledHome(count);
  });
  after(() => cleanUpTo(mark));

  async function startHeld(cacheBytes: number) {
    const { files, hold } = heldFiles();
    const opened: string[] = [];
    const open: FileOperations["open"] = (...args) => {
      if (args[0].endsWith(".sealed")) opened.push(args[0]);
      return files.open(...args);
    };
    const counts: (number | null)[] = [];
    const observer = { requestFinished: (request: FinishedRequest) => counts.push(request.count) };
    const clock = new FakeClock(Date.now()); // stands still: no work in the background reads files
    const server = await startTestServer({ home, cacheBytes, clock, files: { ...files, open }, observer });
    await mustUnlock(server);
    return { server, hold, opened, counts };
  }

  /** Returns how many files were read. */
  async function mustListAll(server: TestServer, opened: string[]): Promise<number> {
    opened.length = 0;
    const { status, headers, json } = await send(server, list);
    expect([status, headers["transfer-encoding"], Object.keys(json)]).to.deep.equal([200, "chunked", ["entries"]]);
    const paths = (json["entries"] as { readonly path: string }[]).map(({ path }) => path);
    expect(paths).to.deep.equal(Array.from({ length: count }, (_, n) => numberedPath(n)));
    return opened.length;
  }

  it("a long list is complete and in order, and its repetition reads no file where the cache holds it", async () => {
    const { server, opened, counts } = await startHeld(128 * 2 ** 20);
    expect(await mustListAll(server, opened)).to.equal(count);
    expect(counts.at(-1), "told to observers").to.equal(count);
    const head = await send(server, { ...list, method: "HEAD" });
    expect([head.status, head.text, counts.at(-1)], "HEAD").to.deep.equal([200, "", count]);
    expect(await mustListAll(server, opened)).to.equal(0);
    expect(server.logged()).not.to.contain("warning");
  });

  it("a repeated list takes from a smaller cache as much as that holds", async () => {
    const { server, opened } = await startHeld(8 * 2 ** 20);
    expect(await mustListAll(server, opened)).to.equal(count);
    expect(await mustListAll(server, opened)).to.be.within(count / 4, (count * 3) / 4);
  });

  it("a list ends between two parts when its token is revoked", async () => {
    const { server, hold } = await startHeld(0);
    const { token } = await mustCreateToken(server, { name: "reader", can: ["list"] });
    const { reached, release } = hold(`/${inSecondPart}.`);
    const listing = send(server, { ...list, token }).then(
      () => "complete",
      ({ code }: NodeJS.ErrnoException) => code,
    );
    await reached;
    mustSucceed(await send(server, { method: "DELETE", path: "/v1/tokens/reader" }));
    release();
    expect(await listing).to.equal("ECONNRESET");
  });

  const ends = {
    "a lock": mustLock,
    "a forced init": async (server: TestServer) => {
      mustSucceed(await send(server, { method: "POST", path: "/v1/init", body: { passphrase, force: true } }));
    },
  };
  for (const [what, end] of Object.entries(ends)) {
    it(`a list is cut off visibly by ${what}, which waits for one part at most`, async () => {
      const { server, hold } = await startHeld(0);
      const { reached, release } = hold(`/${inSecondPart}.`);
      const listing = send(server, list).then(
        () => "complete",
        ({ code }: NodeJS.ErrnoException) => code,
      );
      await reached;
      const ending = end(server);
      setTimeout(release, 50);
      await ending;
      expect(await listing).to.equal("ECONNRESET");
    });
  }
});
