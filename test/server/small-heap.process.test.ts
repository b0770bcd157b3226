/** A heap too small for the names of all secrets: one sentence, exit 1. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { diskDirectory, temporaryDirectory } from "../support/clean-up.js";
import { type Ended, NotStarted, run, startProcess } from "../support/process.js";
import { mustInit } from "../support/test-client.js";

const names = 24_000;

/** A home whose paths take 24 MB: long ones, because files are slow to make. */
async function homeWithLongNames(): Promise<string> {
  const server = await startProcess([], { STRONGROOM_HOME: join(diskDirectory(), "home") });
  await mustInit(server);
  await server.stop();
  const segments = ["a", "b", "c"].map((letter) => letter.repeat(240));
  const directory = join(server.vaultPath, "gen-1", "secrets", ...segments);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (let n = 0; n < names; n++) writeFileSync(join(directory, `${String(n).padStart(240, "x")}.sealed`), "");
  return server.home;
}

async function startOutcome(home: string, options: string): Promise<Ended | "started"> {
  try {
    const server = await startProcess([], { STRONGROOM_HOME: home, NODE_OPTIONS: options });
    await server.stop();
    return "started";
  } catch (error) {
    if (error instanceof NotStarted) return error.ended;
    throw error;
  }
}

describe("a heap that is too small for the names of all secrets", () => {
  it("stops serve and backup with one sentence and exit 1, before V8 aborts; a larger one starts", async () => {
    const home = await homeWithLongNames();
    const small = "--max-old-space-size=20";
    const backup = ["backup", join(temporaryDirectory(), "b.tar")];
    for (const ended of [
      await startOutcome(home, small),
      await run(backup, { STRONGROOM_HOME: home, NODE_OPTIONS: small }),
    ]) {
      expect(ended).to.include({ code: 1 });
      expect(ended)
        .to.have.property("stderr")
        .that.matches(/^strongroom: the heap of \d+ MiB is too small .*\n$/);
    }
    expect(await startOutcome(home, "--max-old-space-size=200")).to.equal("started");
  });
});
