/** `strongroom browse` on a pseudo-terminal: what it shows, what its keys do, and that it leaves no value behind. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { needs } from "../../../tools/rig/needs.js";
import { mainFile, node } from "../../../tools/rig/process.js";
import { shareLocalServer, startLocalServer, type TestServer } from "../../../tools/rig/server.js";
import { mustGet, mustInit, mustListPaths, mustPut, mustStatus } from "../../../tools/rig/test-client.js";
import { must } from "../../cli/command-rows.js";
import {
  hasPython,
  type OnTerminal,
  type Reaction,
  runOnTerminal,
  runProgramOnTerminal,
  runWithoutTerminal,
  type TerminalSize,
} from "../../support/pseudo-terminal.js";
import { heldAfter } from "../../support/screen-emulator.js";

const canary = "canary-s3cr3t-value";
const entered = "\u001b[?1049h";
const left = "\u001b[?1049l";

/** Keys, each typed once the text before it is shown. */
function typing(...steps: readonly (readonly [string, string])[]): Reaction[] {
  return steps.map(([question, keys]) => ({ question, keys }));
}

const reveal = ["> app/key", "r"] as const;
const revealed = "value of app/key";

describe("strongroom browse", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/key", { value: "first", type: "password" });
    await mustPut(started, "app/key", {
      value: `${canary}\nsecond line\u001b[31m`,
      type: "api-key",
      description: "main",
    });
    await mustPut(started, "web/käse", { value: "cheese", description: "Grüner Käse" });
  });
  const here = (from: Pick<TestServer, "home"> = server()) => ({ STRONGROOM_HOME: from.home });
  const browse = (
    steps: readonly Reaction[],
    more: Readonly<Record<string, string>> = {},
    args: readonly string[] = [],
  ) => runOnTerminal(["browse", ...args], steps, { ...here(), ...more });

  before(function () {
    needs(this, hasPython(), "Python");
  });

  function mustHoldNothing(shown: string): void {
    const { main, alternate, scrollback, isAlternate } = heldAfter(shown);
    expect(isAlternate).to.equal(false);
    expect(`${main}\n${alternate}\n${scrollback}`).not.to.contain("canary");
    for (const part of shown.split(entered).map((text) => text.split(left)[1] ?? "")) {
      expect(part).not.to.contain("canary");
    }
  }

  function mustHaveShown({ shown }: OnTerminal): void {
    const { alternate, isAlternate } = heldAfter(shown.slice(0, shown.lastIndexOf(canary) + 200));
    expect({ isAlternate, shows: alternate.includes(canary) }).to.deep.equal({ isAlternate: true, shows: true });
  }

  it("browse / lists the whole vault, reveals with escapes, and clears the screen after q", async () => {
    const ended = await browse(typing(reveal, [revealed, "q"]), {}, ["/"]);
    expect(ended.code, ended.shown).to.equal(0);
    expect(ended.shown).to.contain("Strongroom: 2 secrets").and.contain("second line\\u{1b}[31m");
    mustHaveShown(ended);
    mustHoldNothing(ended.shown);
    expect(ended.echoesAfter).to.equal(true);
  });

  it("keys that are typed during a request count, but not as the reply to a question", async () => {
    const ended = await browse(typing(["> app/key", "vr"], [revealed, "q"]));
    expect(ended.code, ended.shown).to.equal(0);
    mustHaveShown(ended);
    const asked = await browse(
      typing(["> app/key", "vjuy\r"], ["Restore version 1 of app/key? [y/N]", "\r"], ["Versions of app/key", "q"]),
    );
    expect(asked.code, asked.shown).to.equal(0);
    expect((await mustGet(server(), "app/key"))["metadata"]).to.include({ type: "api-key" });
  });

  it("a revealed value is hidden at the next key and after its time", async () => {
    const [next, later] = await Promise.all([
      browse(typing(reveal, [revealed, "j"], ["> web/", "q"])),
      browse(typing(reveal, [revealed, ""], ["value        text, hidden", "q"]), {}, ["--reveal", "1s"]),
    ]);
    for (const ended of [next, later]) {
      mustHaveShown(ended);
      const whileBrowsing = heldAfter(ended.shown.slice(0, ended.shown.lastIndexOf("\u001b[?2004l") - 200));
      expect(whileBrowsing.alternate).not.to.contain("canary");
    }
  });

  for (const [name, signal] of [
    ["SIGTERM", constants.signals.SIGTERM],
    ["SIGHUP", constants.signals.SIGHUP],
    ["SIGINT", constants.signals.SIGINT],
    ["SIGQUIT", constants.signals.SIGQUIT],
  ] as const) {
    it(`${name} ends browse and clears the screen`, async () => {
      const ended = await browse([...typing(reveal), { question: revealed, signal }]);
      expect(ended.code).to.equal(-signal);
      mustHaveShown(ended);
      mustHoldNothing(ended.shown);
      expect(ended.echoesAfter).to.equal(true);
    });
  }

  it("SIGKILL leaves no value on the screen, and the terminal as it was", async () => {
    const script = `trap 'kill -9 $pid' USR1; "$@" </dev/tty & pid=$!; wait $pid; wait $pid; read -r end </dev/tty; echo END`;
    const command = ["/bin/sh", "-c", script, "sh", node, mainFile, "browse"];
    const kill = { question: revealed, signal: constants.signals.SIGUSR1 };
    const ended = await runProgramOnTerminal(
      command,
      [...typing(reveal), kill, ...typing([left, "\n"], ["END", ""])],
      here(),
    );
    mustHaveShown(ended);
    mustHoldNothing(ended.shown);
    expect(ended.echoesAfter).to.equal(true);
  });

  it("Ctrl-Z and fg clear the screen and draw the list again", async () => {
    const steps = typing(
      ["bash-", `"${node}" "${mainFile}" browse\r`],
      reveal,
      [revealed, "\u001a"],
      ["Stopped", "fg\r"],
      ["> app/key", "q"],
      [left, "exit\r"],
    );
    const command = ["/bin/bash", "--norc", "--noprofile", "-i"];
    const { shown } = await runProgramOnTerminal(command, steps, { ...here() }, [24, 200]);
    const stopped = shown.slice(0, shown.indexOf("Stopped"));
    expect(stopped).to.contain(canary);
    mustHoldNothing(stopped);
    mustHoldNothing(shown);
    expect(shown.slice(shown.indexOf("Stopped")))
      .to.contain("> app/key")
      .and.not.to.contain("canary");
  });

  it("L locks the vault and clears the screen", async () => {
    const other = await startLocalServer();
    await mustInit(other);
    await mustPut(other, "app/key", canary);
    const steps = typing(reveal, [revealed, "L"]);
    const ended = await runOnTerminal(["browse"], steps, here(other));
    expect(ended.code).to.equal(0);
    mustHaveShown(ended);
    mustHoldNothing(ended.shown);
    expect(heldAfter(ended.shown).main).to.match(/the vault is locked/);
    expect((await mustStatus(other))["locked"]).to.equal(true);
  });

  it("browse asks for the passphrase of a locked vault on the main screen, at its start and later", async () => {
    const other = await startLocalServer();
    await mustInit(other, { passphrase: "quiet lamp river song" });
    await mustPut(other, "app/key", canary);
    await must(here(other), ["lock"]);
    const lock = `"${node}" "${mainFile}" lock -q; exec "${node}" "${mainFile}" browse`;
    const steps = typing(["Passphrase of the vault: ", "quiet lamp river song\r"], reveal, [revealed, "q"]);
    const ended = await runProgramOnTerminal(["/bin/sh", "-c", lock], steps, here(other));
    expect(ended.code, ended.shown).to.equal(0);
    expect(ended.shown).not.to.contain("quiet");
    mustHaveShown(ended);
  });

  it("browse searches paths and descriptions during typing, ignoring case, and Esc shows all again", async () => {
    const steps = typing(
      ["2 secrets", "/GRÜN"],
      ["1 of 2 secrets  search: GRÜN", "\r"],
      ["> web/", "\u001b"],
      ["Strongroom: 2 secrets\u001b[K", "/nothing"],
      ["0 of 2 secrets  search: nothing", "\u001b"],
      ["Strongroom: 2 secrets\u001b[K", "q"],
    );
    expect((await browse(steps)).code).to.equal(0);
  });

  it("browse shows the metadata changes of each version, and restores one after a yes", async () => {
    const own = await startLocalServer();
    await mustInit(own);
    await mustPut(own, "app/key", { value: "first", type: "password" });
    await mustPut(own, "app/key", { value: "second", type: "api-key", description: "main" });
    const steps = typing(
      ["> app/key", "v"],
      ["+ description  main", "j"],
      ["the first version", "u"],
      ["Restore version 1 of app/key? [y/N] ", "y\r"],
      ["app/key restored to version 1, stored as version 3", "u"],
      ["Restore version 2 of app/key? [y/N] ", "\r"],
      ["> app/key", "d"],
      ["Move app/key to the trash", "n\r"],
      ["> app/key", "q"],
    );
    const ended = await runOnTerminal(["browse"], steps, here(own));
    expect(ended.code, ended.shown).to.equal(0);
    for (const line of ["- type         password", "+ type         api-key", "- description  -"]) {
      expect(ended.shown).to.contain(line);
    }
    expect((await mustGet(own, "app/key"))["value"]).to.equal("first");
  });

  it("browse generates, edits, deletes and restores, copies values and codes, and shows a code", async () => {
    const own = await startLocalServer();
    await mustInit(own);
    await mustPut(own, "app/key", "before");
    await mustPut(own, "app/totp", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    const { directory, held } = fakePrograms();
    const steps = typing(
      ["> app/key", "g"],
      ["for the path: app/", "made\r"],
      ["app/made generated", "c"],
      ["app/made is in the clipboard", "d"],
      ["Move app/made to the trash? [y/N] ", "y\r"],
      ["app/made is in the trash", "t"],
      ["In the trash: 1 secret", "u"],
      ["app/made is back", "d"],
      ["Move app/made to the trash? [y/N] ", "y\r"],
      ["app/made is in the trash", "t"],
      ["In the trash: 1 secret", "d"],
      ["Delete app/made in the trash permanently? [y/N] ", "y\r"],
      ["app/made is deleted permanently", "k"],
      ["> app/key", "e"],
      ["app/key: done", "/totp\r"],
      ["> app/totp", "o"],
      ["one-time code of app/totp, valid for ", "O"],
      ["the code of app/totp is in the clipboard", "q"],
    );
    const more = {
      ...here(own),
      PATH: `${directory}:${process.env["PATH"]}`,
      DISPLAY: ":0",
      EDITOR: join(directory, "editor"),
    };
    const ended = await runOnTerminal(["browse"], steps, more);
    expect(ended.code, ended.shown).to.equal(0);
    expect((await mustGet(own, "app/key"))["value"]).to.equal("edited");
    expect(await mustListPaths(own, "app/")).to.deep.equal(["app/key", "app/totp"]);
    expect(readFileSync(held, "utf8")).to.match(/^\d{6}$/);
  });

  function fakePrograms(): { readonly directory: string; readonly held: string } {
    const directory = temporaryDirectory();
    const held = join(directory, "held");
    writeFileSync(join(directory, "xsel"), `#!/bin/sh\n[ "$2" = --input ] && cat > ${held}\nexit 0\n`);
    writeFileSync(join(directory, "editor"), `#!/bin/sh\nprintf edited > "$1"\n`);
    for (const name of ["xsel", "editor"]) chmodSync(join(directory, name), 0o755);
    return { directory, held };
  }

  it("a paste outside of a question is ignored", async () => {
    const paste = "\u001b[200~dy\ry\r\u001b[201~";
    const steps = typing(["> app/key", paste], ["> app/key", "q"]);
    expect((await browse(steps)).code).to.equal(0);
    expect(await mustListPaths(server(), "app/")).to.include("app/key");
  });

  it("browse fits 80 x 24, follows a resize, and uses no colour with NO_COLOR", async () => {
    const size: TerminalSize = [24, 80];
    const steps: Reaction[] = [
      { question: "q quit", size: [10, 30] },
      { question: "/ search  ? keys  q quit", keys: "q" }, // the keys that fit 30 columns
    ];
    const command = [node, mainFile, "browse"];
    const { shown, code } = await runProgramOnTerminal(command, steps, { ...here(), NO_COLOR: "1" }, size);
    expect(code).to.equal(0);
    const [full = ""] = shown.split("q quit");
    expect(full).to.contain("\u001b[24;1H").and.not.to.contain("\u001b[25;1H");
    for (const sequence of shown.split("\u001b[").slice(1)) expect(sequence, "a colour").not.to.match(/^[\d;]*m/);
    for (const line of heldAfter(full).alternate.split("\n")) expect([...line].length).to.be.at.most(80);
  });

  it("browse shows all of its keys on 80 columns", async () => {
    const steps = typing(["q quit", "?"], ["lock the vault", "x"], ["> app/key", "q"]);
    const { shown } = await runProgramOnTerminal([node, mainFile, "browse"], steps, here(), [24, 80]);
    const [, keys = ""] = shown.split("─ keys ─");
    expect(keys).to.contain("lock the vault and quit").and.contain("q  quit");
  });

  for (const [what, more, says] of [
    ["TERM=dumb", { TERM: "dumb" }, "TERM is dumb"],
    ["no TERM", { TERM: "" }, "TERM is not set"],
  ] as const) {
    it(`browse refuses ${what} with a reason`, async () => {
      const { code, shown } = await browse([], more);
      expect(code).to.equal(2);
      expect(shown).to.contain(says).and.contain("strongroom ls");
    });
  }

  it("browse refuses to run without a terminal", async () => {
    const { code, stderr } = await runWithoutTerminal(["browse"], [], here());
    expect(code).to.equal(2);
    expect(stderr).to.contain("this needs a terminal");
  });
});
