/** Acknowledged writes survive a power cut: a server on a disk of which only synced data is left. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AssertionError, expect } from "chai";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { mustGet, mustInit, mustPut, mustUnlock } from "../../tools/rig/test-client.js";
import { isMissing } from "../support/needs.js";
import { Random, runSeed } from "../support/random.js";
import { Disk, whyNoDisk } from "./power-cut-disk.js";
import { allChanges, VaultModel } from "./vault-model.js";

/** Short in the normal suite; 40 in the long form. */
const cuts = Number(process.env["STRONGROOM_CUTS"] ?? 2);

/** Acknowledged changes between two cuts: at random up to so many. */
const changes = process.env["STRONGROOM_CUTS"] === undefined ? 100 : 400;

/** Characters of a value: all versions of all secrets fit on the disk. */
const longest = 9_000;

const noSync = new URL("../support/no-sync.js", import.meta.url).href;

describe("power cuts", function () {
  this.timeout(0);
  if (isMissing(whyNoDisk())) return;

  for (const writers of [1, 6]) {
    it(`${cuts} power cuts lose no acknowledged change of ${writers} writing client(s), nor keep a part of one (seed ${runSeed})`, async () => {
      const rig = await startRig(writers);
      for (let cut = 1; cut <= cuts; cut++) await rig.live(cut % 2 ? "writing" : "at rest");
      report(`${cuts} cuts, ${rig.model.acknowledged} acknowledged changes, 0 lost`);
      expect(rig.model.acknowledged).to.be.at.least(cuts);
    });
  }

  it("a power cut keeps a forced init, the vault before it, the token and the certificate", async () => {
    const disk = new Disk();
    const before = await startOn(disk);
    await mustInit(before);
    await mustPut(before, "a", "of the first vault");
    await mustInit(before, { passphrase: "another", force: true });
    await mustPut(before, "b", "of the second vault");
    await disk.cutPowerUnder(before);
    const after = await startOn(disk);
    expect([after.token, after.certificate]).to.deep.equal([before.token, before.certificate]);
    await mustUnlock(after, "another");
    expect((await mustGet(after, "b"))["value"]).to.equal("of the second vault");
    expect(readdirSync(join(after.vaultPath, "gen-1", "secrets"))).to.deep.equal(["a.sealed"]);
  });

  // One writer, and a cut at rest: the next put's fsync would commit all earlier names as well.
  for (const off of ["files", "directories", "files&directories"]) {
    it(`the rig detects a server that does not sync ${off.replace("&", " or ")}`, async () => {
      const rig = await startRig(1, off);
      let loss: string | null = null;
      for (let cut = 1; cut <= 5 && loss === null; cut++) loss = await findLoss(rig.live("at rest"));
      report(`${rig.model.acknowledged} acknowledged changes; ${loss?.split("\n")[0]}`);
      expect(loss).not.to.equal(null);
    });
  }
});

/** A vault on a disk. `live` writes, cuts the power, restarts the server and compares. */
async function startRig(writers: number, syncsOff?: string) {
  const disk = new Disk();
  const only = syncsOff === undefined ? {} : ({ kinds: ["put", "put", "delete"], onlySecrets: true } as const);
  const model = new VaultModel({ ...allChanges, writers, longest, ...only });
  const random = new Random(runSeed);
  let server = await startOn(disk);
  await model.begin(server);
  await goOn();

  /** @throws AssertionError when the vault is not as the acknowledged changes left it */
  async function live(cutWhile: "writing" | "at rest"): Promise<void> {
    const writing = model.change(server, random);
    await someWrites(model, writing);
    if (cutWhile === "at rest") {
      model.resting = true;
      await writing;
    }
    const goingOn = goOn();
    await writing;
    await goingOn;
  }
  async function goOn(): Promise<void> {
    await disk.cutPowerUnder(server);
    server = await startOn(disk, syncsOff);
    await model.inspect(server);
  }
  return { model, live };
}

/** Returns how the vault differs from the acknowledged changes; null when it does not. */
async function findLoss(life: Promise<void>): Promise<string | null> {
  try {
    await life;
    return null;
  } catch (error) {
    if (error instanceof AssertionError) return error.message;
    throw error;
  }
}

/** Waits for a random number of acknowledged changes and a random moment. */
async function someWrites(model: VaultModel, writing: Promise<unknown>): Promise<void> {
  let failed = false;
  writing.catch(() => {
    failed = true;
  });
  const enough = model.acknowledged + 1 + changes * Math.random();
  while (model.acknowledged < enough && !failed) await sleep(10 * Math.random());
}

function startOn(disk: Disk, syncsOff?: string): Promise<ServerProcess> {
  const preload = syncsOff === undefined ? {} : { NODE_OPTIONS: `--import=${noSync}?${syncsOff}` };
  return startProcess([], { STRONGROOM_HOME: join(disk.directory, "home"), ...preload });
}

function report(figures: string): void {
  process.stdout.write(`      ${figures}\n`);
}
