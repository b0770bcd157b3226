/** Store start: what it makes durable, what it cleans up, what it leaves alone, and read-only disks. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { FileStore } from "../../src/storage/files/file-store.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { failingFiles } from "../support/failing-files.js";
import { recordedFiles } from "../support/recorded-files.js";
import { remove, write } from "../support/store-changes.js";

/** The directory of a vault with the secret a. */
async function madeVault(): Promise<string> {
  const vault = temporaryDirectory();
  const store = await FileStore.open(vault);
  await store.startNewVault(new Uint8Array(10));
  await write(store, "a", new Uint8Array(1));
  await store.close();
  return vault;
}

async function open(vault: string, files = failingFiles().files): Promise<FileStore> {
  const store = await FileStore.open(vault, files);
  later(() => store.close());
  return store;
}

describe("a start", () => {
  it("syncs the directory of current, which a killed process may have replaced without fsync", async () => {
    const vault = await madeVault();
    const { files, steps } = recordedFiles();
    await open(vault, files);
    const read = steps.indexOf(`open ${join(vault, "current")}`);
    expect(read).to.not.equal(-1);
    expect(steps.indexOf(`sync ${vault}`, read)).to.not.equal(-1);
    expect(steps.indexOf(`sync ${join(vault, "gen-1")}`, read), "the name of secrets").to.not.equal(-1);
  });

  it("reports a current that names no vault, instead of a missing header", async () => {
    const vault = await madeVault();
    writeFileSync(join(vault, "current"), "gen-9\n");
    const outcome = await FileStore.open(vault).catch((error: Error) => error.message);
    expect(outcome).to.contain(`${join(vault, "current")} is missing or damaged: run strongroom doctor`);
  });

  it("creates a missing directory of secrets durably, or not at all", async () => {
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

describe("a start beside foreign files", () => {
  const temp = ".tmp-0123456789abcdef";

  for (const name of ["gen-1", "gen-1/secrets"]) {
    it(`refuses a link in place of ${name}, and leaves its target alone`, async () => {
      const vault = await madeVault();
      const elsewhere = join(temporaryDirectory(), "elsewhere");
      renameSync(join(vault, name), elsewhere);
      symlinkSync(elsewhere, join(vault, name));
      writeFileSync(join(elsewhere, temp), "foreign");
      mkdirSync(join(elsewhere, "empty"));
      const before = readdirSync(elsewhere, { recursive: true });
      const outcome = await FileStore.open(vault).catch((error: Error) => error.message);
      expect(outcome).to.equal(
        `${join(vault, name)} is a link or a file: replace it with the directory itself, then start again`,
      );
      expect(readdirSync(elsewhere, { recursive: true })).to.deep.equal(before);
    });
  }

  it("removes nothing with a name that only resembles a leftover", async () => {
    const vault = await madeVault();
    const secrets = join(vault, "gen-1", "secrets");
    for (const name of ["snapshot-of-mine", "restore-notes", "snapshot-0123456789abcdef0"]) {
      mkdirSync(join(vault, name));
      writeFileSync(join(vault, name, "file"), "mine");
    }
    for (const directory of [vault, join(vault, "gen-1"), secrets]) {
      writeFileSync(join(directory, ".tmp-notes"), "mine");
      symlinkSync("a.sealed", join(directory, temp));
    }
    const before = readdirSync(vault, { recursive: true }).sort();
    await open(vault);
    expect(
      readdirSync(vault, { recursive: true })
        .filter((name) => name !== "server.pid")
        .sort(),
    ).to.deep.equal(before);
  });

  it("ignores a file of a path that is not allowed", async () => {
    const vault = await madeVault();
    const secrets = join(vault, "gen-1", "secrets");
    mkdirSync(join(secrets, "%20d"));
    for (const name of ["%20a.sealed", "%20d/x.sealed"]) {
      copyFileSync(join(secrets, "a.sealed"), join(secrets, name));
    }
    const store = await open(vault);
    expect([await store.list("", "", 9), store.foreignFiles]).to.deep.equal([["a"], 2]);
  });

  it("refuses a home without current in which any vault has secrets", async () => {
    const vault = await madeVault();
    renameSync(join(vault, "gen-1"), join(vault, "gen-2"));
    mkdirSync(join(vault, "gen-1", "secrets"), { recursive: true });
    rmSync(join(vault, "current"));
    const outcome = await FileStore.open(vault).catch((error: Error) => error.message);
    expect(outcome).to.contain("current is missing or damaged");
  });

  it("refuses a home without current whose only vault is behind a link", async () => {
    const vault = await madeVault();
    const elsewhere = join(temporaryDirectory(), "elsewhere");
    renameSync(join(vault, "gen-1"), elsewhere);
    symlinkSync(elsewhere, join(vault, "gen-1"));
    rmSync(join(vault, "current"));
    const outcome = await FileStore.open(vault).catch((error: Error) => error.message);
    expect(outcome).to.contain("current is missing or damaged");
  });
});

describe("a start after a crash", () => {
  it("removes the empty directory that a repeated delete created in a secret's place", async () => {
    const vault = await madeVault();
    const file = join(vault, "gen-1", "secrets", "b.sealed");
    mkdirSync(file);
    const store = await open(vault);
    expect([existsSync(file), store.foreignFiles]).to.deep.equal([false, 0]);
    await write(store, "b", new Uint8Array(1));
    expect(await store.list("", "", 9)).to.deep.equal(["a", "b"]);
  });

  it("leaves a directory there that is not empty", async () => {
    const vault = await madeVault();
    const file = join(vault, "gen-1", "secrets", "b.sealed");
    mkdirSync(join(file, "mine"), { recursive: true });
    const store = await open(vault);
    expect([existsSync(join(file, "mine")), store.foreignFiles]).to.deep.equal([true, 1]);
  });
});

describe("new vaults", () => {
  it("a new vault gets an unused number, although an earlier vault was removed by hand", async () => {
    const vault = await madeVault();
    const store = await open(vault);
    await store.startNewVault(new Uint8Array(10));
    await store.startNewVault(new Uint8Array(10));
    rmSync(join(vault, "gen-1"), { recursive: true });
    expect(await store.startNewVault(new Uint8Array(10))).to.equal(join(vault, "gen-3"));
    expect(readdirSync(vault)).to.include.members(["gen-2", "gen-3", "gen-4"]);
  });

  it("a new vault is durable before current names it, and then current is durable", async () => {
    const vault = await madeVault();
    const { files, steps } = recordedFiles();
    const store = await open(vault, files);
    steps.length = 0;
    await store.startNewVault(new Uint8Array(10));
    const next = join(vault, "gen-2");
    const wanted = [
      `rename ${join(next, "header.json")}`,
      `sync ${next}`,
      `sync ${vault}`,
      `rename ${join(vault, "current")}`,
      `sync ${vault}`,
    ];
    let at = -1;
    for (const step of wanted) {
      at = steps.indexOf(step, at + 1);
      expect(at, `${step} in\n${steps.join("\n")}`).to.not.equal(-1);
    }
  });

  it("a new vault is refused after a failed one that left the current vault unknown", async () => {
    const vault = await madeVault();
    const { files, failFrom, repair } = failingFiles();
    const store = await open(vault, files);
    const begin = () => store.startNewVault(new Uint8Array(10)).catch(({ message }: Error) => message);
    let refusal: string | null = "";
    for (let k = 1; k <= 40 && !refusal?.includes("could not be rolled back"); k++) {
      failFrom(k, "EIO");
      refusal = await begin();
      repair();
    }
    expect(refusal).to.contain("could not be rolled back");
    expect(await begin()).to.contain("could not be rolled back");
  });
});

describe("a running store", () => {
  it("recreates a directory durably that was removed under it", async () => {
    const vault = await madeVault();
    const store = await FileStore.open(vault);
    await write(store, "d/e/x", new Uint8Array(1));
    rmSync(join(vault, "gen-1", "secrets", "d"), { recursive: true });
    await write(store, "d/e/y", new Uint8Array(1));
    await store.close();
    const again = await open(vault);
    expect(await again.list("", "", 9)).to.deep.equal(["a", "d/e/y"]);
  });

  for (const change of ["write", "remove"] as const) {
    it(`lists after a refused ${change} what the next start lists, whichever operation failed`, async () => {
      for (let k = 1; k <= 30; k++) {
        const vault = await madeVault();
        const { files, failOnce, repair } = failingFiles();
        const store = await FileStore.open(vault, files);
        failOnce(k, "EIO");
        const done = change === "write" ? write(store, "b", new Uint8Array(1)) : remove(store, "a");
        const outcome = await done.then(
          () => "done",
          () => "refused",
        );
        const occurred = repair();
        const shown = await store.list("", "", 9);
        await store.close();
        const again = await FileStore.open(vault);
        expect(await again.list("", "", 9), `operation ${k}, ${outcome}`).to.deep.equal(shown);
        await again.close();
        if (!occurred) return expect(k).to.be.above(3);
      }
      return expect.fail("every attempt had a fault");
    });
  }

  it("closes all its files", async function () {
    needs(this, existsSync("/proc/self/fd"), "/proc");
    const vault = await madeVault();
    mkdirSync(join(vault, "gen-1", "secrets", "b.sealed"));
    const store = await open(vault);
    await write(store, "c", new Uint8Array(1));
    const used = () => readdirSync("/proc/self/fd").length;
    const before = used();
    for (let n = 0; n < 50; n++) {
      await store.read("a");
      await store.read("b").catch(() => {});
      await write(store, "c", new Uint8Array(1));
      await store.startNewVault(new Uint8Array(10));
      await write(store, "a", new Uint8Array(1));
    }
    expect(used() - before).to.be.below(10);
  });
});

describe("a start on a read-only disk", () => {
  for (const leftover of [
    "snapshot-0123456789abcdef/",
    ".tmp-0123456789abcdef",
    "gen-1/.tmp-0123456789abcdef",
    "gen-1/secrets/.tmp-0123456789abcdef",
    "gen-1/secrets/empty/",
  ]) {
    it(`reads the secrets although ${leftover} cannot be removed`, () => mustReadBeside(leftover));
  }
});

async function mustReadBeside(leftover: string): Promise<void> {
  const vault = await madeVault();
  const path = join(vault, leftover);
  if (leftover.endsWith("/")) mkdirSync(path);
  else writeFileSync(path, "half");
  const { files, fail } = failingFiles();
  for (const step of ["unlink", "rmdir", "sync"] as const) fail(step, "EROFS");
  const store = await open(vault, files);
  expect([await store.list("", "", 9), (await store.read("a"))?.length]).to.deep.equal([["a"], 1]);
}
