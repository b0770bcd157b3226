/** What a start makes sure of before anything is acknowledged. */
import { existsSync, rmSync } from "node:fs";
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
