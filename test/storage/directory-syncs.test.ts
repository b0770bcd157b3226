/** Group commit of directory fsyncs: which callers share one, and what a failure means to them. */
import { expect } from "chai";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { DirectorySyncs } from "../../src/storage/files/directories.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";

/** Directories whose fsyncs end when the test says so. */
function heldUpSyncs() {
  const waiting: { readonly end: () => void; readonly fail: () => void }[] = [];
  let opened = 0;
  const open = async (...args: Parameters<FileOperations["open"]>) => {
    const handle = await systemFiles.open(...args);
    opened++;
    const sync = () =>
      new Promise<void>((end, reject) => {
        waiting.push({ end, fail: () => reject(Object.assign(new Error("EIO"), { code: "EIO" })) });
      });
    return Object.assign(handle, { sync });
  };
  const files: FileOperations = { ...systemFiles, open: open as FileOperations["open"] };
  return { syncs: new DirectorySyncs(files), waiting, openings: () => opened };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe("DirectorySyncs", () => {
  it("calls made during a sync share the next one, never the running one", async () => {
    const { syncs, waiting, openings } = heldUpSyncs();
    const directory = temporaryDirectory();
    const holds = await Promise.all([1, 2, 3].map(() => syncs.hold(directory)));
    const ended: number[] = [];
    const all = holds.map((hold, i) => hold.sync().then(() => ended.push(i)));
    await settle();
    expect(waiting.length, "the first alone has begun").to.equal(1);
    waiting[0]?.end();
    await settle();
    expect([ended, waiting.length]).to.deep.equal([[0], 2]);
    waiting[1]?.end();
    await Promise.all(all);
    expect([waiting.length, openings()]).to.deep.equal([2, 1]);
    await Promise.all(holds.map((hold) => hold.release()));
  });

  it("a failed sync fails all waiting calls, and later calls reopen the directory", async () => {
    const { syncs, waiting, openings } = heldUpSyncs();
    const directory = temporaryDirectory();
    const holds = await Promise.all([1, 2].map(() => syncs.hold(directory)));
    const outcomes = Promise.allSettled(holds.map((hold) => hold.sync()));
    await settle();
    waiting[0]?.fail();
    expect((await outcomes).map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    expect(waiting.length, "not tried again").to.equal(1);
    const later = await syncs.hold(directory);
    expect(openings()).to.equal(2);
    const sync = later.sync();
    await settle();
    waiting[1]?.end();
    await sync;
    await Promise.all([later, ...holds].map((hold) => hold.release()));
  });
});
