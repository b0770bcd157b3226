/** Keys and the passphrase at the command line, from the recovery drill to shares and the desktop's keyring. */
import { createHash } from "node:crypto";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { passphrase, startLocalServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustLock, mustPut, mustStatus } from "../../tools/rig/test-client.js";
import { hasPython, type Reaction, runOnTerminal, runProgramOnTerminal } from "../support/pseudo-terminal.js";
import { must, strongroom } from "./command-rows.js";

const keyForm = /^SRK(?:-[0-9A-HJKMNP-TV-Z]{5}){13}\n$/;
const piped = ["--passphrase-file", "-"];

async function filledServer(): Promise<TestServer> {
  const server = await startLocalServer();
  await mustInit(server);
  await mustPut(server, "app/key", "s3cr3t");
  return server;
}

const on = ({ home }: TestServer) => ({ STRONGROOM_HOME: home });

describe("keys at the command line", () => {
  it("a forgotten passphrase: init, key create, unlock by the key, passphrase change", async () => {
    const server = await startLocalServer();
    await must(on(server), ["init", ...piped], "soon forgotten");
    await mustPut(server, "app/key", "s3cr3t");
    const key = await must(on(server), ["key", "create", ...piped], "soon forgotten");
    expect(key).to.match(keyForm);
    await must(on(server), ["lock"]);
    await must(on(server), ["unlock", ...piped], key.toLowerCase().replaceAll("-", ""));
    const file = join(temporaryDirectory(), "new");
    writeFileSync(file, "remembered from now on\n", { mode: 0o600 });
    const said = await must(on(server), ["passphrase", "change", ...piped, "--new-passphrase-file", file], key);
    expect(said).to.contain("the passphrase is changed");
    await must(on(server), ["lock"]);
    expect((await strongroom(on(server), ["unlock", ...piped], "soon forgotten")).code).to.equal(9);
    await must(on(server), ["unlock", ...piped], "remembered from now on");
    expect((await mustGet(server, "app/key"))["value"]).to.equal("s3cr3t");
  });

  it("keys are created, listed and deleted, and a deleted one no longer unlocks", async () => {
    const server = await filledServer();
    const file = join(temporaryDirectory(), "key");
    await must(on(server), ["key", "create", "--label", "laptop", "-o", file, ...piped], passphrase);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const twice = await strongroom(on(server), ["key", "create", "--label", "laptop", ...piped], passphrase);
    expect(twice.code).to.equal(7);
    expect(twice.stderr).to.contain(
      'a key named "laptop" already exists: choose another with --label, or delete it with  strongroom key rm laptop\n',
    );
    expect(await must(on(server), ["key", "ls"])).to.match(/^passphrase {2}20.*\nlaptop {6}20.*\n$/);
    const { keys } = JSON.parse(await must(on(server), ["key", "ls", "--json"])) as { keys: { label: string }[] };
    expect(keys.map(({ label }) => label)).to.deep.equal(["passphrase", "laptop"]);
    expect((await strongroom(on(server), ["key", "rm", "desk"])).stderr).to.contain('there are "passphrase", "laptop"');
    await must(on(server), ["key", "rm", "laptop", "--yes"]);
    expect((await strongroom(on(server), ["key", "rm", "passphrase", "--force"])).code).to.equal(2);
    await mustLock(server);
    expect((await strongroom(on(server), ["unlock", "--passphrase-file", file])).code).to.equal(9);
  });

  it("unlock says which group of a key is mistyped, without asking the server", async () => {
    const server = await filledServer();
    const key = await must(on(server), ["key", "create", ...piped], passphrase);
    await mustLock(server);
    const letter = key[11] === "0" ? "1" : "0"; // in the second group
    const mistyped = key.slice(0, 11) + letter + key.slice(12);
    const { code, stderr } = await strongroom(on(server), ["unlock", ...piped], mistyped);
    expect({ code, stderr }).to.deep.include({ code: 9 });
    expect(stderr).to.contain("compare group 2").and.not.to.contain(key.slice(4, 9));
  });

  it("key create keeps no key when its file cannot be written, and refuses flags of another action", async () => {
    const server = await filledServer();
    const env = on(server);
    const nowhere = ["key", "create", ...piped, "-o", join(temporaryDirectory(), "no", "key")];
    expect((await strongroom(env, nowhere, passphrase)).code).to.equal(1);
    expect(await must(env, ["key", "ls"])).to.match(/^passphrase .*\n$/);
    for (const args of [
      ["key", "ls", "--label", "x"],
      ["key", "rm"],
      ["key", "ls", "x"],
      ["key", "create", "--shares", "3"],
    ])
      expect((await strongroom(env, args)).code, args.join(" ")).to.equal(2);
  });

  it("the desktop's keyring keeps a key, which unlocks the vault", async () => {
    const server = await filledServer();
    const { environment, held } = fakeKeyring();
    const env = { ...on(server), ...environment };
    expect((await strongroom(env, ["unlock", "--keyring"])).stdout).to.contain("already unlocked");
    await mustLock(server);
    expect((await strongroom(env, ["unlock", "--keyring"])).code).to.equal(9);
    await must(env, ["key", "create", "--keyring", ...piped], passphrase);
    expect(`${readFileSync(held, "utf8")}\n`).to.match(keyForm);
    await must(env, ["unlock", "--keyring"]);
    expect((await mustStatus(server))["locked"]).to.equal(false);
    const without = await strongroom({ ...on(server), PATH: temporaryDirectory() }, ["key", "create", "--keyring"]);
    expect(without.stderr).to.contain("libsecret-tools");
  });

  it("rotate-key re-seals all secrets, keeps the keys it is given, and names those it drops", async () => {
    const server = await filledServer();
    const file = join(temporaryDirectory(), "kept");
    await must(on(server), ["key", "create", "--label", "kept", "-o", file, ...piped], passphrase);
    const dropped = await must(on(server), ["key", "create", "--label", "dropped", ...piped], passphrase);
    const misspelt = await strongroom(on(server), ["rotate-key", "--keep", `kept=${file}.txt`, ...piped], passphrase);
    expect(misspelt).to.deep.include({ code: 2 });
    expect(misspelt.stderr).to.contain("the file of --keep kept cannot be read (ENOENT)");
    const unsure = await strongroom(on(server), ["rotate-key", "--keep", `kept=${file}`, ...piped], passphrase);
    expect(unsure.stderr).to.contain("needs a confirmation").and.contain("--yes");
    const said = await must(on(server), ["rotate-key", "--keep", `kept=${file}`, "--yes", ...piped], passphrase);
    expect(said).to.equal("the master key is rotated; all secrets are sealed under the new one; dropped: dropped\n");
    await mustLock(server);
    expect((await strongroom(on(server), ["unlock", ...piped], dropped)).code).to.equal(9);
    await must(on(server), ["unlock", "--passphrase-file", file]);
    expect((await mustGet(server, "app/key"))["value"]).to.equal("s3cr3t");
  });

  describe("on a terminal", () => {
    before(function () {
      needs(this, hasPython(), "Python");
    });

    it("a question that is longer than the terminal is wide breaks at spaces", async () => {
      const server = await filledServer();
      for (const label of ["a first key", "a second key"]) {
        await must(on(server), ["key", "create", "--label", label, ...piped], passphrase);
      }
      const steps: Reaction = { question: "[y/N] ", keys: "n\r" };
      const { shown } = await runProgramOnTerminal(
        [node, mainFile, "key", "rm", "passphrase"],
        steps,
        on(server),
        [24, 80],
      );
      const question = (shown.split("[y/N] ")[0] ?? "").replace("\u001b[?2004h", "");
      for (const line of question.split("\r\n")) expect(line.length, line).to.be.at.most(80);
      expect(question.replaceAll(/\s+/g, " ")).to.contain("will unlock the vault then, and be needed for");
    });

    it("any 3 of 5 shares unlock, in any order; a mistyped or repeated one is asked for again", async () => {
      const server = await filledServer();
      const shares = (await must(on(server), ["key", "split", ...piped], passphrase)).trimEnd().split("\n");
      expect(shares).to.have.length(5);
      await mustLock(server);
      const [first = "", second = "", , , fifth = ""] = shares;
      const typed = (question: string, keys: string): Reaction => ({ question, keys: `${keys}\r` });
      const mistyped = first.slice(0, -1) + (first.endsWith("0") ? "1" : "0");
      const rows = [
        typed("Share 1: ", mistyped),
        typed("Share 1: ", fifth.toLowerCase()),
        typed("Share 2 of 3: ", fifth),
        typed("Share 2 of 3: ", first),
        typed("Share 3 of 3: ", second),
      ];
      const { code, shown } = await runOnTerminal(["unlock", "--shares"], rows, on(server));
      expect(code, shown).to.equal(0);
      expect(shown).to.contain("not a valid share").and.contain("already entered").and.not.to.contain(second);
      expect((await mustStatus(server))["locked"]).to.equal(false);
    });

    it("unlock --shares asks again for a text that is no share in spite of its check, until Ctrl-D or Ctrl-C", async () => {
      const server = await filledServer();
      await mustLock(server);
      const share = (head: readonly number[], length: number, number: number, padding?: string) => {
        return shareText(Uint8Array.of(...head, ...Array<number>(length).fill(7), number), padding);
      };
      const texts = [
        share([0, 1, 2, 3], 32, 1),
        share([1, 1, 2, 3], 32, 1),
        share([3, 1, 2, 3], 16, 1),
        share([3, 1, 2, 3], 33, 1),
        share([3, 1, 2, 3], 32, 0),
        share([3, 1, 2, 3], 32, 1, "1"),
        `${share([3, 1, 2, 3], 32, 1)}0`,
      ];
      const typed = texts.map((text) => `${text}\r`);
      const endings = [
        ["\x04", 13],
        ["\x03", 13],
        [typed.at(-1), 9],
      ] as const;
      for (const [i, [end = "", exit]] of endings.entries()) {
        const rows = [...typed.slice(2 * i, 2 * i + 2), end].map((keys) => ({ question: "Share ", keys }));
        const { code, shown } = await runOnTerminal(["unlock", "--shares"], rows, on(server));
        expect(code, shown).to.equal(exit);
        expect(shown.match(/not a valid share/g), shown).to.have.length(exit === 9 ? 3 : 2);
        expect(shown).not.to.contain("Share 2");
      }
    });

    it("init offers a recovery key, and shows it once", async () => {
      const server = await startLocalServer();
      const strong = "quiet lamp river song";
      const asks = (answer: string) => [
        { question: "New passphrase: ", keys: `${strong}\r` },
        { question: "Repeat passphrase: ", keys: `${strong}\r` },
        { question: "Create a recovery key", keys: answer },
      ];
      const { code, shown } = await runOnTerminal(["init"], asks("y\r"), on(server));
      expect(code, shown).to.equal(0);
      const [key = ""] = /SRK-[0-9A-Z-]+/.exec(shown) ?? [];
      await mustLock(server);
      await must(on(server), ["unlock", ...piped], key);
    });
  });
});

/** Spells a share as the command line does; `padding` fills up the last letter. */
function shareText(body: Uint8Array, padding = "0"): string {
  const check = createHash("sha256").update(body).digest().subarray(0, 4);
  const bits = Array.from([...body, ...check], (byte) => byte.toString(2).padStart(8, "0")).join("");
  const fives = bits.match(/.{1,5}/g) ?? [];
  return `SRS-${fives.map((five) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[Number.parseInt(five.padEnd(5, padding), 2)]).join("")}`;
}

/** A stand-in for libsecret's program that keeps the text in a file. */
function fakeKeyring(): { readonly environment: { readonly PATH: string }; readonly held: string } {
  const directory = temporaryDirectory();
  const held = join(directory, "held");
  const script = `#!/bin/sh
PATH=/usr/bin:/bin
case "$1" in
  store) cat > ${held} ;;
  lookup) cat ${held} 2>/dev/null ;;
esac
`;
  writeFileSync(join(directory, "secret-tool"), script);
  chmodSync(join(directory, "secret-tool"), 0o755);
  return { environment: { PATH: `${directory}:/usr/bin:/bin` }, held };
}
