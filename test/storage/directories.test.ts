/** Directories that puts make: none counts as made while the fsync of its name may have been lost. */
import { constants, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { BlobTree } from "../../src/storage/blob-tree.js";
import { type FileOperations, systemFiles } from "../../src/storage/durable.js";
import { temporaryDirectory } from "../support/clean-up.js";
import { closedGate } from "../support/gate.js";

/** The first fsync of `directory` fails once a directory in it was made; only who comes after it looks at what was made. */
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
    await new Promise((resolve) => setTimeout(resolve, 20));
    return systemFiles.lstat(path);
  };
  return { ...systemFiles, open: open as FileOperations["open"], lstat: lstat as FileOperations["lstat"] };
}

describe("a directory whose parent's fsync fails after its name was made", () => {
  it("is not taken for made: the put is refused though a later fsync would report success", async () => {
    const directory = temporaryDirectory();
    const secrets = join(directory, "secrets");
    mkdirSync(secrets);
    const header = new Uint8Array(1);
    const tree = new BlobTree(failingOnce(secrets), { directory, secrets, header }, []);
    const puts = ["a/x", "beside"].map((path) => tree.write(path, new Uint8Array(1)));
    const outcomes = await Promise.allSettled(puts);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
  });
});
