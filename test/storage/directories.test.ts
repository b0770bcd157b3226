/** Directories created by puts: none counts as durable while the fsync of its name may have been lost. */
import { constants, mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect } from "chai";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { indexNames } from "../../src/storage/files/name-index.js";
import { Tree } from "../../src/storage/files/tree.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { failingFiles } from "../support/failing-files.js";
import { closedGate, turns } from "../support/latch.js";

/** The first fsync of `directory` fails after a subdirectory was created, and only then can that be looked at. */
function failingOnce(directory: string): FileOperations {
  const made = closedGate();
  const failed = closedGate();
  let due = true;
  const open = async (...args: Parameters<FileOperations["open"]>) => {
    const handle = await systemFiles.open(...args);
    if (args[0] !== directory || (args[1] & constants.O_DIRECTORY) === 0) return handle;
    const sync = async () => {
      if (!due) return;
      due = false;
      await made.passed;
      failed.open();
      throw Object.assign(new Error("EIO"), { code: "EIO" });
    };
    return Object.assign(handle, { sync });
  };
  const lstat = async (path: string) => {
    made.open();
    await failed.passed;
    await turns();
    return systemFiles.lstat(path);
  };
  return { ...systemFiles, open: open as FileOperations["open"], lstat: lstat as FileOperations["lstat"] };
}

describe("a new directory whose parent's fsync fails", () => {
  it("a put is refused when its new directory was not synced, although a later fsync would report success", async () => {
    const directory = temporaryDirectory();
    const secrets = join(directory, "secrets");
    mkdirSync(secrets);
    const tree = new Tree(failingOnce(secrets), directory, indexNames());
    const puts = ["a/x", "beside"].map((path) => tree.write("secrets", path, new Uint8Array(1)));
    const outcomes = await Promise.allSettled(puts);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
  });

  it("a refused put removes all directories that were created for it", async () => {
    const directory = temporaryDirectory();
    const secrets = join(directory, "secrets");
    mkdirSync(secrets);
    const { files, fail } = failingFiles();
    fail("sync", "EIO");
    const tree = new Tree(files, directory, indexNames());
    const outcome = await tree.write("secrets", "a/b/x", new Uint8Array(1)).catch(({ code }: { code: string }) => code);
    expect([outcome, readdirSync(secrets)]).to.deep.equal(["EIO", []]);
  });

  type Failing = "rmdir" | "lstat";
  const rows: readonly (readonly [Failing, string, readonly string[]])[] = [
    ["rmdir", "when it could not be removed", ["a/b/x", "a/b/x"]],
    ["lstat", "when lstat failed, and another put's fsync failed", ["a/b/x", "beside", "a/b/x"]],
  ];
  for (const [failing, what, paths] of rows) {
    it(`a put creates the directory again ${what}`, async () => {
      const directory = temporaryDirectory();
      const secrets = join(directory, "secrets");
      mkdirSync(secrets);
      const { files, lasting } = forgettingDisk(secrets, failing);
      const tree = new Tree(files, directory, indexNames());
      const outcomes: string[] = [];
      for (const path of paths) {
        const put = tree.write("secrets", path, new Uint8Array(1));
        outcomes.push(
          await put.then(
            () => (lasting.has("a") ? "lasts" : "is lost"),
            () => "refused",
          ),
        );
      }
      expect(outcomes.at(0)).to.equal("refused");
      expect(outcomes.at(-1)).to.equal("lasts");
    });
  }
});

/**
 * A disk on which the first call of `failing` and the first fsync of `directory` fail. A failed fsync loses the name
 * changes in the directory, and no later one reports that; `lasting` are the names that survive a power cut.
 */
function forgettingDisk(directory: string, failing?: "rmdir" | "lstat", wholeFsyncs = 0) {
  const lasting = new Set<string>();
  const changed = new Map<string, boolean>();
  const due = new Set<string | undefined>(["fsync", failing]);
  let fsyncs = 0;
  const fail = (call: string) => {
    if (due.delete(call)) throw Object.assign(new Error("EIO"), { code: "EIO" });
  };
  const change = (path: unknown, there: boolean) => {
    if (dirname(String(path)) === directory) changed.set(basename(String(path)), there);
  };
  const sync = async () => {
    const changes = [...changed];
    changed.clear();
    if (++fsyncs > wholeFsyncs) fail("fsync");
    for (const [name, there] of changes) {
      if (there) lasting.add(name);
      else lasting.delete(name);
    }
  };
  const files: Partial<FileOperations> = {
    open: async (...args) => {
      const handle = await systemFiles.open(...args);
      return args[0] === directory ? Object.assign(handle, { sync }) : handle;
    },
    mkdir: (async (path: string) => {
      await systemFiles.mkdir(path);
      change(path, true);
    }) as FileOperations["mkdir"],
    rename: async (from, to) => {
      await systemFiles.rename(from, to);
      change(to, true);
    },
    unlink: async (path) => {
      await systemFiles.unlink(path);
      change(path, false);
    },
    rmdir: async (path) => {
      fail("rmdir");
      await systemFiles.rmdir(path);
      change(path, false);
    },
    lstat: (async (path: string) => {
      fail("lstat");
      return systemFiles.lstat(path);
    }) as FileOperations["lstat"],
  };
  return { files: { ...systemFiles, ...files }, lasting };
}

describe("a delete whose fsync fails", () => {
  it("a repeated delete is durable once acknowledged, although the file was already gone", async () => {
    const directory = temporaryDirectory();
    const secrets = join(directory, "secrets");
    mkdirSync(secrets);
    const { files, lasting } = forgettingDisk(secrets, undefined, 1);
    const tree = new Tree(files, directory, indexNames());
    await tree.write("secrets", "a", new Uint8Array(1));
    const refusal = await tree.remove("secrets", "a").catch(({ code }: { code: string }) => code);
    expect([refusal, [...lasting]]).to.deep.equal(["EIO", ["a.sealed"]]);
    expect(await tree.remove("secrets", "a")).to.equal(true);
    expect([[...lasting], readdirSync(secrets)]).to.deep.equal([[], []]);
    expect(await tree.remove("secrets", "a")).to.equal(false);
  });
});
