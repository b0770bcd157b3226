/** Pastes at hidden prompts: stored whole or not at all, and nothing of them is left for the shell. */
import { expect } from "chai";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer, startLocalServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { hasPython, type OnTerminal, runOnTerminal } from "../support/pseudo-terminal.js";
import { strongroom } from "./command-rows.js";

const begin = "\u001b[200~";
const end = "\u001b[201~";
const line = `${"A".repeat(63)}\n`;
const sizes = { "10 KiB": 10 * 1024, "1 MiB": 1024 * 1024 } as const;

/** As terminals send it: line feeds become carriage returns. */
const asTyped = (text: string) => text.replaceAll("\n", "\r");
const bracketed = (text: string) => `${begin}${asTyped(text)}${end}`;

describe("pastes at hidden prompts", () => {
  const server = shareLocalServer({}, (started) => mustInit(started).then(() => {}));
  const here = () => ({ STRONGROOM_HOME: server().home });
  before(function () {
    needs(this, hasPython(), "Python");
  });

  const put = (path: string, keys: string, ...flags: string[]) =>
    runOnTerminal(["put", path, ...flags], { question: `Value of ${path}`, keys }, here());

  function mustLeaveNothing({ shown, left, echoesAfter }: OnTerminal): void {
    expect({ left: left.length, echoesAfter }, shown.slice(0, 2000)).to.deep.equal({ left: 0, echoesAfter: true });
    expect(shown).to.contain("\u001b[?2004h").and.not.to.contain("AAAA");
    expect(shown.lastIndexOf("\u001b[?2004l")).to.be.greaterThan(shown.lastIndexOf("\u001b[?2004h"));
  }

  async function mustHaveNone(path: string): Promise<void> {
    mustRefuse(await send(server(), { path: secretTarget(path) }), 404, "NOT_FOUND");
  }

  for (const [size, bytes] of Object.entries(sizes)) {
    const lines = line.repeat(bytes / line.length);
    it(`put stores a bracketed paste of several lines whole: ${size}`, async () => {
      const done = await put("paste/bracketed", `${bracketed(lines)}\r`);
      mustLeaveNothing(done);
      expect(done.code, done.shown).to.equal(0);
      expect((await mustGet(server(), "paste/bracketed"))["value"] === lines).to.equal(true);
    });

    it(`put stores nothing of a paste without brackets and says what to do: ${size}`, async () => {
      const done = await put("paste/plain", `${asTyped(lines)}\r`);
      mustLeaveNothing(done);
      expect(done.code, done.shown).to.equal(2);
      expect(done.shown).to.contain("nothing was stored; use --multiline or --from-file");
      await mustHaveNone("paste/plain");
    });

    it(`put --multiline stores a paste without brackets whole, up to Ctrl-D: ${size}`, async () => {
      const done = await put("paste/multiline", `${asTyped(lines)}\u0004`, "--multiline");
      mustLeaveNothing(done);
      expect(done.code, done.shown).to.equal(0);
      expect((await mustGet(server(), "paste/multiline"))["value"] === lines).to.equal(true);
    });
  }

  const longPastes = [
    ["10 KiB without brackets", `${asTyped(line.repeat(sizes["10 KiB"] / line.length))}\r`],
    ["1 MiB in brackets", `${bracketed(line.repeat(sizes["1 MiB"] / line.length))}\r`],
  ] as const;
  for (const [paste, keys] of longPastes) {
    it(`a passphrase of several lines is refused: ${paste}`, async () => {
      const locked = await lockedServer();
      const done = await onServer(locked, "unlock", { question: "Passphrase of the vault: ", keys });
      mustLeaveNothing(done);
      expect(done.code, done.shown).to.equal(2);
      expect(done.shown).to.match(/the passphrase has several lines|longer than 1,024 bytes/);
      expect(await mustStatus(locked)).to.include({ initialized: true, locked: true });
    });

    it(`a new passphrase of several lines is refused: ${paste}`, async () => {
      const empty = await startLocalServer();
      const done = await onServer(empty, "init", { question: "New passphrase: ", keys });
      mustLeaveNothing(done);
      expect(done.code, done.shown).to.equal(2);
      expect((await mustStatus(empty))["initialized"]).to.equal(false);
    });
  }

  /** A prompt that a paste of lines may meet: what is typed before it, and what holds afterwards. */
  type Prompt = {
    readonly args: readonly string[];
    readonly before: readonly { readonly question: string; readonly keys: string }[];
    readonly question: string;
    readonly on: () => TestServer;
    /** Whether the server is as before. */
    readonly isAsBefore: () => Promise<boolean>;
  };
  let empty: TestServer | null = null;
  let locked: TestServer | null = null;
  const mustHave = (one: TestServer | null): TestServer => one ?? expect.fail("not started");
  const strong = "quiet lamp river song";
  const prompts: Readonly<Record<string, Prompt>> = {
    "the repeated passphrase of init": {
      args: ["init"],
      before: [{ question: "New passphrase: ", keys: `${strong}\r` }],
      question: "Repeat passphrase: ",
      on: () => mustHave(empty),
      isAsBefore: async () => (await mustStatus(mustHave(empty)))["initialized"] === false,
    },
    "the question of init about a weak passphrase": {
      args: ["init"],
      before: [{ question: "New passphrase: ", keys: "hunter2\r" }],
      question: "Use it anyway? [y/N]",
      on: () => mustHave(empty),
      isAsBefore: async () => (await mustStatus(mustHave(empty)))["initialized"] === false,
    },
    "the passphrase for which any command asks": {
      args: ["ls"],
      before: [],
      question: "Passphrase of the vault: ",
      on: () => mustHave(locked),
      isAsBefore: async () => (await mustStatus(mustHave(locked)))["locked"] === true,
    },
    "the question of rm": {
      args: ["rm", "--permanent", "paste/kept"],
      before: [],
      question: "Delete paste/kept with its history? [y/N]",
      on: server,
      isAsBefore: async () => (await mustGet(server(), "paste/kept"))["value"] === "v",
    },
  };

  describe("at every other prompt", () => {
    before(async () => {
      [empty, locked] = [await startLocalServer(), await lockedServer()];
      await mustPut(server(), "paste/kept", "v");
    });

    for (const [what, { args, before: earlier, question, on, isAsBefore }] of Object.entries(prompts)) {
      it(`nothing is done and nothing is left for the shell: ${what}`, async () => {
        const home = { STRONGROOM_HOME: on().home };
        for (const [, keys] of longPastes) {
          const done = await runOnTerminal(args, [...earlier, { question, keys }], home);
          const echoed = /A{63}\??\r\n/; // a visible prompt shows what it takes
          mustLeaveNothing({ ...done, shown: done.shown.replace(echoed, "") });
          expect(done.code, done.shown).to.be.oneOf([2, 13]);
          expect(await isAsBefore(), done.shown).to.equal(true);
        }
      });
    }

    it("a yes and what a paste has behind it is no yes", async () => {
      const keys = "y\rrm -rf something\r";
      const done = await runOnTerminal(
        ["rm", "--permanent", "paste/kept"],
        { question: "Delete paste/kept with its history? [y/N]", keys },
        here(),
      );
      mustLeaveNothing(done);
      expect(done.code, done.shown).to.equal(2);
      expect(done.shown).to.contain("[y/N] y\r\n").and.contain("several lines were typed as one reply");
      expect((await mustGet(server(), "paste/kept"))["value"]).to.equal("v");
    });
  });

  async function lockedServer(): Promise<TestServer> {
    const started = await startLocalServer();
    await mustInit(started);
    await mustLock(started);
    return started;
  }

  const onServer = ({ home }: TestServer, command: string, reaction: { question: string; keys: string }) =>
    runOnTerminal([command], reaction, { STRONGROOM_HOME: home });

  it("a short passphrase in two lines is refused and not tried", async () => {
    for (const keys of [`${bracketed("quiet\nlamp")}\r`, `${asTyped("quiet\nlamp\n")}`]) {
      const done = await onServer(await lockedServer(), "unlock", { question: "Passphrase of the vault: ", keys });
      mustLeaveNothing(done);
      expect(done.code, done.shown).to.equal(2);
      expect(done.shown).to.contain("the passphrase has several lines");
    }
  });

  it("a paste keeps control characters and what only looks like its end, and a single line loses its newline", async () => {
    const rows = [
      ["a\u0001\u001b[31mb\u001b\u001b[20\u001b[201c\u0004\u007f\n\tz", undefined],
      ["one line\n", "one line"],
      ["two\nlines\n", "two\nlines\n"],
    ] as const;
    for (const [pasted, want = pasted] of rows) {
      const done = await put("paste/odd", `${bracketed(pasted)}\r`);
      expect(done.code, done.shown).to.equal(0);
      expect((await mustGet(server(), "paste/odd"))["value"]).to.equal(want);
    }
  });

  it("a paste of more than a value may have, or one with Ctrl-C, stores nothing and leaves nothing", async () => {
    const large = await put("paste/none", `${bracketed("A".repeat(3 * sizes["1 MiB"]))}\r`);
    expect(large.code, large.shown).to.equal(2);
    const cancelled = await put("paste/none", `${bracketed(`${line}\u0003${line.repeat(200)}`)}\r`);
    expect(cancelled.code, cancelled.shown).to.equal(13);
    for (const done of [large, cancelled]) mustLeaveNothing(done);
    await mustHaveNone("paste/none");
  });

  it("a signal switches bracketed paste off and leaves nothing that has arrived", async () => {
    for (const signal of [1, 2, 3, 15]) {
      const reaction = { question: "Value of paste/none", keys: `${begin}${line.repeat(10)}`, signal };
      const done = await runOnTerminal(["put", "paste/none"], reaction, here());
      mustLeaveNothing(done);
      expect(done.code).to.equal(-signal);
    }
  });

  it("--multiline and --from-file are two sources", async () => {
    const { code, stderr } = await strongroom(here(), ["put", "paste/none", "--multiline", "--from-file", "f"]);
    expect(code, stderr).to.equal(2);
  });
});
