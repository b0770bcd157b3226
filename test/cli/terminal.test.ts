/** The command line on a terminal: prompts, hidden input, colours, and newlines that only a terminal gets. */
import { constants } from "node:os";
import { expect } from "chai";
import pMap from "p-map";
import { pasteMode } from "../../src/cli/kit/prompts/hidden-line.js";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustListPaths, mustPut, mustStatus } from "../../tools/rig/test-client.js";
import { hasPython, type Reaction, runOnTerminal, runProgramOnTerminal } from "../support/pseudo-terminal.js";
import { must } from "./command-rows.js";

const strong = "quiet lamp river song";

describe("the command line on a terminal", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/key", { value: "s3cr3t", description: "d" });
    for (const name of ["a", "b"]) await mustPut(started, `rm/${name}`, "v");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });
  const silent: Reaction = { question: "never asked" };
  before(function () {
    needs(this, hasPython(), "Python");
  });

  it("a prompt gives the shell its terminal back at Ctrl-Z, and asks again after fg with what was typed", async () => {
    const steps: Reaction[] = [
      { question: "bash-", keys: `"${node}" "${mainFile}" put typed/value\r` },
      { question: "Value of typed/value: ", keys: "s3c" },
      { question: "", keys: "\u001a" },
      { question: "Stopped", keys: "echo visi''ble\r" },
      { question: "visible", keys: "fg\r" },
      { question: "Value of typed/value: ", keys: "r3t\r" },
      { question: "typed/value", keys: "" },
      { question: "bash-", keys: "exit\r" },
    ];
    const shell = ["/bin/bash", "--norc", "--noprofile", "-i"];
    const { shown, echoesAfter } = await runProgramOnTerminal(shell, steps, here(), [24, 200]);
    expect(shown).to.contain("echo visi''ble"); // the shell's terminal echoes
    expect(shown).not.to.contain("s3c").and.not.to.contain("r3t");
    expect(echoesAfter).to.equal(true);
    expect((await mustGet(server(), "typed/value"))["value"]).to.equal("s3cr3t");
  });

  describe("init on a terminal", () => {
    const first = (keys: string): Reaction => ({ question: "New passphrase: ", keys: `${keys}\r` });
    const second = (keys: string): Reaction => ({ question: "Repeat passphrase: ", keys: `${keys}\r` });
    const differing = [first(strong), second(`${strong}!`)];
    const anyway = (keys: string): Reaction => ({ question: "Use it anyway? [y/N]", keys: `${keys}\r` });
    const rows: readonly (readonly [string, readonly Reaction[], number, RegExp])[] = [
      ["accepts a strong one typed twice", [first(strong), second(strong)], 0, /strength: very strong.*and unlocked/s],
      ["asks again for two that differ", [...differing, first(strong), second(strong)], 0, /differ.*and unlocked/s],
      ["rejects two that differ three times", [...differing, ...differing, ...differing], 2, /differ, 3 times/],
      [
        "warns of a weak one and asks for another one after a no",
        [first("hunter2"), anyway("n"), first(strong), second(strong)],
        0,
        /weak.*type another one.*and unlocked/s,
      ],
      [
        "warns of a weak one and accepts it after a yes",
        [first("hunter2"), anyway("y"), second("hunter2")],
        0,
        /weak.*and unlocked/s,
      ],
      ["can be cancelled with Ctrl-C", [{ question: "New passphrase: ", keys: "\u0003" }], 13, /nothing was done/],
    ];
    const noKey: Reaction = { question: "Create a recovery key", keys: "n\r" };
    it("init accepts a strong passphrase typed twice, warns of a weak one, and echoes neither", async () => {
      await pMap(rows, runRow, { concurrency: 3 });
    });

    async function runRow([what, reactions, want, says]: (typeof rows)[number]): Promise<void> {
      const empty = await startLocalServer();
      const home = { STRONGROOM_HOME: empty.home };
      const { code, shown, echoedWhileAsking, echoesAfter } = await runOnTerminal(
        ["init"],
        [...reactions, noKey],
        home,
      );
      expect(code, `${what}: ${shown}`).to.equal(want);
      expect({ echoedWhileAsking, echoesAfter }, what).to.deep.equal({ echoedWhileAsking: false, echoesAfter: true });
      expect(shown, what)
        .to.match(says)
        .and.not.to.match(/hunter2|quiet lamp/);
      expect((await mustStatus(empty))["initialized"], what).to.equal(want === 0);
    }
  });

  it("init generates six words after Enter alone, shows them once, and uses them after a yes", async () => {
    const empty = await startLocalServer();
    const home = { STRONGROOM_HOME: empty.home };
    const enter: Reaction = { question: "New passphrase: ", keys: "\r" };
    const use = (keys: string): Reaction => ({ question: "Use it? [y/N]", keys });
    const noKey: Reaction = { question: "Create a recovery key", keys: "n\r" };
    const made = await runOnTerminal(["init"], [enter, use("n\r"), enter, use("y\r"), noKey], home);
    expect(made.code, made.shown).to.equal(0);
    const [declined = "", used = ""] = [...made.shown.matchAll(/ {2}((?:[a-z-]+ ){5}[a-z-]+)\r\n/g)].map(
      ([, words]) => words,
    );
    expect(used, made.shown).not.to.equal("");
    expect(made.shown.split(used)).to.have.lengthOf(2);
    expect(declined).not.to.equal("").and.not.to.equal(used);
    await must(home, ["lock"]);
    const unlocked = await runOnTerminal(
      ["unlock"],
      { question: "Passphrase of the vault: ", keys: `${used}\r` },
      home,
    );
    expect(unlocked.code).to.equal(0);
  });

  it("unlock asks for the passphrase and does not echo it", async () => {
    const locked = await startLocalServer();
    await mustInit(locked, { passphrase: strong });
    const home = { STRONGROOM_HOME: locked.home };
    await must(home, ["lock"]);
    const reaction = { question: "Passphrase of the vault: ", keys: `${strong}\r` };
    const { code, shown, echoedWhileAsking } = await runOnTerminal(["unlock"], reaction, home);
    expect({ code, echoedWhileAsking }).to.deep.equal({ code: 0, echoedWhileAsking: false });
    expect(shown).to.contain("the vault is unlocked").and.not.to.contain("quiet");
  });

  it("put asks for the value and does not echo it", async () => {
    const reaction = { question: "Value of put/typed: ", keys: "typed value\r" };
    const { code, shown, echoedWhileAsking } = await runOnTerminal(["put", "put/typed"], reaction, here());
    expect({ code, echoedWhileAsking }).to.deep.equal({ code: 0, echoedWhileAsking: false });
    expect(shown).to.contain("put/typed stored (11 bytes)").and.not.to.contain("typed value");
    expect((await mustGet(server(), "put/typed"))["value"]).to.equal("typed value");
  });

  const refused: readonly (readonly [string, readonly string[], Reaction, number])[] = [
    ["an empty line", ["put", "put/x"], { question: "Value of", keys: "\r" }, 2],
    ["Ctrl-C", ["put", "put/x"], { question: "Value of", keys: "abc\u0003" }, 13],
    ["--non-interactive", ["put", "put/x", "--non-interactive"], silent, 2],
  ];
  for (const [what, args, reaction, want] of refused) {
    it(`put stores nothing after ${what}: exit ${want}`, async () => {
      expect((await runOnTerminal(args, reaction, here())).code).to.equal(want);
      expect(await mustListPaths(server(), "put/")).not.to.include("put/x");
    });
  }

  it("a closed terminal ends a prompt by its signal, without a crash", async () => {
    const { code } = await runOnTerminal(["put", "app/new"], { question: "Value of app/new: ", hangsUp: true }, here());
    expect(code).to.equal(-constants.signals.SIGHUP);
  });

  it("rm --permanent asks and deletes only after a yes", async () => {
    const both = ["rm/a", "rm/b"];
    const question = "Delete rm/a, rm/b with their history? [y/N]";
    for (const [keys, exit, left] of [
      ["\r", 13, both],
      ["n\r", 13, both],
      ["\u0003", 13, both],
      ["\u0004", 13, both],
      ["yes\r", 0, []],
    ] as const) {
      const { code, shown } = await runOnTerminal(["rm", "--permanent", "rm/a", "rm/b"], { question, keys }, here());
      expect(code, shown).to.equal(exit);
      if (exit !== 0)
        expect(shown.replaceAll(pasteMode.off, "")).to.contain("\nstrongroom: ").and.contain("nothing was done");
      expect(await mustListPaths(server(), "rm/")).to.deep.equal(left);
    }
  });

  it("get ends a value's line on a terminal, once", async () => {
    expect((await runOnTerminal(["get", "app/key"], silent, here())).shown).to.equal("s3cr3t\r\n");
    await mustPut(server(), "app/lines", "a\nb\n");
    expect((await runOnTerminal(["get", "app/lines"], silent, here())).shown).to.equal("a\r\nb\r\n");
  });

  it("ls escapes control characters on a terminal only", async () => {
    const path = "odd/\u202eeman";
    await mustPut(server(), path, "v");
    expect((await runOnTerminal(["ls", "odd/"], silent, here())).shown).to.equal("odd/\\u{202e}eman\r\n");
    expect(await must(here(), ["ls", "odd/"])).to.equal(`${path}\n`);
  });

  it("colours only a terminal, and not when NO_COLOR is set", async () => {
    for (const [args, text] of [
      [["status"], "unlocked"],
      [["ls", "-l", "app/key"], "app/key"],
    ] as const) {
      expect((await runOnTerminal(args, silent, here())).shown)
        .to.contain("\u001b[")
        .and.to.contain(text);
      const plain = await runOnTerminal(args, silent, { ...here(), NO_COLOR: "1" });
      expect(plain.shown).to.contain(text).and.not.to.contain("\u001b");
      expect(await must(here(), args))
        .to.contain(text)
        .and.not.to.contain("\u001b");
    }
  });
});
