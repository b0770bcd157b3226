/** A snapshot while writes link for it: whole when it is there, refused when one of its links failed. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import { later, temporaryDirectory } from "../support/clean-up.js";
import { closedGate } from "../support/latch.js";

/** A link of the secret b waits until the test says how it ends. */
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
    /** Slow enough that the write is the first to link. */
    async mkdir(...args: Parameters<typeof systemFiles.mkdir>) {
      if (String(args[0]).includes("snapshot-")) await new Promise((resolve) => setTimeout(resolve, 30));
      return systemFiles.mkdir(...args);
    },
  } as FileOperations;
  return { files, begun: begun.passed, end: gate.open, fail: gate.fail };
}

async function openStore(files: FileOperations): Promise<FileStore> {
  const store = await FileStore.open(temporaryDirectory(), files);
  later(() => store.close());
  await store.startNewVault(new Uint8Array(10));
  for (const path of ["a", "b", "c"]) await store.write(path, Buffer.from(`old ${path}`) as Uint8Array<ArrayBuffer>);
  return store;
}

async function snapshotAndWrite() {
  const links = heldUpLinks();
  const store = await openStore(links.files);
  let ended = false;
  const snapshot = store.snapshot().finally(() => {
    ended = true;
  });
  const write = store.write("b", Buffer.from("new b") as Uint8Array<ArrayBuffer>);
  await links.begun;
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { links, store, snapshot, write, ended: () => ended };
}

describe("a directory or a link in a secret's place", () => {
  for (const [kind, put] of [
    ["directory", (at: string) => mkdirSync(at)],
    ["link", (at: string) => symlinkSync("/etc/hostname", at)],
  ] as const) {
    it(`has a snapshot refused with a message that names doctor (${kind})`, async () => {
      const store = await openStore(systemFiles);
      const file = join(store.vaultPath, "gen-1", "secrets", "b.sealed");
      rmSync(file);
      put(file);
      const { code, message } = await store.snapshot().catch((error) => error);
      expect([code, message]).to.deep.equal([
        "UNAVAILABLE",
        `${file} is not a plain file: strongroom doctor tells what is there; move it away`,
      ]);
      expect(readdirSync(store.vaultPath).filter((name) => name.startsWith("snapshot-"))).to.deep.equal([]);
    });
  }

  it("is not deleted: INTEGRITY, and the message names doctor", async () => {
    const store = await openStore(systemFiles);
    const file = join(store.vaultPath, "gen-1", "secrets", "b.sealed");
    rmSync(file);
    mkdirSync(file);
    const { code, message } = await store.remove("b").catch((error) => error);
    expect([code, message]).to.deep.equal([
      "INTEGRITY",
      "the stored secret at b is a directory: strongroom doctor tells what is there; move it away",
    ]);
  });
});

describe("a snapshot for which a write links a secret", () => {
  it("is not there before that link is", async () => {
    const { links, snapshot, write, ended } = await snapshotAndWrite();
    expect(ended()).to.equal(false);
    links.end();
    const { directory, count } = await snapshot;
    expect([count, readdirSync(join(directory, "secrets")).sort()]).to.deep.equal([
      3,
      ["a.sealed", "b.sealed", "c.sealed"],
    ]);
    expect(readFileSync(join(directory, "secrets", "b.sealed"), "utf8")).to.equal("old b");
    await write;
  });

  it("is refused, and nothing of it stays, when that link fails; the write succeeds", async () => {
    const { links, store, snapshot, write } = await snapshotAndWrite();
    links.fail();
    const outcome = await snapshot.then(
      ({ directory }) => directory,
      ({ code }: { code: string }) => code,
    );
    expect(outcome).to.equal("UNAVAILABLE");
    await write;
    expect(Buffer.from((await store.read("b")) ?? []).toString()).to.equal("new b");
    expect(readdirSync(store.vaultPath).filter((name) => name.startsWith("snapshot-"))).to.deep.equal([]);
    expect(existsSync(join(store.vaultPath, "gen-1", "secrets", "b.sealed"))).to.equal(true);
  });
});

describe("a snapshot", () => {
  it("has a secret that is deleted while it is taken", async () => {
    const links = heldUpLinks();
    const store = await openStore(links.files);
    const snapshot = store.snapshot();
    await links.begun;
    const removals = Promise.all([store.remove("b"), store.remove("c")]);
    await new Promise((resolve) => setTimeout(resolve, 50));
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

  it("leaves out what was deleted at its very moment", async () => {
    const [gone, told] = [closedGate(), closedGate()];
    const unlink: FileOperations["unlink"] = async (path) => {
      await systemFiles.unlink(path);
      gone.open();
      await told.passed;
    };
    const store = await openStore({ ...systemFiles, unlink });
    const removal = store.remove("b");
    await gone.passed;
    const { directory, count } = await store.snapshot();
    expect([count, readdirSync(join(directory, "secrets"))]).to.deep.equal([2, ["a.sealed", "c.sealed"]]);
    told.open();
    expect(await removal).to.equal(true);
  });

  for (const code of ["EPERM", "EMLINK", "EXDEV", "ENOTSUP"]) {
    it(`is of copies where there can be no links (${code})`, async () => {
      const link: FileOperations["link"] = () => Promise.reject(Object.assign(new Error(code), { code }));
      const store = await openStore({ ...systemFiles, link });
      const { directory, count } = await store.snapshot();
      expect(count).to.equal(3);
      await store.write("a", Buffer.from("new a") as Uint8Array<ArrayBuffer>);
      expect(readFileSync(join(directory, "secrets", "a.sealed"), "utf8")).to.equal("old a");
    });
  }
});
