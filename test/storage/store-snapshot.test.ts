/** Snapshots during writes that link for them: whole, or refused when a link failed. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { enterHolder, removeHolder } from "../../src/storage/files/claim.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { closedGate, turns } from "../support/latch.js";
import { FakeClock } from "../support/manual-clock.js";
import { remove, write } from "../support/store-changes.js";

/** The link of secret b blocks until the test decides its outcome. */
function heldUpLinks() {
  const gate = closedGate();
  const begun = closedGate();
  const files: FileOperations = {
    ...systemFiles,
    async link(from, to) {
      if (String(from).endsWith("/b.sealed")) {
        begun.open();
        await gate.passed;
      }
      await systemFiles.link(from, to);
    },
    /** Slow, so that the write links first. */
    async mkdir(...args: Parameters<typeof systemFiles.mkdir>) {
      if (String(args[0]).includes("snapshot-")) await turns();
      return systemFiles.mkdir(...args);
    },
  } as FileOperations;
  return { files, begun: begun.passed, end: gate.open, fail: gate.fail };
}

async function openStore(files: FileOperations, clock?: FakeClock): Promise<FileStore> {
  const store = await FileStore.open(temporaryDirectory(), files, () => {}, clock);
  later(() => store.close());
  await store.startNewVault(new Uint8Array(10));
  for (const path of ["a", "b", "c"]) await write(store, path, Buffer.from(`old ${path}`) as Uint8Array<ArrayBuffer>);
  return store;
}

async function snapshotAndWrite() {
  const links = heldUpLinks();
  const store = await openStore(links.files);
  let ended = false;
  const snapshot = store.snapshot().finally(() => {
    ended = true;
  });
  const written = write(store, "b", Buffer.from("new b") as Uint8Array<ArrayBuffer>);
  await links.begun;
  await turns();
  return { links, store, snapshot, written, ended: () => ended };
}

describe("foreign files in place of a secret", () => {
  for (const [kind, put] of [
    ["directory", (at: string) => mkdirSync(at)],
    ["link", (at: string) => symlinkSync("/etc/hostname", at)],
  ] as const) {
    it(`a ${kind} in place of a secret's file refuses a snapshot with a message that names doctor`, async () => {
      const store = await openStore(systemFiles);
      const file = join(store.vaultPath, "gen-1", "secrets", "b.sealed");
      rmSync(file);
      put(file);
      const { code, message } = await store.snapshot().catch((error) => error);
      expect([code, message]).to.deep.equal([
        "UNAVAILABLE",
        `${file} is not a plain file: run strongroom doctor to see what it is, and move it away`,
      ]);
      expect(readdirSync(store.vaultPath).filter((name) => name.startsWith("snapshot-"))).to.deep.equal([]);
    });
  }

  it("a delete of a directory in place of a secret's file gets INTEGRITY and a message that names doctor", async () => {
    const store = await openStore(systemFiles);
    const file = join(store.vaultPath, "gen-1", "secrets", "b.sealed");
    rmSync(file);
    mkdirSync(file);
    const { code, message } = await remove(store, "b").catch((error) => error);
    expect([code, message]).to.deep.equal([
      "INTEGRITY",
      "the stored secret at b is a directory: run strongroom doctor to see what it is, and move it away",
    ]);
  });
});

describe("snapshots during writes", () => {
  it("a snapshot waits for the link that a write makes for it", async () => {
    const { links, snapshot, written, ended } = await snapshotAndWrite();
    expect(ended()).to.equal(false);
    links.end();
    const { directory, count } = await snapshot;
    expect([count, readdirSync(join(directory, "secrets")).sort()]).to.deep.equal([
      3,
      ["a.sealed", "b.sealed", "c.sealed"],
    ]);
    expect(readFileSync(join(directory, "secrets", "b.sealed"), "utf8")).to.equal("old b");
    await written;
  });

  it("a snapshot whose link by a write fails is refused and removed, and the write succeeds", async () => {
    const { links, store, snapshot, written } = await snapshotAndWrite();
    links.fail();
    const outcome = await snapshot.then(
      ({ directory }) => directory,
      ({ code }: { code: string }) => code,
    );
    expect(outcome).to.equal("UNAVAILABLE");
    await written;
    expect(Buffer.from((await store.read("b")) ?? []).toString()).to.equal("new b");
    expect(readdirSync(store.vaultPath).filter((name) => name.startsWith("snapshot-"))).to.deep.equal([]);
    expect(existsSync(join(store.vaultPath, "gen-1", "secrets", "b.sealed"))).to.equal(true);
  });
});

describe("snapshots", () => {
  it("a snapshot contains a secret that is deleted while it is taken", async () => {
    const links = heldUpLinks();
    const store = await openStore(links.files);
    const snapshot = store.snapshot();
    await links.begun;
    const removals = Promise.all([remove(store, "b"), remove(store, "c")]);
    await turns();
    expect(existsSync(join(store.vaultPath, "gen-1", "secrets", "b.sealed")), "before its link is there").to.equal(
      true,
    );
    links.end();
    const { directory, count } = await snapshot;
    expect(await removals).to.deep.equal([true, true]);
    expect([count, readdirSync(join(directory, "secrets")).sort()]).to.deep.equal([
      3,
      ["a.sealed", "b.sealed", "c.sealed"],
    ]);
  });

  it("a snapshot omits a secret deleted at the same moment", async () => {
    const [gone, allowed] = [closedGate(), closedGate()];
    const unlink: FileOperations["unlink"] = async (path) => {
      await systemFiles.unlink(path);
      gone.open();
      await allowed.passed;
    };
    const store = await openStore({ ...systemFiles, unlink });
    const removal = remove(store, "b");
    await gone.passed;
    const { directory, count } = await store.snapshot();
    expect([count, readdirSync(join(directory, "secrets"))]).to.deep.equal([2, ["a.sealed", "c.sealed"]]);
    allowed.open();
    expect(await removal).to.equal(true);
  });

  it("a snapshot is replaced by the next one, and removed after an hour", async () => {
    const clock = new FakeClock();
    const store = await openStore(systemFiles, clock);
    const first = await store.snapshot();
    const second = await store.snapshot();
    expect([existsSync(first.directory), existsSync(second.directory)]).to.deep.equal([false, true]);
    clock.advance(3600 * 1000 - 1);
    expect(existsSync(second.directory)).to.equal(true);
    clock.advance(1);
    while (existsSync(second.directory)) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await store.snapshot()).count).to.equal(3);
  });

  it("a snapshot that a backup reads is kept, even after an hour", async () => {
    const clock = new FakeClock();
    const store = await openStore(systemFiles, clock);
    const { directory } = await store.snapshot();
    await enterHolder(directory);
    clock.advance(3600 * 1000);
    const { code, message } = await store.snapshot().catch((error) => error);
    expect([code, existsSync(directory)]).to.deep.equal(["UNAVAILABLE", true]);
    expect(message).to.contain(`pid ${process.pid}`);
    await removeHolder(directory);
    clock.advance(3600 * 1000);
    while (existsSync(directory)) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it("a second snapshot is refused while one is being taken", async () => {
    const links = heldUpLinks();
    const store = await openStore(links.files);
    const first = store.snapshot();
    await links.begun;
    const { code } = await store.snapshot().catch((error) => error);
    expect(code).to.equal("UNAVAILABLE");
    links.end();
    expect((await first).count).to.equal(3);
  });

  for (const code of ["EPERM", "EMLINK", "EXDEV", "ENOTSUP"]) {
    it(`a snapshot copies files where hard links are impossible (${code})`, async () => {
      const link: FileOperations["link"] = () => Promise.reject(Object.assign(new Error(code), { code }));
      const store = await openStore({ ...systemFiles, link });
      const { directory, count } = await store.snapshot();
      expect(count).to.equal(3);
      await write(store, "a", Buffer.from("new a") as Uint8Array<ArrayBuffer>);
      expect(readFileSync(join(directory, "secrets", "a.sealed"), "utf8")).to.equal("old a");
    });
  }
});
