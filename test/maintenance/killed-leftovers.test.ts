/** Leftovers of a kill: starts, stops and repeated commands remove what no vault needs, and doctor is content. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { writeNewFile } from "../../src/cli/kit/output/new-file.js";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { migrate } from "../../src/maintenance/migrate.js";
import { enterHolder } from "../../src/storage/files/claim.js";
import { FileStore } from "../../src/storage/files/file-store.js";
import { makeCurrent } from "../../src/storage/files/generations.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { realScryptCost, startTestServer } from "../../tools/rig/server.js";
import { mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";
import { headerOfVersion1, headerOfVersion2 } from "../vectors/frozen-headers.js";
import { inspect, makeHome } from "./doctor-homes.js";

const headers = [headerOfVersion1, headerOfVersion2].map(({ text }) => new Uint8Array(Buffer.from(text)));
const [first, second] = headers as [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>];

/** Copies the home before each change of a name, as a kill there would leave it. */
function copyingFiles(home: string) {
  const copies: string[] = [];
  const copying = <T extends unknown[], R>(work: (...args: T) => R) =>
    ((...args: T) => {
      const copy = join(temporaryDirectory(), "home");
      copyTree(home, copy);
      copies.push(copy);
      return work(...args);
    }) as (...args: T) => R;
  const { mkdir, rename, unlink } = systemFiles;
  const files = { ...systemFiles, rename: copying(rename), unlink: copying(unlink) };
  return { files: { ...files, mkdir: copying(mkdir as never) } as FileOperations, copies };
}

function emptyHome(): string {
  const home = join(temporaryDirectory(), "home");
  mkdirSync(join(home, "vault"), { recursive: true, mode: 0o700 });
  return home;
}

async function openedAndClosed(home: string, files = systemFiles, work = async (_store: FileStore) => {}) {
  const store = await FileStore.open(join(home, "vault"), files);
  await work(store).finally(() => store.close());
}

/** Nothing in the home is a finding. */
async function mustBeClean(home: string, note: string): Promise<void> {
  const { findings } = await inspect(home);
  expect(findings, note).to.deep.equal([]);
  for (const name of readdirSync(join(home, "vault"))) expect(name, note).to.match(/^(?:current|server\.pid|gen-\d+)$/);
}

/** Migrates a vault with one secret into the home. */
async function migrateInto(home: string, files = systemFiles): Promise<void> {
  const source = emptyHome();
  await openedAndClosed(source, systemFiles, async (from) => {
    await from.startNewVault(first);
    await from.writeDocument("tokens", new Uint8Array(Buffer.from(tokens)), null);
    const checks = { isUsable: async () => true, refuseServed: async () => {} };
    const watch = { tick: () => {}, signal: new AbortController().signal };
    await openedAndClosed(home, files, async (to) => void (await migrate(from, to, checks, watch)));
  });
}

const tokens = '{"format":"strongroom tokens","version":1,"tokens":[],"ended":[]}\n';

/** A rename that takes effect, and then reports an error. */
const lostReply: FileOperations = {
  ...systemFiles,
  rename: async (from, to) => {
    await systemFiles.rename(from, to);
    throw Object.assign(new Error("EIO"), { code: "EIO", syscall: "rename" });
  },
};

describe("leftovers of a kill", () => {
  it("a migration killed at any step is finished by the same migration, and nothing is left", async () => {
    const home = emptyHome();
    const { files, copies } = copyingFiles(home);
    await migrateInto(home, files);
    expect(copies.length).to.be.above(5);
    for (const [i, copy] of copies.entries()) {
      await migrateInto(copy);
      await mustBeClean(copy, `step ${i}`);
      expect(
        readdirSync(join(copy, "vault")).filter((name) => name.startsWith("gen-")),
        `step ${i}`,
      ).to.have.length(1);
    }
  });

  it("leftovers of a forced init killed at any step are removed by the next start, which keeps the vault in use", async () => {
    const home = emptyHome();
    const { files, copies } = copyingFiles(home);
    await openedAndClosed(home, files, async (store) => {
      await store.startNewVault(first);
      copies.length = 0;
      await store.startNewVault(second, [{ name: "tokens", bytes: new Uint8Array(Buffer.from(tokens)) }]);
    });
    expect(copies.length).to.be.above(4);
    for (const [i, copy] of copies.entries()) {
      let header = "";
      await openedAndClosed(copy, systemFiles, async (store) => {
        header = Buffer.from((await store.header()) ?? []).toString();
      });
      expect(header, `step ${i}`).to.be.oneOf([headerOfVersion1.text, headerOfVersion2.text]);
      expect(readFileSync(join(copy, "vault", "gen-1", "header.json"), "utf8")).to.equal(headerOfVersion1.text);
      await mustBeClean(copy, `step ${i}`);
    }
  });

  it("leftovers of a killed restore are removed by its repetition, and the restored vault is in use", async () => {
    const home = await makeHome();
    const archive = join(temporaryDirectory(), "backup.tar");
    expect((await run(["backup", archive], { STRONGROOM_HOME: home })).code).to.equal(0);
    const to = emptyHome();
    const killed = join(to, "vault", "restore-0123456789abcdef");
    mkdirSync(join(killed, "secrets"), { recursive: true, mode: 0o700 });
    writeFileSync(join(killed, "secrets", "a.sealed"), "half", { mode: 0o600 });
    expect((await run(["restore", archive, "--home", to], { STRONGROOM_HOME: to })).code).to.equal(0);
    await mustBeClean(to, "after the restore");
    expect((await inspect(to)).json["secrets"]).to.equal(4);
  });

  it("a stop removes a snapshot that no backup reads, and keeps one that is being read", async () => {
    for (const isRead of [false, true]) {
      const server = await startTestServer(realScryptCost);
      await mustInit(server);
      await mustPut(server, "a", "v");
      const { directory } = mustSucceed(await send(server, { method: "POST", path: "/v1/snapshot", body: "" }));
      if (isRead) await enterHolder(String(directory));
      await server.stop();
      expect(existsSync(String(directory)), `read: ${isRead}`).to.equal(isRead);
      if (!isRead) await mustBeClean(server.home, "after the stop");
    }
  });
});

describe("renames that report an error although they took effect", () => {
  it("a command's output file is replaced although rename reports an error after its effect", async () => {
    const output = join(temporaryDirectory(), "out");
    writeFileSync(output, "old");
    await writeNewFile(["new"], output, true, lostReply);
    expect(readFileSync(output, "utf8")).to.equal("new");
    expect(readdirSync(dirname(output))).to.deep.equal(["out"]);
  });

  it("a command's output file stays when its rename fails without effect", async () => {
    const output = join(temporaryDirectory(), "out");
    writeFileSync(output, "old");
    const rename = async () => {
      throw Object.assign(new Error("EIO"), { code: "EIO", syscall: "rename" });
    };
    await writeNewFile(["new"], output, true, { ...systemFiles, rename }).then(
      () => expect.fail("it is written"),
      (error: unknown) => expect(String(error)).to.contain("cannot be written"),
    );
    expect(readFileSync(output, "utf8")).to.equal("old");
    expect(readdirSync(dirname(output))).to.deep.equal(["out"]);
  });

  it("a restored audit log is in place although rename reports an error after its effect", async () => {
    const vault = join(emptyHome(), "vault");
    const restored = join(vault, "restore-0123456789abcdef");
    for (const directory of ["secrets", "audit"])
      mkdirSync(join(restored, directory), { recursive: true, mode: 0o700 });
    writeFileSync(join(restored, "audit", "audit-000000000001.jsonl"), "");
    await makeCurrent(lostReply, vault, restored);
    expect(readdirSync(join(vault, "..", "audit"))).to.deep.equal(["audit-000000000001.jsonl"]);
    expect(readdirSync(join(vault, "gen-1"))).to.deep.equal(["secrets"]);
  });
});
