/** Disks that are slow, over quota, without inodes, or ignore case. Results: docs/inside/torture.md. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { startProcess } from "../../tools/rig/process.js";
import {
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
} from "../../tools/rig/test-client.js";
import { change, mustBeClear, mustSurviveRestart, readState, type State, tempFiles } from "../durability/outside.js";
import { canRun, mount, mustRun, whyNoMounts } from "../support/mounts.js";
import { isMissing, onlyWith } from "../support/needs.js";
import { whyNoStrace, withFault } from "../support/strace.js";

/** Too slow for the normal suite. */
const expensively = onlyWith("STRONGROOM_TORTURE");

describe("a slow disk", function () {
  this.timeout(180_000);
  if (isMissing(whyNoStrace())) return;

  it("a slow disk delays puts only: status and gets from memory come before them, and all puts succeed", async () => {
    const server = await startProcess();
    await mustInit(server);
    await mustPut(server, "known", "v");
    await mustGet(server, "known");
    const order: string[] = [];
    const { hits } = await withFault(server.child.pid ?? 0, { call: "fsync", delay: 2_000 }, async () => {
      const puts = [1, 2, 3].map(async (n) => {
        mustSucceed(await change(server, `slow/${n}`, "v"));
        order.push("put");
      });
      await mustStatus(server);
      order.push("status");
      await mustGet(server, "known");
      order.push("get");
      await Promise.all(puts);
    });
    expect([order.slice(0, 2).sort(), hits > 0]).to.deep.equal([["get", "status"], true]);
    expect(await mustList(server)).to.have.lengthOf(4);
  });

  expensively(
    "a hanging disk does not keep a server from ending on SIGTERM, and a write in progress is whole or absent",
    async () => {
      const server = await startProcess();
      await mustInit(server);
      await mustPut(server, "a", "old");
      await withFault(server.child.pid ?? 0, { call: "fsync", delay: 10_000 }, async () => {
        const put = change(server, "a", "new").catch(() => null);
        await sleep(500);
        server.child.kill("SIGTERM");
        expect((await server.ended).code).to.equal(0);
        await put;
      });
      const again = await startProcess([], { STRONGROOM_HOME: server.home });
      await mustUnlock(again);
      expect(await readState(again, "a")).to.be.oneOf(["old", "new"]);
    },
  );
});

describe("a disk over quota (EDQUOT)", function () {
  this.timeout(180_000);
  if (isMissing(whyNoStrace())) return;

  for (const call of ["fsync", "/^rename", "/^mkdir"]) {
    expensively(
      `EDQUOT of ${call.replace("/^", "")} refuses a new secret with 503, and the server recovers`,
      async () => {
        const server = await startProcess();
        await mustInit(server);
        await mustPut(server, "a/b", "old");
        const { pid = 0 } = server.child;
        const { hits } = await withFault(pid, { call, error: "EDQUOT" }, async () => {
          const added = await change(server, "new/directory", "v");
          mustRefuse(added, 503, "UNAVAILABLE");
          mustBeClear(await change(server, "a/b", "new"));
        });
        expect(hits).to.be.above(0);
        expect(await readState(server, "a/b")).to.be.oneOf(["old", "new"]);
        expect(tempFiles(server)).to.deep.equal([]);
        await mustPut(server, "a/b", "later");
        await mustSurviveRestart(server, new Map([["a/b", "later"]]));
      },
    );
  }
});

describe("a small ext4", function () {
  this.timeout(180_000);
  if (
    isMissing(whyNoMounts() ?? (canRun("mkfs.ext4", "-V") && canRun("losetup", "--find") ? null : "needs loop devices"))
  )
    return;

  it("a disk with 64 inodes refuses the first secret that does not fit, and takes one again after a delete", async () => {
    const server = await startProcess([], { STRONGROOM_HOME: join(ext4("-N", "64"), "home") });
    await mustInit(server);
    const states = new Map<string, State>();
    for (let n = 0; n < 64; n++) {
      const answer = await change(server, `d${n}/s`, "v");
      mustBeClear(answer);
      states.set(`d${n}/s`, answer.status === 200 ? "v" : null);
    }
    const stored = [...states.values()].filter((state) => state !== null).length;
    expect(stored).to.be.within(10, 40);
    mustSucceed(await change(server, "d0/s", null));
    mustSucceed(await change(server, "again/s", "v"));
    await mustSurviveRestart(server, states.set("d0/s", null).set("again/s", "v"));
  });

  if (isMissing(whyNoCasefold())) return;
  it("a disk that ignores case keeps names apart that differ only in case", async () => {
    const directory = join(ext4("-O", "casefold", "-E", "encoding=utf8"), "folded");
    mkdirSync(directory);
    mustRun("chattr", "+F", directory);
    const server = await startProcess([], { STRONGROOM_HOME: join(directory, "home") });
    await mustInit(server);
    const names = ["a/B", "a/b", "A/b", "Ä", "ä", "\u00e4/x", "STRASSE", "strasse", "straße"];
    for (const name of names) await mustPut(server, name, name);
    for (const name of names) expect((await mustGet(server, name))["value"]).to.equal(name);
    expect(await mustList(server)).to.have.lengthOf(names.length);
  });
});

/** Returns the mount point of a new file system of 16 MiB. */
function ext4(...options: readonly string[]): string {
  const base = temporaryDirectory();
  const [image, directory] = [join(base, "image"), join(base, "disk")];
  mkdirSync(directory);
  mustRun("truncate", "--size=16M", image);
  mustRun("mkfs.ext4", "-q", "-F", ...options, image);
  mount(image, directory, "-t", "ext4", "-o", "loop");
  return directory;
}

/** Why an ext4 that ignores case cannot be mounted here; null when it can. */
function whyNoCasefold(): string | null {
  return canRun("test", "-e", "/sys/fs/ext4/features/casefold") ? null : "needs a kernel with CONFIG_UNICODE";
}
