/** Commands that are killed at random moments, and repeated. Results: docs/inside/torture.md. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { type Ended, run } from "../../tools/rig/process.js";
import { realScryptCost, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustPut, mustUnlock } from "../../tools/rig/test-client.js";
import { start } from "../cli/run-command.js";
import { Random, runSeed } from "../support/random.js";

/** Short in the normal suite; 20 in the long form. */
const kills = Number(process.env["STRONGROOM_TORTURE_KILLS"] ?? 2);

const random = new Random(runSeed);

/** Kills the command after a random time below `within` milliseconds; returns whether it had ended before. */
async function killed(server: TestServer, command: readonly string[], within: number): Promise<boolean> {
  const { child, finished } = start(server, command);
  await Promise.race([sleep(random.below(within)), finished]);
  child.kill("SIGKILL");
  return (await finished).code !== null;
}

describe(`a killed import (${kills} times)`, function () {
  this.timeout(0);

  it("a killed import has stored whole secrets or none, and the same import finishes it", async () => {
    const server = await startTestServer(realScryptCost);
    await mustInit(server);
    const wanted = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`name-${n}`, `value ${n} `.repeat(20)]));
    const file = join(temporaryDirectory(), "secrets.json");
    writeFileSync(file, JSON.stringify(wanted), { mode: 0o600 });
    const importing = ["import", "--format", "json", "--prefix", "in/", file];
    for (let n = 0; n < kills; n++) {
      await killed(server, importing, 3_000);
      for (const { path } of (await mustList(server)).slice(0, 20)) {
        expect((await mustGet(server, path))["value"]).to.equal(wanted[path.slice(3)]);
      }
    }
    const { code, stderr } = await start(server, importing).finished;
    expect([code, stderr]).to.deep.equal([0, ""]);
    const paths = (await mustList(server)).map(({ path }) => path);
    expect(paths).to.have.members(Object.keys(wanted).map((name) => `in/${name}`));
    for (const path of paths.filter((_, n) => n % 25 === 0)) {
      expect((await mustGet(server, path))["value"]).to.equal(wanted[path.slice(3)]);
    }
    await mustPut(server, "in/name-499", "v"); // waits until the last batch is in the tree, as a stop may not
  });
});

describe(`a killed doctor --fix (${kills} times)`, function () {
  this.timeout(0);

  it("a killed doctor --fix leaves a home that the next one repairs, with every secret", async () => {
    const server = await startTestServer(realScryptCost);
    await mustInit(server);
    for (let n = 0; n < 20; n++) await mustPut(server, `d${n}/s`, "v");
    await server.stop();
    const doctor = (...flags: string[]): Promise<Ended> => run(["doctor", ...flags], { STRONGROOM_HOME: server.home });
    for (let n = 0; n < kills; n++) {
      spoil(server);
      await killed(server, ["doctor", "--fix"], 2_000);
      const { code, stdout } = await doctor("--fix");
      expect(code, stdout).to.equal(0);
      expect((await doctor()).code).to.equal(0);
    }
    const again = await startTestServer({ home: server.home });
    await mustUnlock(again);
    expect(await mustList(again)).to.have.lengthOf(20);
  });
});

/** One of everything that doctor fixes. */
function spoil({ vaultPath }: TestServer): void {
  const generation = join(vaultPath, "gen-1");
  rmSync(join(vaultPath, "current"));
  for (let n = 0; n < 200; n++) {
    const name = `.tmp-${n.toString(16).padStart(16, "0")}`;
    writeFileSync(join(generation, "secrets", name), "half", { mode: 0o644 });
  }
  mkdirSync(join(generation, "secrets", "empty", "er"), { recursive: true, mode: 0o755 });
}
