/** Acknowledged writes survive a power cut: a server on a disk of which only synced data is left. */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { mustGet, mustInit, mustPut, mustUnlock } from "../../tools/rig/test-client.js";
import { isMissing } from "../support/needs.js";
import { Disk, whyNoDisk } from "./power-cut-disk.js";
import { Ledger } from "./power-cut-ledger.js";

/** Short in the normal suite; 40 in the long form. */
const cuts = Number(process.env["STRONGROOM_CUTS"] ?? 2);

/** Acknowledged operations between two cuts: at random up to so many. */
const operations = process.env["STRONGROOM_CUTS"] === undefined ? 30 : 100;

const noSync = new URL("../support/no-sync.js", import.meta.url).href;

describe("a power cut", function () {
  this.timeout(0);
  if (isMissing(whyNoDisk())) return;

  for (const writers of [1, 6]) {
    it(`loses no acknowledged put, delete or batch of ${writers} writing client(s), and leaves no part of one (${cuts} cuts)`, async () => {
      const rig = await startRig();
      for (let cut = 1; cut <= cuts; cut++) {
        expect(await rig.live(writers, cut % 2 ? "writing" : "at rest"), `cut ${cut}`).to.deep.equal([]);
      }
      report(`${cuts} cuts, ${rig.ledger.acknowledged} acknowledged operations, 0 lost`);
      expect(rig.ledger.acknowledged).to.be.at.least(cuts);
    });
  }

  it("keeps a forced init, the vault before it, the token and the certificate", async () => {
    const disk = new Disk();
    const before = await startOn(disk);
    await mustInit(before);
    await mustPut(before, "a", "of the first vault");
    await mustInit(before, { passphrase: "another", force: true });
    await mustPut(before, "b", "of the second vault");
    await disk.cutPowerOf(before);
    const after = await startOn(disk);
    expect([after.token, after.certificate]).to.deep.equal([before.token, before.certificate]);
    await mustUnlock(after, "another");
    expect((await mustGet(after, "b"))["value"]).to.equal("of the second vault");
    expect(readdirSync(join(after.vaultPath, "gen-1", "secrets"))).to.deep.equal(["a.sealed"]);
  });

  // One writer, and a cut at rest: the next put's fsync would commit all earlier names as well.
  for (const off of ["files", "directories", "files&directories"]) {
    it(`is seen to lose data by this rig when the server does not sync ${off.replace("&", " or ")}`, async () => {
      const rig = await startRig(off);
      let losses: string[] = [];
      for (let cut = 1; cut <= 5 && losses.length === 0; cut++) losses = await rig.live(1, "at rest");
      report(`${rig.ledger.acknowledged} acknowledged operations, ${losses.length} secrets not as promised`);
      expect(losses).not.to.deep.equal([]);
    });
  }
});

/** A vault on a disk. `live` writes, cuts the power, restarts the server and returns what was lost. */
async function startRig(syncsOff?: string) {
  const disk = new Disk();
  const ledger = new Ledger(syncsOff === undefined);
  let server = await startOn(disk);
  await mustInit(server);
  await goOn();

  async function live(writers: number, cutWhile: "writing" | "at rest"): Promise<string[]> {
    const writing = Promise.all(Array.from({ length: writers }, (_, writer) => ledger.write(server, writer)));
    await someWrites(ledger, writing);
    if (cutWhile === "at rest") await ledger.rest(writing);
    ledger.close();
    const goingOn = goOn();
    await writing;
    await goingOn;
    return ledger.compare(server);
  }
  async function goOn(): Promise<void> {
    await disk.cutPowerOf(server);
    server = await startOn(disk, syncsOff);
    expect(filesIn(server.vaultPath).filter((name) => name.includes(".tmp-"))).to.deep.equal([]);
    await mustUnlock(server);
  }
  return { ledger, live };
}

/** Waits for a random number of acknowledged operations and a random moment. */
async function someWrites(ledger: Ledger, writing: Promise<unknown>): Promise<void> {
  let failed = false;
  writing.catch(() => {
    failed = true;
  });
  const enough = ledger.acknowledged + 1 + operations * Math.random();
  while (ledger.acknowledged < enough && !failed) await sleep(10 * Math.random());
}

function startOn(disk: Disk, syncsOff?: string): Promise<ServerProcess> {
  const preload = syncsOff === undefined ? {} : { NODE_OPTIONS: `--import=${noSync}?${syncsOff}` };
  return startProcess([], { STRONGROOM_HOME: join(disk.directory, "home"), ...preload });
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" });
}

function report(figures: string): void {
  process.stdout.write(`      ${figures}\n`);
}
