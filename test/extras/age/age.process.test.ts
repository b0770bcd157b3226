/** age itself, unchanged, with identities in the vault: files of several recipients, rotated keys, and a locked vault. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { blocksIn } from "../../../tools/docs/document-files.js";
import { shared, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { needs } from "../../../tools/rig/needs.js";
import { shareLocalServer } from "../../../tools/rig/server.js";
import { mustInit, mustLock, mustUnlock } from "../../../tools/rig/test-client.js";
import { must, serverEnvironment } from "../../cli/command-rows.js";
import { helperRunner } from "../helper-programs.js";

describe("age with age-plugin-strongroom", function () {
  this.timeout(0);
  const server = shareLocalServer();
  const here = () => serverEnvironment(server());
  const execute = helperRunner(server);
  const directory = shared(async () => temporaryDirectory());
  const file = (name: string) => join(directory(), name);
  let recipients: readonly string[] = [];
  before(async function () {
    needs(this, spawnSync("age", ["--version"]).status === 0, "age");
    await mustInit(server());
    writeFileSync(file("notes.txt"), "notes\n");
    const page = blocksIn(readFileSync("docs/extras/age.md", "utf8")).find(({ language }) => language === "sh");
    const shown = await execute("sh", ["-ec", `cd ${directory()}\n${page?.code}`], "");
    expect(shown, shown.stderr).to.include({ code: 0, stdout: "created the x25519 key age/me\nnotes\nnotes\n" });
    const first = (await must(here(), ["age", "recipient", "age/me"])).trim();
    await must(here(), ["transit", "rotate", "age/me"]);
    recipients = [first, (await must(here(), ["age", "recipient", "age/me"])).trim()];
  });

  const age = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await execute("age", args, "");
    return { code, stdout, stderr };
  };
  /** Encrypts to recipients; needs no plugin. */
  const seal = async (name: string, text: string, ...to: readonly string[]) => {
    const flags = to.flatMap((recipient) => ["-r", recipient]);
    const { code, stderr } = await execute("age", [...flags, "-o", file(name)], text);
    expect(code, stderr).to.equal(0);
  };

  it("age decrypts files for each version of a key, with an identity file and without one", async () => {
    const other = (await execute("age-keygen", [], "")).stdout;
    const [stranger = ""] = /age1\w+/.exec(other) ?? [];
    const [first = "", second = ""] = recipients;
    for (const [name, to] of Object.entries({
      first: [first],
      second: [second],
      several: [stranger, first, stranger],
    })) {
      await seal(name, `text of ${name}`, ...to);
      const wanted = { code: 0, stdout: `text of ${name}`, stderr: "" };
      expect(await age("-d", "-i", file("me.txt"), file(name))).to.deep.equal(wanted);
      if (name === "several") expect(await age("-d", "-j", "strongroom", file(name))).to.deep.equal(wanted);
    }
    await seal("foreign", "x", stranger);
    const refused = await age("-d", "-i", file("me.txt"), file("foreign"));
    expect(refused).to.include({ code: 1, stdout: "" });
    expect(refused.stderr).to.match(/no identity matched/);
    expect(readFileSync(file("me.txt"), "utf8")).to.match(
      /^# the transit key age\/me, recipient age1\w+\nAGE-PLUGIN-STRONGROOM-1\w+\n$/,
    );
  });

  it("age says that the vault is locked, and not that no identity matched", async () => {
    await seal("locked", "text", recipients[1] ?? "");
    await mustLock(server());
    const { code, stdout, stderr } = await age("-d", "-i", file("me.txt"), file("locked"));
    await mustUnlock(server());
    expect([code, stdout]).to.deep.equal([1, ""]);
    expect(stderr)
      .to.match(/the vault is locked/)
      .and.not.match(/no identity matched/);
  });
});
