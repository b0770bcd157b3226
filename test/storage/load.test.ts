/** What a start makes sure of before anything is acknowledged, and what it leaves undone on a disk that is read-only. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { FileStore } from "../../src/storage/file-store.js";
import { later, temporaryDirectory } from "../support/clean-up.js";
import { failingFiles } from "../support/failing-files.js";
import { recordedFiles } from "../support/recorded-files.js";

/** The directory of a vault with the secret a. */
async function madeVault(): Promise<string> {
  const vault = temporaryDirectory();
  const store = await FileStore.open(vault);
  await store.startNewVault(new Uint8Array(10));
  await store.write("a", new Uint8Array(1));
  await store.close();
  return vault;
}

async function open(vault: string, files = failingFiles().files): Promise<FileStore> {
  const store = await FileStore.open(vault, files);
  later(() => store.close());
  return store;
}

describe("a start", () => {
  it("makes last which vault is in force: who replaced current may have been killed before the fsync", async () => {
    const vault = await madeVault();
    const { files, steps } = recordedFiles();
    await open(vault, files);
    const read = steps.indexOf(`open ${join(vault, "current")}`);
    expect(read).to.not.equal(-1);
    expect(steps.indexOf(`sync ${vault}`, read)).to.not.equal(-1);
    expect(steps.indexOf(`sync ${join(vault, "gen-1")}`, read), "the name of secrets").to.not.equal(-1);
  });

  it("that finds a name of no vault in current says so, and does not ask for that vault's header", async () => {
    const vault = await madeVault();
    writeFileSync(join(vault, "current"), "gen-9\n");
    const outcome = await FileStore.open(vault).catch((error: Error) => error.message);
    expect(outcome).to.contain(`${join(vault, "current")} is missing or damaged: strongroom doctor`);
  });

  it("makes a missing directory of secrets so that it lasts, or not at all", async () => {
    const vault = await madeVault();
    const generation = join(vault, "gen-1");
    const secrets = join(generation, "secrets");
    rmSync(secrets, { recursive: true });
    const { files, steps } = recordedFiles();
    let failing = true;
    const open = async (...args: Parameters<typeof files.open>) => {
      if (failing && args[0] === generation) throw Object.assign(new Error("EIO"), { code: "EIO" });
      return files.open(...args);
    };
    const outcome = await FileStore.open(vault, { ...files, open }).catch(({ code }: { code: string }) => code);
    expect([outcome, existsSync(secrets)]).to.deep.equal(["EIO", false]);
    failing = false;
    steps.length = 0;
    const store = await FileStore.open(vault, { ...files, open });
    await store.close();
    expect(steps.indexOf(`sync ${generation}`, steps.indexOf(`mkdir ${secrets}`))).to.not.equal(-1);
  });
});

describe("a start on a disk that is read-only", () => {
  for (const leftover of [
    "snapshot-0123456789abcdef/",
    ".tmp-0123456789abcdef",
    "gen-1/.tmp-0123456789abcdef",
    "gen-1/secrets/.tmp-0123456789abcdef",
    "gen-1/secrets/empty/",
  ]) {
    it(`reads the secrets though ${leftover} cannot be removed`, () => mustReadBeside(leftover));
  }
});

async function mustReadBeside(leftover: string): Promise<void> {
  const vault = await madeVault();
  const path = join(vault, leftover);
  if (leftover.endsWith("/")) mkdirSync(path);
  else writeFileSync(path, "half");
  const { files, fail } = failingFiles();
  for (const step of ["unlink", "rmdir", "rm", "sync"] as const) fail(step, "EROFS");
  const store = await open(vault, files);
  expect([store.list("", "", 9), (await store.read("a"))?.length]).to.deep.equal([["a"], 1]);
}
