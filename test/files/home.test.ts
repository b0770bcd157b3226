/** A new home is durable before anything in it is acknowledged; one that cannot be made is refused. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { openHome } from "../../src/files/home.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { startTestServer } from "../../tools/rig/server.js";
import { failingFiles } from "../support/failing-files.js";
import { recordedFiles } from "../support/recorded-files.js";

describe("new homes", () => {
  it("a new home is synced with its parents and contents, and again at the next start", async () => {
    const { files, steps } = recordedFiles();
    const top = temporaryDirectory();
    const home = join(top, "a", "b");
    const server = await startTestServer({ home, files });
    const made = [join(top, "a"), home, join(home, "tls"), join(home, "vault")];
    expect(steps.filter((step) => step.startsWith("mkdir "))).to.deep.equal(made.map((path) => `mkdir ${path}`));
    for (const path of made) {
      expect(steps.indexOf(`sync ${dirname(path)}`, steps.indexOf(`mkdir ${path}`)), path).to.not.equal(-1);
    }
    await server.stop();
    steps.length = 0;
    await startTestServer({ home, files });
    const again = steps.filter((step) => [top, join(top, "a"), home].includes(step.slice(5)));
    expect(again).to.deep.equal([join(top, "a"), home, home].map((directory) => `sync ${directory}`));
  });

  it("a new home is removed again when its name could not be synced", async () => {
    const { files, fail, repair } = failingFiles();
    const home = join(temporaryDirectory(), "home");
    fail("sync", "EIO");
    const outcome = await openHome(home, files).catch((error: Error) => error.message);
    expect(outcome).to.contain(`${home} cannot be made (EIO)`);
    expect(existsSync(home)).to.equal(false);
    repair();
    expect((await openHome(home, files)).path).to.equal(home);
  });
});

describe("homes that cannot be made", () => {
  it("a home is refused where the system reports its parent as missing", async function () {
    needs(this, process.platform === "linux", "Linux");
    for (const home of ["/proc/strongroom", "/proc/strongroom/home"]) {
      const outcome = await openHome(home).catch((error: Error) => error.message);
      expect(outcome).to.match(/ cannot be made \(ENOENT\): choose another home/);
    }
  });

  it("a home beneath a file is refused", async () => {
    const home = join(process.execPath, "home");
    const outcome = await openHome(home).catch((error: Error) => error.message);
    expect(outcome).to.contain(`${home} cannot be made (ENOTDIR)`);
  });
});
