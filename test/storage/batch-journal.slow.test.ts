/** Journal of a batch: replay after a crash at any step, durability before anything is applied, damage, read-only disks. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type FileOperations, OpenFile, systemFiles } from "../../src/files/durable.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import { decodeJournal, encodeJournal } from "../../src/storage/files/journal.js";
import type { Change } from "../../src/storage/secret-store.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { lightFiles } from "../../tools/rig/light-files.js";
import type { Bytes } from "../../workers/protocol.js";
import { everyDamage } from "../support/damage.js";
import { failingFiles } from "../support/failing-files.js";
import { closedGate } from "../support/latch.js";
import { recordedFiles } from "../support/recorded-files.js";
import { write } from "../support/store-changes.js";

const old = { a: "old", "b/c": "old" };
const changes: readonly Change[] = [
  { path: "a", blob: makeBlob("new") },
  { path: "b/c", blob: null },
  { path: "d/e/f", blob: makeBlob("new") },
  { space: "trash", path: "b/c", blob: makeBlob("old") },
];
const journaled = changes.map(({ space = "secrets", path, blob }) => ({ space, path, blob }));
const inSecrets = journaled.filter(({ space }) => space === "secrets");
const changed = { a: "new", "d/e/f": "new", "trash b/c": "old" };

function makeBlob(text: string): Bytes {
  return new Uint8Array(Buffer.from(text));
}

async function open(vault: string, files: FileOperations = lightFiles): Promise<FileStore> {
  const store = await FileStore.open(vault, files);
  later(() => store.close());
  return store;
}

async function madeVault(): Promise<string> {
  const vault = temporaryDirectory();
  const store = await FileStore.open(vault, lightFiles);
  await store.startNewVault(new Uint8Array(10));
  for (const [path, text] of Object.entries(old)) await write(store, path, makeBlob(text));
  await store.close();
  return vault;
}

async function readContents(store: FileStore): Promise<Record<string, string>> {
  const contents: Record<string, string> = {};
  for (const path of await store.list("", "", 99))
    contents[path] = Buffer.from((await store.read(path)) ?? []).toString();
  for (const path of await store.list("", "", 99, "trash"))
    contents[`trash ${path}`] = Buffer.from((await store.read(path, undefined, "trash")) ?? []).toString();
  return contents;
}

/** Copies the vault's files before each step that changes them, as a kill there leaves them. */
function recordPictures(vault: string) {
  const pictures: string[] = [];
  const before = <A extends unknown[], R>(step: (...args: A) => Promise<R>) => {
    return (...args: A): Promise<R> => {
      const picture = join(temporaryDirectory(), "vault");
      copyTree(vault, picture);
      pictures.push(picture);
      return step(...args);
    };
  };
  const { rename, unlink, mkdir, rmdir } = systemFiles;
  const files = { ...lightFiles, rename: before(rename), unlink: before(unlink), rmdir: before(rmdir) };
  return { pictures, files: { ...files, mkdir: before(mkdir as (path: string) => Promise<void>) } as FileOperations };
}

describe("batches on files", () => {
  it("a batch is all or nothing after a kill at any step, also when its replay is killed", async () => {
    const vault = await madeVault();
    const { pictures, files } = recordPictures(vault);
    const store = await FileStore.open(vault, files);
    await store.commit(changes);
    await store.close();
    expect(pictures.length).to.be.at.least(8);
    const seen = new Set<object>();
    for (const picture of pictures) {
      const { pictures: replayPictures, files: recorded } = recordPictures(picture);
      const replayed = await readContents(await open(picture, recorded));
      expect(replayed).to.be.deep.oneOf([old, changed]);
      seen.add("b/c" in replayed ? old : changed);
      for (const again of replayPictures) expect(await readContents(await open(again))).to.deep.equal(replayed);
      expect(existsSync(join(picture, "gen-1", "journal-1"))).to.equal(false);
    }
    expect([...seen]).to.deep.equal([old, changed]);
  }).timeout(240_000);

  it("a kill at any step of a batch keeps all batches committed before it", async () => {
    const vault = await madeVault();
    const { pictures, files } = recordPictures(vault);
    const store = await FileStore.open(vault, files);
    const states: Record<string, string>[] = [old];
    const committed: number[] = [];
    const history: readonly (readonly (readonly [string, string | null])[])[] = [
      [
        ["a", "1"],
        ["b/c", null],
      ],
      [
        ["a", null],
        ["b/c", "2"],
        ["d", "2"],
      ],
      [
        ["d", null],
        ["a", "3"],
      ],
      [["a", "4"]], // single changes of paths that wait
      [["b/c", null]],
      [
        ["b/c", "5"],
        ["b/d", "5"],
      ],
    ];
    for (const some of history) {
      const state = { ...states.at(-1) };
      for (const [path, text] of some) {
        if (text === null) delete state[path];
        else state[path] = text;
      }
      states.push(state);
      await store.commit(some.map(([path, text]) => ({ path, blob: text === null ? null : makeBlob(text) })));
      expect(await readContents(store)).to.deep.equal(state);
      committed.push(pictures.length);
    }
    await store.close();
    expect(await readContents(await open(vault))).to.deep.equal(states.at(-1));
    for (const [at, picture] of pictures.entries()) {
      const done = committed.filter((count) => count <= at).length;
      const found = await readContents(await open(picture));
      expect(found, `picture ${at}`).to.be.deep.oneOf(states.slice(done, done + 2));
    }
  }).timeout(240_000);

  it("a batch is durable before it is applied, and its journal stays until then", async () => {
    const vault = await madeVault();
    const { files, steps } = recordedFiles();
    const unlink: FileOperations["unlink"] = async (path) => {
      steps.push(`unlink ${path}`);
      await systemFiles.unlink(path);
    };
    const store = await open(vault, { ...files, unlink });
    steps.length = 0;
    await store.commit(changes);
    await store.close();
    const generation = join(vault, "gen-1");
    const wanted = [
      `rename ${join(generation, "journal-1")}`,
      `sync ${generation}`,
      `rename ${join(generation, "secrets", "d", "e", "f.sealed")}`,
      `sync ${join(generation, "secrets", "d", "e")}`,
      `unlink ${join(generation, "journal-1")}`,
      `sync ${generation}`,
    ];
    let at = -1;
    for (const step of wanted) {
      at = steps.indexOf(step, at + 1);
      expect(at, `${step} in\n${steps.join("\n")}`).to.not.equal(-1);
    }
    const early = steps.slice(0, steps.indexOf(`sync ${generation}`)).filter((step) => step.includes("/secrets/"));
    expect(early).to.deep.equal([]);
  });

  it("a second delete finds no secret while a batch that removes it is being applied", async () => {
    const [reached, released] = [closedGate(), closedGate()];
    const openHeld: FileOperations["open"] = async (path, ...more) => {
      const file = await systemFiles.open(path, ...more);
      const sync = async () => {
        reached.open();
        await released.passed;
        await OpenFile.prototype.sync.call(file);
      };
      return path.endsWith("secrets") ? Object.assign(file, { sync }) : file;
    };
    const store = await open(await madeVault(), { ...lightFiles, open: openHeld });
    await store.commit(inSecrets.map((change) => ({ ...change, blob: null })));
    await reached.passed; // its file is gone, and that is not durable yet
    const again = await store.commit([{ path: "a", blob: null, expected: "present" }]);
    released.open();
    expect(again).to.deep.equal({ committed: false, refused: 0 });
  });

  it("a batch of one change writes no journal", async () => {
    const { files, steps } = recordedFiles();
    const store = await open(await madeVault(), files);
    await store.commit(changes.slice(0, 1));
    expect(steps.filter((step) => step.includes("journal"))).to.deep.equal([]);
  });

  it("a read-only disk serves a batch from its journal and refuses changes of its paths", async () => {
    const vault = await madeVault();
    writeFileSync(join(vault, "gen-1", "journal"), encodeJournal(journaled), { mode: 0o600 });
    const { files, fail, repair } = failingFiles();
    for (const step of ["writeFile", "unlink", "rmdir", "rename"] as const) fail(step, "EROFS");
    const store = await open(vault, files);
    expect(await readContents(store)).to.deep.equal(changed);
    const { code } = await write(store, "a", makeBlob("later")).catch((error) => error);
    expect(code).to.equal("UNAVAILABLE");
    repair();
    await write(store, "a", makeBlob("later"));
    await store.close();
    expect(await readContents(await open(vault))).to.deep.equal({ ...changed, a: "later" });
  });
});

describe("the journal of a batch", () => {
  const journal = encodeJournal(inSecrets);

  it("a damaged journal stops the start with a message that names the file, which stays", async () => {
    const vault = await madeVault();
    const file = join(vault, "gen-1", "journal");
    writeFileSync(file, journal.subarray(1), { mode: 0o600 });
    const outcome = await FileStore.open(vault, lightFiles).catch((error: Error) => error.message);
    expect(outcome).to.contain(`${file}, which completes a batch of changes, is damaged`);
    expect(readFileSync(file)).to.deep.equal(journal.subarray(1));
  });

  it("every flipped bit and every cut of a journal is detected", () => {
    for (const wanted of [inSecrets, journaled]) {
      const encoded = encodeJournal(wanted);
      expect(decodeJournal(new Uint8Array(encoded))).to.deep.equal(wanted);
      for (const [what, bytes] of everyDamage(encoded)) {
        expect(decodeJournal(new Uint8Array(bytes)), what).to.equal(null);
      }
    }
  });

  it("a journal of secrets alone has the form that earlier versions wrote and replay", () => {
    expect(encodeJournal([{ space: "secrets", path: "a", blob: null }]).toString("latin1", 0, 9)).to.equal(
      "SRVJ\u0001\0\u0001a\0",
    );
  });
});
