/** Power cuts during backup, restore and token rotate: what they acknowledged is there, and the rest can be repeated. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { run, startProcess } from "../../tools/rig/process.js";
import { start } from "../cli/run-command.js";
import { backup, must, mustHold, restore, secrets, startFilled } from "../maintenance/archives.js";
import { isMissing } from "../support/needs.js";
import { Random, runSeed } from "../support/random.js";
import { Disk, whyNoDisk } from "./power-cut-disk.js";

/** Short in the normal suite; 20 in the long form. */
const cuts = Number(process.env["STRONGROOM_COMMAND_CUTS"] ?? 2);

const random = new Random(runSeed);

/** Cuts the power at a random moment of the command, or after it; returns whether the command had succeeded. */
async function cutDuring(disk: Disk, home: string, command: readonly string[], atEnd: boolean): Promise<boolean> {
  const { child, finished } = start({ home }, command);
  await (atEnd ? finished : Promise.race([sleep(200 + random.below(2_000)), finished]));
  child.kill("SIGSTOP");
  disk.cutPower();
  child.kill("SIGKILL");
  const { code, stderr } = await finished;
  disk.restorePower();
  expect(code, stderr).to.be.oneOf(atEnd ? [0] : [0, null]);
  return code === 0;
}

const moments = Array.from({ length: cuts }, (_, n) => n % 2 === 1);

describe("power cuts during commands", function () {
  this.timeout(0);
  if (isMissing(whyNoDisk())) return;

  it(`${cuts} power cuts during a backup each leave a whole archive or none; an acknowledged one is there`, async () => {
    const server = await startFilled();
    const disk = new Disk();
    for (const [n, atEnd] of moments.entries()) {
      const file = join(disk.directory, `b-${n}.tar`);
      const acknowledged = await cutDuring(disk, server.home, ["backup", file], atEnd);
      if (acknowledged || existsSync(file)) must(await restore(join(temporaryDirectory(), "home"), file, "--dry-run"));
      else must(await backup(server.home, file));
    }
  });

  it(`${cuts} power cuts during a restore each leave the whole vault or none; the restore can be repeated`, async () => {
    const server = await startFilled();
    const file = join(temporaryDirectory(), "b.tar");
    must(await backup(server.home, file));
    const disk = new Disk();
    for (const [n, atEnd] of moments.entries()) {
      const home = join(disk.directory, `home-${n}`);
      const acknowledged = await cutDuring(disk, home, ["restore", file], atEnd);
      if (!acknowledged && !existsSync(join(home, "vault", "current"))) must(await restore(home, file));
      await mustHold(home, secrets);
    }
  });

  it(`${cuts} power cuts during a token rotate each leave the old token or the new one, whole`, async () => {
    const disk = new Disk();
    const home = join(disk.directory, "home");
    await (await startProcess([], { STRONGROOM_HOME: home })).stop();
    const token = () => readFileSync(join(home, "token"), "utf8");
    for (const atEnd of moments) {
      const before = token();
      const acknowledged = await cutDuring(disk, home, ["token", "rotate"], atEnd);
      expect(token()).to.match(/^srt_[\w-]{49}\n?$/);
      if (acknowledged) expect(token()).not.to.equal(before);
    }
    expect((await run(["doctor", "--fix"], { STRONGROOM_HOME: home })).code).to.be.oneOf([0, 8]); // 8: no vault yet
  });
});
