/** `strongroom backup`: what is saved, and what is refused. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { backUp } from "../../src/maintenance/backup/write-backup.js";
import { enterHolder, removeHolder } from "../../src/storage/files/claim.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { startTestServer } from "../../tools/rig/server.js";
import { mustGet, mustLock, mustPut, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { start } from "../cli/run-command.js";
import { run } from "../support/command-here.js";
import { backup, leftovers, must, mustHold, restore, secrets, startFilled } from "./archives.js";

describe("backups", () => {
  it("a backup of an unlocked, locked or stopped server restores every secret into an empty home", async () => {
    const server = await startFilled();
    const files = temporaryDirectory();
    expect(must(await backup(server.home, join(files, "unlocked.tar")))).to.match(/^6 secrets saved in /);
    await mustLock(server);
    must(await backup(server.home, join(files, "locked.tar")));
    await server.stop();
    must(await backup(server.home, join(files, "stopped.tar")));
    expect(leftovers(server.home)).to.deep.equal([]);
    for (const name of readdirSync(files)) {
      const home = join(files, `home of ${name}`);
      expect(must(await restore(home, join(files, name)))).to.match(/^6 secrets restored into /);
      expect(leftovers(home)).to.deep.equal([]);
      await mustHold(home, secrets);
    }
  });

  it("a backup is a private tar file of ciphertext whose checksums sha256sum confirms", async () => {
    const server = await startFilled();
    const directory = temporaryDirectory();
    const file = join(directory, "b.tar");
    must(await backup(server.home, file));
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const bytes = readFileSync(file).toString("latin1");
    for (const hidden of ["s3cr3t", "x".repeat(100), server.token, "PRIVATE KEY"]) expect(bytes).not.to.contain(hidden);
    execFileSync("tar", ["-xf", file, "-C", directory]);
    execFileSync("sha256sum", ["-c", "--quiet", "--strict", "SHA256SUMS"], { cwd: directory });
    const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.length).to.equal(Object.keys(secrets).length + 3);
  });

  it("a backup has its files in the order of their names, the checksums last, so that constant memory suffices", async () => {
    const server = await startFilled();
    for (const path of ["a", "a/b", "a-b", "a.b/c", "A"]) await mustPut(server, path, "v");
    const file = join(temporaryDirectory(), "b.tar");
    must(await backup(server.home, file));
    const [last, ...names] = execFileSync("tar", ["-tf", file], { encoding: "utf8" }).trimEnd().split("\n").reverse();
    expect([last, names.length]).to.deep.equal(["SHA256SUMS", Object.keys(secrets).length + 6]);
    expect(names).to.deep.equal([...names].sort().reverse());
  });

  it("a backup is a point in time: of two secrets written in turn, the second is never ahead of the first", async () => {
    const server = await startFilled();
    for (const path of ["first", "second"]) await mustPut(server, path, "0");
    const file = join(temporaryDirectory(), "b.tar");
    let writing = true;
    const saving = backup(server.home, file).finally(() => {
      writing = false;
    });
    for (let number = 1; writing; number++) {
      await mustPut(server, "first", String(number));
      await mustPut(server, "second", String(number));
    }
    must(await saving);
    const home = join(temporaryDirectory(), "home");
    must(await restore(home, file));
    const again = await startTestServer({ home });
    await mustUnlock(again);
    const numberAt = async (path: string) => Number((await mustGet(again, path))["value"]);
    expect((await numberAt("first")) - (await numberAt("second"))).to.be.oneOf([0, 1]);
  });

  it("a backup saves a damaged secret as it is, reports it, and exits 12", async () => {
    const server = await startFilled();
    const damagedFile = join(server.vaultPath, "gen-1", "secrets", "large.sealed");
    truncateSync(damagedFile, 20);
    const file = join(temporaryDirectory(), "b.tar");
    const { code, stderr } = await backup(server.home, file);
    expect(code).to.equal(12);
    expect(stderr).to.match(/6 secrets saved in .*, 1 of them damaged/);
    const kept = execFileSync("tar", ["-xOf", file, "secrets/large.sealed"]);
    expect(kept.equals(readFileSync(damagedFile))).to.equal(true);
  });

  it("a backup prints one JSON object with --json, and nothing with --quiet", async () => {
    const server = await startFilled();
    const files = temporaryDirectory();
    const saved: unknown = JSON.parse(must(await backup(server.home, join(files, "a.tar"), "--json")));
    expect(saved).to.deep.equal({ ok: true, file: join(files, "a.tar"), secrets: 6, damaged: 0 });
    expect(must(await backup(server.home, join(files, "b.tar"), "-q"))).to.equal("");
    const home = join(files, "home");
    const restored: unknown = JSON.parse(must(await restore(home, join(files, "a.tar"), "--json")));
    expect(restored).to.deep.equal({ ok: true, dryRun: false, vaultPath: join(home, "vault"), secrets: 6 });
  });
});

describe("interrupted backups", () => {
  const rows = [
    ["SIGINT", "the snapshot is read", /^snapshot-/],
    ["SIGTERM", "the archive is written", /\.tmp-/],
  ] as const;
  for (const [signal, moment, name] of rows) {
    it(`a backup interrupted by ${signal} while ${moment} exits 13 and leaves nothing behind`, async () => {
      const server = await startFilled();
      await server.stop();
      const vault = join(server.home, "vault");
      const big = join(vault, "gen-1", "secrets", "big.sealed");
      writeFileSync(big, "", { mode: 0o600 });
      truncateSync(big, 400e6); // takes a while to read
      const files = temporaryDirectory();
      const { child, finished } = start(server, ["backup", join(files, "b.tar")]);
      while (![...readdirSync(vault), ...readdirSync(files)].some((each) => name.test(each))) await sleep(5);
      child.kill(signal);
      const { code, stderr } = await finished;
      expect([code, stderr]).to.deep.equal([13, "strongroom: interrupted: nothing was kept\n"]);
      expect([...leftovers(server.home), ...readdirSync(files)]).to.deep.equal([]);
    });
  }
});

describe("backups after a killed one", () => {
  it("a backup removes the snapshot and the temp file of a killed one, and no other file", async () => {
    const server = await startFilled();
    const files = temporaryDirectory();
    const { pid: dead } = spawnSync(process.execPath, ["-e", ""]);
    const random = "0123456789abcdef";
    const names = [
      `b.tar.tmp-${dead}-${random}`,
      `b.tar.tmp-${process.pid}-${random}`,
      `b.tar.tmp-mine`,
      `b.tar.tmp-${random}`,
      `b.tar.tmp-fedcba9876543210`,
    ];
    for (const name of names) writeFileSync(join(files, name), "half");
    const longAgo = new Date(Date.now() - 2 * 3600 * 1000);
    utimesSync(join(files, names[4] ?? ""), longAgo, longAgo); // of an earlier version, which did not write its pid
    mustSucceed(await send(server, { method: "POST", path: "/v1/snapshot" }));
    expect(leftovers(server.home)).to.have.lengthOf(1);
    must(await backup(server.home, join(files, "b.tar")));
    expect(leftovers(server.home)).to.deep.equal([]);
    expect(readdirSync(files).sort()).to.deep.equal(["b.tar", ...names.slice(1, 4)].sort());
  });
});

describe("refused backups", () => {
  it("a backup exits 10 when STRONGROOM_ADDRESS names a server that does not respond, although the files are here", async () => {
    const server = await startFilled();
    await server.stop();
    const file = join(temporaryDirectory(), "b.tar");
    const elsewhere = { STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: "https://localhost:1" };
    expect((await run(["backup", file], elsewhere)).code).to.equal(10);
    expect(existsSync(file)).to.equal(false);
  });

  it("a backup that would overwrite a file exits 7", async () => {
    const server = await startFilled();
    const file = join(temporaryDirectory(), "mine");
    writeFileSync(file, "mine");
    const { code, stderr } = await backup(server.home, file);
    expect(code).to.equal(7);
    expect(stderr).to.match(/already exists .* choose another name/);
    expect(readFileSync(file, "utf8")).to.equal("mine");
  });

  it("a backup of a stopped vault with an unusable header exits 12; a server backs up the header it holds", async () => {
    const server = await startFilled();
    writeFileSync(join(server.vaultPath, "gen-1", "header.json"), "{}");
    must(await backup(server.home, join(temporaryDirectory(), "b.tar")));
    await server.stop();
    const file = join(temporaryDirectory(), "b.tar");
    const { code, stderr } = await backup(server.home, file);
    expect([code, existsSync(file)]).to.deep.equal([12, false]);
    expect(stderr).to.contain("header cannot be used");
  });

  it("a backup of a stopped vault without its directory of secrets exits 12", async () => {
    const server = await startFilled();
    await server.stop();
    rmSync(join(server.vaultPath, "gen-1", "secrets"), { recursive: true });
    const file = join(temporaryDirectory(), "b.tar");
    for (let times = 1; times <= 2; times++) {
      const { code, stderr } = await backup(server.home, file);
      expect([code, existsSync(file)]).to.deep.equal([12, false]);
      expect(stderr).to.contain("the directory of secrets is missing").and.to.contain("nothing was saved");
    }
  });

  it("a backup exits 1 while another one reads its snapshot, and works once that has ended", async () => {
    const server = await startFilled();
    const taken = mustSucceed(await send(server, { method: "POST", path: "/v1/snapshot" }));
    await enterHolder(String(taken["directory"])); // as a backup does
    const file = join(temporaryDirectory(), "b.tar");
    const { code, stderr } = await backup(server.home, file);
    expect([code, existsSync(file)]).to.deep.equal([1, false]);
    expect(stderr).to.contain(`a backup (pid ${process.pid}) is reading a snapshot: try again when it has ended`);
    await removeHolder(String(taken["directory"]));
    must(await backup(server.home, file));
    expect(leftovers(server.home)).to.deep.equal([]);
  });

  it("a backup into the vault itself exits 2", async () => {
    const server = await startFilled();
    const file = join(server.home, "vault", "..b.tar");
    const { code, stderr } = await backup(server.home, file);
    expect([code, existsSync(file)]).to.deep.equal([2, false]);
    expect(stderr).to.contain("inside the vault").and.to.contain("name a file elsewhere");
    must(await backup(server.home, join(server.home, "b.tar")));
  });

  it("a backup without a vault exits 8 and creates no home", async () => {
    const home = join(temporaryDirectory(), "nowhere");
    const { code, stderr } = await backup(home, join(temporaryDirectory(), "b.tar"));
    expect([code, existsSync(home)]).to.deep.equal([8, false]);
    expect(stderr).to.match(/there is no vault/);
  });

  it("a backup of a server that has no vault yet exits 8", async () => {
    const { home } = await startTestServer();
    expect((await backup(home, join(temporaryDirectory(), "b.tar"))).code).to.equal(8);
  });

  it("a backup with a wrong token exits 5", async () => {
    const server = await startFilled();
    const token = join(temporaryDirectory(), "token");
    writeFileSync(token, "srt_wrong");
    chmodSync(token, 0o600);
    const { code } = await backup(server.home, join(temporaryDirectory(), "b.tar"), "--token-file", token);
    expect(code).to.equal(5);
  });

  it("a backup whose file cannot be written exits 1", async () => {
    const server = await startFilled();
    const { code, stderr } = await backup(server.home, join(temporaryDirectory(), "no", "such", "directory", "b.tar"));
    expect(code).to.equal(1);
    expect(stderr).to.match(/cannot be written \(ENOENT\)/);
    expect(leftovers(server.home)).to.deep.equal([]);
  });
});

describe("the check of a written backup", () => {
  /** Backs up a snapshot of four files, one of them large; returns the outcome. */
  async function tryBackup(secretCount: number, verifying: (temp: string) => void): Promise<string> {
    const directory = join(temporaryDirectory(), "snapshot");
    mkdirSync(join(directory, "secrets"), { recursive: true });
    for (const name of ["header.json", "secrets/a.sealed", "secrets/b.sealed", "secrets/c.sealed"]) {
      writeFileSync(join(directory, name), "as it was");
    }
    truncateSync(join(directory, "secrets/c.sealed"), 3 * 2 ** 20);
    const judge = {
      understands: async () => true,
      findFaults: async (blobs: readonly unknown[]) => blobs.map(() => null),
    };
    const file = join(temporaryDirectory(), "b.tar");
    const tick = (phase: string, done: number) => {
      if (phase === "verifying" && done < 5000) verifying(join(file, "..", readdirSync(join(file, ".."))[0] ?? ""));
    };
    const watch = { tick, signal: new AbortController().signal };
    const taken = async () => ({ directory, secretCount, direct: false, release: async () => {} });
    const outcome = await backUp(taken, file, judge, watch).then(
      ({ secrets: saved }) => `${saved} saved`,
      ({ message }: Error) => message,
    );
    expect(readdirSync(join(file, "..")), outcome).to.deep.equal(outcome.endsWith("saved") ? ["b.tar"] : []);
    return outcome;
  }

  it("a backup is not kept when the disk does not return what was written", async () => {
    const change = (temp: string) => {
      const handle = openSync(temp, "r+");
      writeSync(handle, "x", 2 * 2 ** 20);
      closeSync(handle);
    };
    expect(await tryBackup(3, () => {})).to.equal("3 saved");
    expect(await tryBackup(3, change)).to.match(/truncated or changed/);
  });

  it("a backup is not kept when the snapshot has fewer files than announced", async () => {
    expect(await tryBackup(4, () => {})).to.match(/has lost files/);
  });
});
