/** Commands that messages advise, executed as printed for a home that is not the default one. */
import { execFileSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { commands } from "../../src/cli/command-table.js";
import { createHints } from "../../src/cli/kit/hints.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut } from "../../tools/rig/test-client.js";
import { strongroom } from "./command-rows.js";

const names = commands.map(({ name }) => name);

/** Returns the commands of a message, which stand between double spaces or at the end of a line, as words. */
function advisedIn(text: string): string[][] {
  const found = text.matchAll(/(?:^| {2}|: |, |; |; or run |\()strongroom ((?:[^\s;:,)]| (?! ))+)/gm);
  return [...found].map(([, words = ""]) =>
    words
      .trim()
      .split(" ")
      .map((word) => word.replace(/^'(.*)'$/, "$1")),
  );
}

describe("hints of messages", () => {
  const home = () => join(temporaryDirectory(), "my home");
  const dotenvFile = () => {
    const file = join(temporaryDirectory(), ".env");
    writeFileSync(file, "KEY=a value of a key\n");
    return file;
  };
  const unlocked = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/key", "value");
  });

  it("a hint carries --home, --address and files of its call, where its command takes them", () => {
    const hints = createHints(["ls", "--home=/srv/my vault", "--address", "https://a:1", "--", "--cacert", "x"], names);
    expect(hints("unlock it with  strongroom unlock")).to.equal(
      "unlock it with  strongroom --home '/srv/my vault' --address 'https://a:1' unlock",
    );
    expect(hints("start it with  strongroom up --port 0")).to.equal(
      "start it with  strongroom --home '/srv/my vault' up --port 0",
    );
    for (const text of ["strongroom help lists the commands", "usage: strongroom <command>", "/strongroom unlock"])
      expect(hints(text)).to.equal(text);
    expect(createHints(["ls"], names)("strongroom unlock")).to.equal("strongroom unlock");
  });

  /** Calls with `--home`, and the exit codes of the calls and of what they advise. */
  const rows: readonly (readonly [what: string, args: readonly string[], exit: number, advised: readonly number[]])[] =
    [
      ["a missing secret", ["get", "missing"], 4, [0]],
      ["a missing transit key", ["encrypt", "missing"], 4, [0]],
      ["a missing key", ["key", "rm"], 2, [0]],
      ["an unknown flag", ["ls", "--nonsense"], 2, [0]],
      ["the settings", ["config"], 0, [0]],
      ["an unknown setting", ["config", "get", "nonsense"], 2, [0]],
      ["a secret in the trash", ["rm", "app/key"], 0, [0]],
      ["a second vault", ["init"], 7, [0]],
      ["a moved secret", ["mv", "missing", "there"], 4, [0]],
    ];
  for (const [what, args, exit, wanted] of rows) {
    it(`a hint acts on the home of the call that names it: ${what}`, async () => {
      const own = ["--home", unlocked().home];
      const { code, stdout, stderr } = await strongroom({}, [...own, ...args]);
      expect(code, stdout + stderr).to.equal(exit);
      const advised = advisedIn(stdout + stderr);
      expect(advised, stdout + stderr).to.have.length(wanted.length);
      for (const [i, words] of advised.entries()) {
        expect(words.join(" ")).to.contain(unlocked().home);
        const ended = await strongroom({}, words);
        expect(ended.code, `strongroom ${words.join(" ")}: ${ended.stderr}`).to.equal(wanted[i]);
      }
    });
  }

  const loginWithoutToken = '{"v":1,"registry":{"index-url":"x"},"kind":"login","token":""}\n';
  /** Calls whose results advise commands. */
  const results: Readonly<Record<string, () => readonly [home: string, args: readonly string[], input?: string]>> = {
    trust: () => [unlocked().home, []],
    "podman-secret": () => [unlocked().home, ["--config"]],
    "cargo-credential": () => [unlocked().home, ["--cargo-plugin"], loginWithoutToken],
    import: () => [unlocked().home, ["--format", "dotenv", "--rewrite", dotenvFile()]],
    prove: () => [home(), ["--as-attacker"]],
  };
  for (const [command, call] of Object.entries(results)) {
    it(`a result advises commands that act on the home of its call: ${command}`, async () => {
      const [called, args, input] = call();
      const { stdout, stderr } = await strongroom({}, ["--home", called, command, ...args], input);
      expect(stdout).to.match(/strongroom --home /);
      expect(stdout, stderr).not.to.match(new RegExp(`(?<=^|[\\s("'])strongroom (?:${names.join("|")}) `, "m"));
    });
  }

  /** Calls with a folder and a secret of this name, and the exit codes of the calls and of what they advise. */
  const oddName = "it's $(touch made); here";
  const oddRows: readonly (readonly [args: readonly string[], exit: number, advised: number])[] = [
    [["get", `${oddName}/`], 2, 0],
    [["get", oddName], 4, 0],
    [["mv", oddName, "moved; too"], 4, 0],
    [["rm", `moved; too/${oddName}`], 0, 0],
    [["generate", oddName], 0, 0],
    [["rm", "moved; too"], 4, 0],
  ];
  it("a hint quotes a path, so that a shell takes it as one word and executes nothing in it", async () => {
    const at = { STRONGROOM_HOME: unlocked().home };
    await mustPut(unlocked(), `${oddName}/${oddName}`, "value");
    const cwd = temporaryDirectory();
    for (const [args, exit, wanted] of oddRows) {
      const { code, stdout, stderr } = await strongroom(at, args);
      expect(code, stdout + stderr).to.equal(exit);
      const [, line = ""] = /[ :](strongroom (?!`)[^`\n]+?)(?: {2}|$)/m.exec(stdout + stderr) ?? [];
      const script = `strongroom() { printf '%s\\0' "$@"; }\n${line}`;
      const words = execFileSync("sh", ["-c", script], { cwd, encoding: "utf8" }).split("\0").slice(0, -1);
      const ended = await strongroom(at, words);
      expect(ended.code, `${line}\n${ended.stderr}`).to.equal(wanted);
    }
    expect(readdirSync(cwd)).to.deep.equal([]);
  });

  it("a hint acts on the home of the call that names it: a locked vault, no vault, and no server", async () => {
    const server = await startLocalServer();
    const own = ["--home", server.home];
    const advise = async (args: readonly string[]) => {
      const { stdout, stderr } = await strongroom({}, [...own, ...args, "--non-interactive"]);
      const [words = []] = advisedIn(stdout + stderr);
      expect(words.slice(0, 2), stdout + stderr).to.deep.equal(own);
      return words;
    };
    expect((await advise(["ls"])).at(-1)).to.equal("init");
    await mustInit(server);
    await mustLock(server);
    const unlock = await advise(["ls"]);
    expect(unlock.at(-1)).to.equal("unlock");
    const unlocking = await strongroom({}, [...unlock, "--passphrase-file", "-"], "wrong");
    expect(unlocking.code, unlocking.stderr).to.equal(9);
    const none = home();
    const { stderr } = await strongroom({}, ["ls", "--home", none]);
    expect(stderr).to.contain(`start it with  strongroom --home '${none}' up`);
  });
});
