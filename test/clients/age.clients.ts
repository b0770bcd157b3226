/** rage and sops, unchanged, with an identity of age in the vault: many files at the same time, rotated keys, a locked vault. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import pMap from "p-map";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit } from "../../tools/rig/test-client.js";
import { must, serverEnvironment } from "../cli/command-rows.js";
import { type Client, makeClient, mustNeedVault } from "./credential-rig.js";
import { has } from "./programs.js";

const fileCount = 100;
/** How many files are opened at the same time. */
const concurrency = 8;

describe("programs that find age-plugin-strongroom", () => {
  const server = shareLocalServer({}, mustInit);
  const here = () => serverEnvironment(server());

  /** Makes a key, and a client with its identity and a token for it; rotates the key where `recipients` are two. */
  async function client(name: string): Promise<{ readonly made: Client; readonly recipients: readonly string[] }> {
    await must(here(), ["transit", "create", name, "--type", "x25519"]);
    const first = (await must(here(), ["age", "recipient", name])).trim();
    await must(here(), ["transit", "rotate", name]);
    const second = (await must(here(), ["age", "recipient", name])).trim();
    const identity = await must(here(), ["age", "identity", name]);
    const made = await makeClient(server(), { can: ["decrypt"], paths: [name] }, { "me.txt": identity });
    return { made, recipients: [first, second] };
  }

  for (const program of ["age", "rage"])
    it(`open ${fileCount} files for two versions of a key (${program})`, async function () {
      needs(this, has(program, "--version"), program);
      const { made, recipients } = await client(program);
      const sealed = (i: number) => `${i}.age`;
      const numbers = Array.from({ length: fileCount }, (_, i) => i);
      writeFileSync(join(made.home, "recipients.txt"), `${recipients.join("\n")}\n`);
      for (const i of numbers) writeFileSync(join(made.home, `${i}.txt`), `text ${i}`);
      const seal = numbers.map((i) => `${program} -r ${recipients[i % 2]} -o ${sealed(i)} ${i}.txt`).join("\n");
      expect(await made.run("sh", "-ec", seal)).to.include({ code: 0 });
      const open = (i: number) => made.run(program, "-d", "-i", "me.txt", sealed(i));
      const opened = await pMap(numbers, open, { concurrency });
      const missed = opened.filter(({ code, stdout }, i) => code !== 0 || stdout !== `text ${i}`);
      expect(missed).to.deep.equal([]);
      await mustNeedVault(
        server(),
        made,
        () => open(0),
        (ended) => expect(ended).to.include({ code: 0, stdout: "text 0" }),
      );
    });

  it(`open ${fileCount} files with sops`, async function () {
    needs(this, has("sops", "--version"), "sops");
    const { made, recipients } = await client("sops");
    made.env["SOPS_AGE_KEY_FILE"] = join(made.home, "me.txt");
    mkdirSync(join(made.home, "files"));
    const files = Array.from({ length: fileCount }, (_, i) => `files/${i}.yaml`);
    for (const [i, file] of files.entries()) writeFileSync(join(made.home, file), `password: value-${i}\n`);
    const seal = files.map((file, i) => `sops encrypt --age ${recipients[i % 2]} -i ${file}`).join("\n");
    expect(await made.run("sh", "-ec", seal)).to.include({ code: 0 });
    const open = (file: string) => made.run("sops", "decrypt", file);
    const opened = await pMap(files, open, { concurrency });
    const missed = opened.filter(({ code, stdout }, i) => code !== 0 || stdout !== `password: value-${i}\n`);
    expect(missed).to.deep.equal([]);
    await mustNeedVault(
      server(),
      made,
      () => open("files/0.yaml"),
      (ended) => expect(ended).to.include({ code: 0 }),
    );
  });
});
