/** The longest and deepest paths: 1,024 bytes in 32 segments, also where every byte is escaped. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { realScryptCost, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { backup, must, restore } from "../maintenance/archives.js";
import { run } from "../support/command-here.js";

/** 32 segments, 1,024 bytes; `letter` is ASCII. */
function deepest(letter: string): string {
  return [...Array.from({ length: 31 }, () => letter.repeat(31)), letter.repeat(32)].join("/");
}

const paths = [
  deepest("a"),
  deepest("A"),
  deepest("\u007e"),
  deepest("a").replace(/a/g, (_, at: number) => (at % 3 ? "b" : "~")),
];

describe("paths of 1,024 bytes and 32 segments", () => {
  it("the deepest paths are stored, listed, backed up, restored, examined and deleted as all others", async () => {
    const server = await startTestServer(realScryptCost);
    await mustInit(server);
    for (const path of paths) await mustPut(server, path, path.slice(0, 5));
    expect((await mustList(server)).map(({ path }) => path)).to.have.members(paths);
    const [file, home] = [join(temporaryDirectory(), "b.tar"), join(temporaryDirectory(), "home")];
    must(await backup(server.home, file));
    must(await restore(home, file));
    expect((await run(["doctor"], { STRONGROOM_HOME: home })).code).to.equal(0);
    const again = await startTestServer({ home });
    await mustUnlock(again);
    for (const path of paths) {
      expect((await mustGet(again, path))["value"]).to.equal(path.slice(0, 5));
      mustSucceed(await send(again, { method: "DELETE", path: secretTarget(path) }));
    }
    expect(await mustList(again)).to.deep.equal([]);
  });

  it("the deepest paths are refused, and change nothing, in a home whose own path leaves no room for them", async () => {
    const home = join(temporaryDirectory(), ...Array.from({ length: 6 }, () => "h".repeat(200)));
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const server: TestServer = await startTestServer({ home, socket: "off" });
    await mustInit(server);
    const put = { method: "PUT", path: secretTarget(deepest("A")), body: { value: "v" } };
    const { status, json } = await send(server, put);
    expect([status, json["code"]]).to.deep.equal([503, "UNAVAILABLE"]);
    expect(json["error"]).to.contain("too long");
    await mustPut(server, "short", "v");
    expect((await mustList(server)).map(({ path }) => path)).to.deep.equal(["short"]);
    await server.stop();
    const again = await startTestServer({ home, socket: "off" });
    await mustUnlock(again);
    await mustGet(again, "short");
  });
});
