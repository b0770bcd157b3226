/** Upgrades and downgrades: homes of earlier versions open and serve; what a later version wrote is refused clearly. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { unlockWith } from "../support/key-requests.js";
import { preparedHome } from "../support/prepared-home.js";
import { NotStarted, run, type ServerProcess, startProcess } from "../support/process.js";
import {
  mustGet,
  mustLock,
  mustPut,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../support/test-client.js";
import { type FrozenHome, frozenHomes } from "../vectors/frozen-homes.js";

function homeOf({ files }: FrozenHome): string {
  const home = preparedHome();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, name)), { recursive: true, mode: 0o700 });
    writeFileSync(join(home, name), Buffer.from(content, "base64"), { mode: 0o600 });
  }
  return home;
}

/** Programs that know version 2 alone would rotate the master key without trash and transit keys: they must refuse it. */
function headerOf(home: string): string {
  return readFileSync(join(home, "vault", "gen-1", "header.json"), "utf8");
}

async function mustHoldAll(server: ServerProcess, { versions }: FrozenHome): Promise<void> {
  const metadata = { type: "password", description: "of the database" };
  expect(await mustGet(server, "app/db/password")).to.deep.include({ value: "second value", metadata });
  expect(await mustGet(server, "Ümlaut B")).to.deep.include({ value: "värde ☃" });
  if (!versions) return;
  const first = await send(server, { path: "/v1/versions/app/db/password?version=1" });
  expect(mustSucceed(first)["value"]).to.equal("first value");
}

describe("a home of", () => {
  for (const frozen of frozenHomes) {
    it(`${frozen.made} opens, serves, and opens again after changes`, async () => {
      const home = homeOf(frozen);
      const server = await startProcess([], { STRONGROOM_HOME: home });
      await mustUnlock(server);
      await mustHoldAll(server, frozen);
      expect(headerOf(home)).to.contain('"version":3,');
      await mustPut(server, "app/new", "new value");
      if (frozen.key !== null) {
        await mustLock(server);
        mustSucceed(await send(server, unlockWith(frozen.key)));
      }
      await server.stop();
      const { code, stdout } = await run(["doctor"], { STRONGROOM_HOME: home });
      expect(code, stdout).to.equal(0);
      const again = await startProcess([], { STRONGROOM_HOME: home });
      await mustUnlock(again);
      await mustHoldAll(again, frozen);
      expect((await mustGet(again, "app/new"))["value"]).to.equal("new value");
    });
  }
});

describe("what a later version wrote", () => {
  const [, frozen] = frozenHomes;

  it("stops the start if it is the header, which stays as it is", async () => {
    const home = homeOf(frozen ?? { made: "", key: null, versions: false, files: {} });
    const header = join(home, "vault", "gen-1", "header.json");
    const later = readFileSync(header, "utf8").replace(/"version":[23]/, '"version":4');
    writeFileSync(header, later);
    const failed = await startProcess([], { STRONGROOM_HOME: home }).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(NotStarted);
    expect((failed as NotStarted).ended.stderr).to.match(/newer version/);
    expect(readFileSync(header, "utf8")).to.equal(later);
  });

  it("is refused by its name if it is a secret, and the others are served", async () => {
    const home = homeOf(frozen ?? { made: "", key: null, versions: false, files: {} });
    const file = join(home, "vault/gen-1/secrets/app/db/password.sealed");
    const blob = readFileSync(file);
    blob[4] = 4;
    writeFileSync(file, blob);
    const server = await startProcess([], { STRONGROOM_HOME: home });
    await mustUnlock(server);
    const answer = await send(server, { path: secretTarget("app/db/password") });
    mustRefuse(answer, 500, "INTEGRITY");
    expect(answer.text).to.contain("newer version");
    expect((await mustGet(server, "Ümlaut B"))["value"]).to.equal("värde ☃");
    expect(readFileSync(file).equals(blob)).to.equal(true);
  });
});
