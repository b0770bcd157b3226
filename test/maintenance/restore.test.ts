/** `strongroom restore`: what is restored, what is refused, and that a refusal leaves no vault. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Header } from "tar";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { restore as restoreVault } from "../../src/maintenance/backup/restore-backup.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import { makeCurrent } from "../../src/storage/files/generations.js";
import { cleanUpMark, cleanUpTo, shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { realScryptCost, startTestServer } from "../../tools/rig/server.js";
import { mustInit } from "../../tools/rig/test-client.js";
import { start } from "../cli/run-command.js";
import { run } from "../support/command-here.js";
import { failingFiles } from "../support/failing-files.js";
import {
  backup,
  type Entry,
  leftovers,
  must,
  mustHold,
  restore,
  secrets,
  startFilled,
  writeArchive,
  writeSummedArchive,
} from "./archives.js";

async function makeHeader(): Promise<string> {
  const server = await startTestServer(realScryptCost);
  await mustInit(server);
  return readFileSync(join(server.vaultPath, "gen-1", "header.json"), "utf8");
}

async function mustRefuse(file: string, exit: number, message: RegExp): Promise<void> {
  const home = join(temporaryDirectory(), "home");
  const { code, stderr } = await restore(home, file);
  expect(stderr).to.match(message);
  expect(code).to.equal(exit);
  expect(existsSync(join(home, "vault", "current"))).to.equal(false);
  expect(existsSync(home)).to.equal(false);
}

describe("restores", () => {
  /** A server whose vault has the secrets, and its backup. */
  const original = shared(async () => {
    const server = await startFilled();
    const file = join(temporaryDirectory(), "b.tar");
    must(await backup(server.home, file));
    return { server, file };
  });

  it("a restore reads nothing beyond the end of the archive, however much there is", async () => {
    const file = join(temporaryDirectory(), "b.tar");
    copyFileSync(original().file, file);
    truncateSync(file, 2 ** 31); // sparse
    const home = join(temporaryDirectory(), "home");
    must(await restore(home, file));
    expect(existsSync(join(home, "vault", "current"))).to.equal(true);
  });

  it("a restore into a home with a vault exits 7", async () => {
    const server = await startFilled();
    const file = join(temporaryDirectory(), "b.tar");
    must(await backup(server.home, file));
    await server.stop();
    const { code, stderr } = await restore(server.home, file);
    expect(code).to.equal(7);
    expect(stderr).to.match(/already holds a vault and is not overwritten: choose an empty home/);
  });

  it("a restore succeeds in a home that an interrupted init left without a current vault", async () => {
    const { file } = original();
    const home = join(temporaryDirectory(), "home");
    const begun = join(home, "vault", "gen-1");
    mkdirSync(join(begun, "secrets"), { recursive: true, mode: 0o700 });
    writeFileSync(join(begun, "header.json"), await makeHeader(), { mode: 0o600 });
    must(await restore(home, file, "--dry-run"));
    must(await restore(home, file));
    await mustHold(home, secrets);
  });

  it("a restore into a home without current that has secrets exits 7", async () => {
    const server = await startFilled();
    const file = join(temporaryDirectory(), "b.tar");
    must(await backup(server.home, file));
    await server.stop();
    rmSync(join(server.vaultPath, "current"));
    expect((await restore(server.home, file)).code).to.equal(7);
  });

  it("restore --dry-run verifies the archive and the home, and writes nothing", async () => {
    const { server, file } = original();
    const home = join(temporaryDirectory(), "home");
    expect(must(await restore(home, file, "--dry-run"))).to.match(
      /^6 secrets could be restored .* nothing was written/,
    );
    expect(existsSync(home)).to.equal(false);
    expect((await restore(server.home, file, "--dry-run")).code).to.equal(7);
    expect((await restore(home, writeArchive([]), "--dry-run")).code).to.equal(12);
  });

  for (const [what, file, reason] of [
    ["a file that is not there", "/nowhere/b.tar", "(ENOENT): no such file or directory, check the spelling"],
    ["a directory", "/", "(EISDIR): it is a directory, name a file"],
  ] as const) {
    it(`a restore of ${what} exits 2 and creates no home`, async () => {
      const home = join(temporaryDirectory(), "home");
      const { code, stderr } = await restore(home, file);
      expect(code).to.equal(2);
      expect(stderr).to.equal(`strongroom: the backup ${file} cannot be read ${reason}\n`);
      expect(existsSync(home)).to.equal(false);
    });
  }

  for (const [what, bytes] of [
    ["a file that is no tar file", Buffer.from("not a tar file")],
    ["a file of zeros", Buffer.alloc(10_240)],
    ["a truncated backup", null],
  ] as const) {
    it(`a restore of ${what} exits 12 and leaves no new home behind`, async () => {
      const bad = join(temporaryDirectory(), "bad.tar");
      writeFileSync(bad, bytes ?? readFileSync(original().file).subarray(0, -4_096));
      const home = join(temporaryDirectory(), "home");
      expect((await restore(home, bad)).code).to.equal(12);
      expect(existsSync(home)).to.equal(false);
      mkdirSync(home, { mode: 0o700 });
      expect((await restore(home, bad)).code).to.equal(12);
      expect(existsSync(home)).to.equal(true);
    });
  }

  for (const [what, filesThatFail] of [
    ["any one operation", failingOnce],
    ["every fsync from one", failingSyncsFrom],
  ] as const) {
    it(`a restore leaves no vault that it cannot make durable, wherever ${what} fails`, async () => {
      for (let k = 1; k <= 40; k++) {
        const vault = temporaryDirectory();
        const building = join(vault, "restore-0123456789abcdef");
        mkdirSync(join(building, "secrets"), { recursive: true });
        const outcome = await makeCurrent(filesThatFail(k), vault, building).catch(() => "refused");
        if (outcome === undefined) return expect(k).to.be.above(3);
        expect(readdirSync(vault), `k = ${k}`).to.deep.equal(["restore-0123456789abcdef"]);
      }
      return expect.fail("no attempt succeeded");
    });
  }

  it("a restore into a home that is a file is refused, also with --dry-run", async () => {
    const file = writeArchive([]);
    for (const flags of [[], ["--dry-run"]]) {
      const { code, stderr } = await restore(file, file, ...flags);
      expect(code).to.equal(1);
      expect(stderr).to.contain(`${file} is not a directory`);
    }
  });

  it("a restore into a home with a running server is refused with its pid", async () => {
    const { home } = await startTestServer();
    const { code, stderr } = await restore(home, writeArchive([]));
    expect(code).to.equal(1);
    expect(stderr).to.contain(`(pid ${process.pid})`);
  });

  it("a restore of a truncated or changed archive is refused", async () => {
    const whole = readFileSync(original().file);
    const file = join(temporaryDirectory(), "b.tar");
    for (const length of [0, 1, 511, 512, 1000, 4096, 20_000, whole.length - 310_000, whole.length - 2048]) {
      writeFileSync(file, whole.subarray(0, length));
      await mustRefuseInProcess(file);
    }
    for (let at = 700; at < whole.length; at += Math.ceil(whole.length / 12)) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 0x40;
      writeFileSync(file, changed);
      await mustRefuseInProcess(file, Number.POSITIVE_INFINITY, true);
    }
    for (const place of ["header.json", "vaultId", "secrets/large", "SRVB", "SHA256SUMS", "  secrets/app"]) {
      const changed = Buffer.from(whole);
      const at = changed.indexOf(place);
      changed[at] = (changed[at] ?? 0) ^ 1;
      writeFileSync(file, changed);
      await mustRefuseInProcess(file);
    }
  });

  it("a restore interrupted by a crash leaves no vault, and can be repeated", async () => {
    const { file } = original();
    const home = join(temporaryDirectory(), "home");
    mkdirSync(join(home, "vault", "restore-0123456789abcdef", "secrets"), { recursive: true, mode: 0o700 });
    must(await restore(home, file));
    await mustHold(home, secrets);
    expect(leftovers(home), "removed by the start").to.deep.equal([]);
  });
});

function failingOnce(k: number): FileOperations {
  const { files, failOnce } = failingFiles();
  failOnce(k, "EIO");
  return files;
}

function failingSyncsFrom(k: number): FileOperations {
  let syncs = 0;
  const sync = async () => {
    if (++syncs >= k) throw Object.assign(new Error("EIO"), { code: "EIO" });
  };
  const open: FileOperations["open"] = async (...args) => Object.assign(await systemFiles.open(...args), { sync });
  return { ...systemFiles, open };
}

describe("restores killed after the vault was complete and before it was current", () => {
  type Killed = { readonly home: string; readonly file: string };

  /** As the kill leaves it, and the archive. */
  async function makeKilled(): Promise<Killed> {
    const server = await startFilled();
    const file = join(temporaryDirectory(), "b.tar");
    must(await backup(server.home, file));
    const home = join(temporaryDirectory(), "home");
    must(await restore(home, file));
    const sums = execFileSync("tar", ["-xOf", file, "SHA256SUMS"]);
    writeFileSync(join(home, "vault/gen-1/restored"), createHash("sha256").update(sums).digest("hex"), { mode: 0o600 });
    rmSync(join(home, "vault/current"));
    return { home, file };
  }
  const original = shared(makeKilled);
  const killed = (): Killed => {
    const home = join(temporaryDirectory(), "home");
    copyTree(original().home, home);
    return { home, file: original().file };
  };
  const marks = (home: string) => readdirSync(join(home, "vault/gen-1")).sort();

  it("a start finishes a killed restore", async () => {
    const { home } = killed();
    await mustHold(home, secrets);
    expect(marks(home)).to.deep.equal(["header.json", "secrets"]);
  });

  it("a start removes the mark of a restore killed after current was written", async () => {
    const { home } = killed();
    writeFileSync(join(home, "vault/current"), "gen-1\n", { mode: 0o600 });
    await mustHold(home, secrets);
    expect(marks(home)).to.deep.equal(["header.json", "secrets"]);
  });

  it("a restore of the same archive finishes a killed one", async () => {
    const { home, file } = killed();
    must(await restore(home, file, "--dry-run"));
    expect(existsSync(join(home, "vault/current"))).to.equal(false);
    expect(must(await restore(home, file))).to.match(/^6 secrets restored into /);
    expect(marks(home)).to.deep.equal(["header.json", "secrets"]);
    await mustHold(home, secrets);
  });

  it("a restore of another archive exits 7 and keeps the vault of the killed one", async () => {
    const { home } = killed();
    const another = await makeKilled();
    const { code, stderr } = await restore(home, another.file);
    expect(code).to.equal(7);
    expect(stderr).to.contain("already holds the vault of another backup");
    await mustHold(home, secrets);
  });

  it("doctor --fix finishes a killed restore, which can also be backed up", async () => {
    const { home } = killed();
    must(await backup(home, join(temporaryDirectory(), "b.tar")));
    const again = killed();
    const { code, stdout } = await run(["doctor", "--fix", "--home", again.home]);
    expect(code, stdout).to.equal(0);
    await mustHold(again.home, secrets);
  });
});

describe("restores with an audit log, killed at any step of becoming current", () => {
  type Saved = { readonly file: string; readonly header: string; readonly log: string };
  const firstLogLine = (home: string) =>
    readFileSync(join(home, "audit", "audit-000001.jsonl"), "latin1").split("\n", 1)[0] ?? "";
  const headerIn = (home: string) => readFileSync(join(home, "vault/gen-1/header.json"), "utf8");

  async function save(): Promise<Saved> {
    const server = await startTestServer(realScryptCost);
    await mustInit(server);
    const file = join(temporaryDirectory(), "b.tar");
    must(await backup(server.home, file, "--with-audit"));
    await server.stop();
    return { file, header: headerIn(server.home), log: firstLogLine(server.home) };
  }
  const saved = shared(async () => ({ first: await save(), second: await save() }));

  /** A home in which all of a backup is written, and nothing is current. */
  async function built({ file }: Saved): Promise<{ readonly home: string; readonly building: string }> {
    const home = join(temporaryDirectory(), "home");
    const vault = join(home, "vault");
    mkdirSync(vault, { recursive: true, mode: 0o700 });
    await restoreVault(file, vault, async () => true, { tick: () => {}, signal: new AbortController().signal });
    const building = join(vault, "restore-0123456789abcdef");
    renameSync(join(vault, "gen-1"), building);
    renameSync(join(home, "audit"), join(building, "audit"));
    const sums = execFileSync("tar", ["-xOf", file, "SHA256SUMS"]);
    writeFileSync(join(building, "restored"), createHash("sha256").update(sums).digest("hex"), { mode: 0o600 });
    rmSync(join(vault, "current"));
    return { home, building };
  }

  /** Returns which backup is restored in the end: the second, or the first when the restore of the second was refused. */
  async function restoredAfterKill(step: number): Promise<"first" | "second"> {
    const { home, building } = await built(saved().first);
    const vault = join(home, "vault");
    await makeCurrent(dyingFiles(step), vault, building).catch(() => {});
    const { code } = await restore(home, saved().second.file);
    expect(code).to.be.oneOf([0, 7]);
    await FileStore.open(vault).then((store) => store.close());
    const which = code === 0 ? "second" : "first";
    const { header, log } = saved()[which];
    expect([headerIn(home), firstLogLine(home)], `step ${step}`).to.deep.equal([header, log]);
    expect(readdirSync(join(vault, "gen-1")).sort()).to.deep.equal(["header.json", "secrets"]);
    return which;
  }

  it("a killed restore leaves no audit log beside the vault of another backup", async () => {
    const outcomes = new Set<string>();
    for (let step = 0; step < 14; step++) outcomes.add(await restoredAfterKill(step));
    expect([...outcomes].sort()).to.deep.equal(["first", "second"]);
  });
});

/** From one operation on, none has an effect: as after a kill. */
function dyingFiles(after: number): FileOperations {
  let operations = 0;
  const dying = <A extends readonly unknown[], R>(operate: (...args: A) => Promise<R>) => {
    return (...args: A): Promise<R> => {
      if (operations++ < after) return operate(...args);
      return Promise.reject(Object.assign(new Error("EIO"), { code: "EIO", syscall: "none" }));
    };
  };
  const { rename, unlink, open, mkdir, rmdir } = systemFiles;
  return {
    ...systemFiles,
    ...{ rename: dying(rename), unlink: dying(unlink), open: dying(open) },
    ...{ mkdir: dying(mkdir) as typeof mkdir, rmdir: dying(rmdir) },
  };
}

describe("interrupted restores", () => {
  let file: string;
  let mark = 0;
  before(() => {
    mark = cleanUpMark();
    const content = "x".repeat(8 * 2 ** 20); // takes a while to write
    file = writeArchive(Array.from({ length: 12 }, (_, n) => ({ name: `secrets/big-${n}.sealed`, content })));
  });
  after(() => cleanUpTo(mark));

  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    it(`a restore interrupted by ${signal} while secrets are written exits 13 and leaves nothing behind`, async () => {
      const home = join(temporaryDirectory(), "home");
      const vault = join(home, "vault");
      const { child, finished } = start({ home }, ["restore", file]);
      while (!existsSync(vault) || leftovers(home).length === 0) await sleep(5);
      child.kill(signal);
      const { code, stderr } = await finished;
      expect([code, stderr]).to.deep.equal([13, "strongroom: interrupted: nothing was kept\n"]);
      expect(existsSync(vault) ? readdirSync(vault) : []).to.deep.equal([]);
    });
  }
});

describe("refused archives", () => {
  const blob = "SRVB";
  const rows: readonly (readonly [string, readonly Entry[], RegExp])[] = [
    [
      "with a name that climbs out of the tree",
      [{ name: "secrets/../../../evil.sealed", content: blob }],
      /no secret's file/,
    ],
    ["with an absolute name", [{ name: "/secrets/a.sealed", content: blob }], /no secret's file/],
    ["with a name that the server never writes", [{ name: "secrets/A.sealed", content: blob }], /no secret's file/],
    ["with a path that is not allowed", [{ name: "secrets/%20a.sealed", content: blob }], /no secret's file/],
    ["with a foreign file", [{ name: "notes.txt", content: "mine" }], /no secret's file/],
    ["with a symbolic link", [{ name: "secrets/a.sealed", type: "SymbolicLink" }], /which is not a plain file/],
    ["with a hard link", [{ name: "secrets/a.sealed", type: "Link" }], /which is not a plain file/],
    [
      "with a name that could control a terminal",
      [{ name: "secrets/\u009b31m\u202e.sealed", content: blob }],
      /"secrets\/\\u\{9b\}31m\\u\{202e\}/,
    ],
    ["with a pipe", [{ name: "secrets/a.sealed", type: "FIFO" }], /use another backup/],
    ["with two files of one name", [1, 2].map(() => ({ name: "secrets/a.sealed", content: blob })), /two files/],
  ];
  for (const [what, entries, message] of rows) {
    it(`an archive ${what} is refused with exit 12`, async () => {
      await mustRefuse(
        writeSummedArchive([{ name: "header.json", content: await makeHeader() }, ...entries]),
        12,
        message,
      );
    });
  }

  it("an archive with a name of 50,000 characters is refused with the name's beginning", async () => {
    const long = `secrets/${"n".repeat(50_000)}`;
    const file = writeArchive([
      { name: "././@LongLink", type: "NextFileHasLongPath", content: `${long}\0` },
      { name: "secrets/n", content: blob },
    ]);
    await mustRefuse(file, 12, /^strongroom: .{1,900}\n$/);
  });

  it("an archive without checksums is refused with exit 12", async () => {
    await mustRefuse(
      writeArchive([{ name: "header.json", content: await makeHeader() }]),
      12,
      /has no valid SHA256SUMS/,
    );
  });

  it("an archive without a header, or with one of a later version, is refused with exit 12", async () => {
    await mustRefuse(
      writeSummedArchive([{ name: "secrets/a.sealed", content: blob }]),
      12,
      /no header that can be used/,
    );
    const later = (await makeHeader()).replace(/"version": ?2/, '"version":3');
    await mustRefuse(writeSummedArchive([{ name: "header.json", content: later }]), 12, /no header that can be used/);
  });

  for (const [what, entry] of [
    ["a header of 200 MB", { name: "header.json", size: 200e6 }],
    ["a secret larger than any", { name: "secrets/a.sealed", size: 1100 * 2 ** 20 }],
    ["a pax header of 200 MB", { name: "PaxHeader/a", size: 200e6, type: "ExtendedHeader" }],
    ["a secret larger than the archive", { name: "secrets/a.sealed", size: 2 ** 40 }],
  ] as const) {
    it(`an archive with ${what} is refused with exit 12 before any of it is read`, async () => {
      const file = join(temporaryDirectory(), "sparse.tar");
      const header = new Header({ path: entry.name, size: entry.size, type: "type" in entry ? entry.type : "File" });
      header.encode();
      writeFileSync(file, header.block ?? "");
      if (entry.size < 2 ** 32) truncateSync(file, entry.size + 2048);
      const before = process.memoryUsage().arrayBuffers;
      await mustRefuseInProcess(file, 2 ** 22 + before);
      await mustRefuse(file, 12, /larger than any file of a vault|is not a tar file, or is truncated/);
    });
  }

  it("a file that is no archive, or is compressed, is refused with what to do", async () => {
    const text = join(temporaryDirectory(), "text");
    writeFileSync(text, "not an archive, and longer than one block ".repeat(50));
    await mustRefuse(text, 12, /is not a tar file/);
    writeFileSync(text, Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), Buffer.alloc(300_000, "noise")]));
    await mustRefuse(text, 1, /is compressed: unpack it with {2}gunzip/); // never by us
    const zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58];
    writeFileSync(text, Buffer.concat([Buffer.from(zstd), Buffer.alloc(300_000)]));
    await mustRefuse(text, 1, /is compressed: unpack it with {2}unzstd/);
  });
});

/** In this process, because there are many. */
async function mustRefuseInProcess(
  file: string,
  mostBytes = Number.POSITIVE_INFINITY,
  isDamaged = false,
): Promise<void> {
  const vault = temporaryDirectory();
  const outcome = await restoreVault(file, vault, async () => true, {
    tick: () => {},
    signal: new AbortController().signal,
  }).then(
    () => "restored",
    (error: Error & { problem?: string }) => (isDamaged ? error.problem : error.name),
  );
  expect(outcome).to.equal(isDamaged ? "damaged" : "BackupError");
  expect(process.memoryUsage().arrayBuffers).to.be.below(mostBytes);
  expect(existsSync(vault) ? readdirSync(vault) : []).to.deep.equal([]);
}
