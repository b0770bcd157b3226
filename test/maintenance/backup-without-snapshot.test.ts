/** Backups of a vault whose disk takes no snapshot, because it is full or read-only: they read the vault itself. */

import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { startTime } from "../../src/files/process-identity.js";
import { directFiles } from "../../src/maintenance/backup/write-backup.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import { encodeJournal } from "../../src/storage/files/journal.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { startProcess } from "../../tools/rig/process.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustInit, mustPut, mustRefuse, mustSucceed, send } from "../../tools/rig/test-client.js";
import { failingFiles } from "../support/failing-files.js";
import { mount, mustRun, whyNoMounts } from "../support/mounts.js";
import { isMissing } from "../support/needs.js";
import { write } from "../support/store-changes.js";
import { backup, must, mustHold, restore, secrets } from "./archives.js";

const fromTheVault = /^6 secrets saved in \S+ \(from the vault itself: its disk is full or read-only/;

/** A filled server process whose home is on a disk of its own. An audit log would keep that from being remounted. */
async function startOnDisk() {
  const disk = join(temporaryDirectory(), "disk");
  mkdirSync(disk);
  mount("tmpfs", disk, "-t", "tmpfs", "-o", "size=4m,nr_inodes=200,mode=700");
  const server = await startProcess([], { STRONGROOM_HOME: join(disk, "home"), STRONGROOM_AUDIT: "off" });
  await mustInit(server);
  for (const [path, value] of Object.entries(secrets)) await mustPut(server, path, value);
  return { disk, server };
}

/** Leaves neither space nor inodes, as another program would. */
function fill(disk: string): void {
  const descriptor = openSync(join(disk, "large"), "w");
  mustFail(() => writeSync(descriptor, Buffer.alloc(4096, 1)));
  closeSync(descriptor);
  mustFail((n) => closeSync(openSync(join(disk, `empty-${n}`), "w")));
}

function mustFail(step: (n: number) => unknown): void {
  expect(() => {
    for (let n = 0; n < 10_000; n++) step(n);
  }).to.throw("ENOSPC");
}

function namesIn({ vaultPath }: TestServer): string[] {
  return readdirSync(vaultPath, { recursive: true, encoding: "utf8" })
    .filter((name) => name !== "server.pid")
    .sort();
}

describe("backups of a vault on a disk that takes no snapshot", () => {
  if (isMissing(whyNoMounts())) return;

  const disks = { full: fill, "read-only": (disk: string) => mustRun("mount", "-o", "remount,ro", disk) };
  for (const [kind, spoil] of Object.entries(disks)) {
    it(`a backup on a ${kind} disk reads the vault itself, served or not, says so, and changes nothing in it`, async () => {
      const { disk, server } = await startOnDisk();
      spoil(disk);
      const before = namesIn(server);
      const files = temporaryDirectory();
      expect(must(await backup(server.home, join(files, "served.tar")))).to.match(fromTheVault);
      await server.stop();
      const output = must(await backup(server.home, join(files, "stopped.tar"), "--json"));
      expect(JSON.parse(output)).to.include({ secrets: 6, damaged: 0, direct: true });
      expect(namesIn(server)).to.deep.equal(before);
      expect(readdirSync(files).sort()).to.deep.equal(["served.tar", "stopped.tar"]);
      for (const name of readdirSync(files)) {
        const home = join(files, `home of ${name}`);
        must(await restore(home, join(files, name)));
        await mustHold(home, secrets);
      }
    });
  }
});

describe("POST /v1/snapshot with a reader", () => {
  /** A server whose disk is full for snapshots only. */
  async function startWithoutLinks() {
    const { files, fail, repair } = failingFiles();
    const server = await startTestServer({ files });
    await mustInit(server);
    await mustPut(server, "a/b", "1");
    fail("link", "ENOSPC");
    return { server, repair };
  }

  function request(reader: string) {
    return { method: "POST", path: `/v1/snapshot?reader=${encodeURIComponent(reader)}` };
  }

  it("a vault that takes no snapshot is frozen until the reader has ended, and reads continue", async () => {
    const { server } = await startWithoutLinks();
    const reader = spawn("sleep", ["60"]);
    later(() => void reader.kill());
    const { pid = 0 } = reader;
    const taken = mustSucceed(await send(server, request(`${pid}:${startTime(pid)}`)));
    expect(taken).to.include({ direct: true, secretCount: 1, directory: join(server.vaultPath, "gen-1") });
    const put = () => send(server, { method: "PUT", path: "/v1/secrets/a/c", body: { value: "2" } });
    const refused = await put();
    mustRefuse(refused, 503, "UNAVAILABLE");
    expect(refused.json["error"]).to.contain(`a backup (pid ${pid}) is reading the vault`);
    mustRefuse(await send(server, { method: "DELETE", path: "/v1/secrets/a/b" }), 503, "UNAVAILABLE");
    mustSucceed(await send(server, { path: "/v1/secrets/a/b" }));
    reader.kill();
    await new Promise((resolve) => reader.once("exit", resolve));
    mustSucceed(await put());
  });

  it("a reader that has ended or runs elsewhere is refused, and writes continue", async () => {
    const { server } = await startWithoutLinks();
    for (const reader of [`${process.pid}:another boot 1`, "4194304:"]) {
      mustRefuse(await send(server, request(reader)), 503, "UNAVAILABLE");
    }
    await mustPut(server, "a/c", "2");
  });

  it("a snapshot with a reader copies as ever where the disk takes one", async () => {
    const { server, repair } = await startWithoutLinks();
    repair();
    const taken = mustSucceed(await send(server, request(`${process.pid}:${startTime(process.pid)}`)));
    expect(taken).not.to.have.property("direct");
    await mustPut(server, "a/c", "2");
  });

  for (const reader of ["", "0:", "x:1", "12", `1:${"x".repeat(101)}`, "1:\n"]) {
    it(`a snapshot refuses the reader ${JSON.stringify(reader).slice(0, 20)}`, async () => {
      const { server } = await startWithoutLinks();
      mustRefuse(await send(server, request(reader)), 400, "BAD_REQUEST");
    });
  }
});

describe("vaults that are read directly", () => {
  it("a direct read finds the blobs, with the changes of a batch that is still in the journal, and no others", async () => {
    const vault = temporaryDirectory();
    const store = await FileStore.open(vault);
    await store.startNewVault(new Uint8Array(10));
    for (const path of ["a", "b/c", "d"]) await write(store, path, new Uint8Array(1));
    await store.close();
    const changes = [
      { space: "secrets", path: "a", blob: new Uint8Array(2) },
      { space: "secrets", path: "b/c", blob: null },
      { space: "trash", path: "b/c", blob: new Uint8Array(4) },
      { space: "secrets", path: "b/b", blob: new Uint8Array(3) },
    ] as const;
    const generation = join(vault, "gen-1");
    writeFileSync(join(generation, "journal"), encodeJournal(changes));
    for (const name of [".tmp-0123456789abcdef", "notes", "E.sealed"]) {
      writeFileSync(join(generation, "secrets", name), "foreign");
    }
    mustRun("mkfifo", join(generation, "secrets", "pipe.sealed"));
    const found: [string, number][] = [];
    for await (const { name, size } of directFiles(generation)) found.push([name, size]);
    expect(found).to.deep.equal([
      ["header.json", 10],
      ["secrets/a.sealed", 2],
      ["secrets/b/b.sealed", 3],
      ["secrets/d.sealed", 1],
      ["trash/b/c.sealed", 4],
    ]);
  });
});
