/** Commands that meet a locked vault: on a terminal, they ask for the passphrase and continue. */
import { expect } from "chai";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { startLocalServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustLock, mustPut, mustStatus } from "../../tools/rig/test-client.js";
import { hasPython, type Reaction, runOnTerminal } from "../support/pseudo-terminal.js";
import { strongroom } from "./command-rows.js";

const passphrase = "quiet lamp river song";
const question = "Passphrase of the vault: ";
const right: Reaction = { question, keys: `${passphrase}\r` };
const wrong: Reaction = { question, keys: "wrong\r" };
const prefixed = ["--prefix", "app/", "--", "sh", "-c", 'echo "[$key]"'];

describe("commands on a locked vault", () => {
  before(function () {
    needs(this, hasPython(), "Python");
  });

  async function lockedServer(): Promise<TestServer> {
    const server = await startLocalServer();
    await mustInit(server, { passphrase });
    await mustPut(server, "app/key", "s3cr3t");
    await mustPut(server, "app/other", "0th3r");
    await mustLock(server);
    return server;
  }

  const on = ({ home }: TestServer, args: readonly string[], reactions: readonly Reaction[]) =>
    runOnTerminal(args, reactions, { STRONGROOM_HOME: home });

  const rows: readonly (readonly [readonly string[], RegExp, (readonly Reaction[])?])[] = [
    [["get", "app/key"], /s3cr3t/],
    [["ls", "app/"], /app\/\r\n.*key/s],
    [["find", "key"], /app\/key/],
    [["put", "app/new"], /app\/new stored \(5 bytes\)/, [{ question: "Value of app/new: ", keys: "value\r" }]],
    [["generate", "app/generated"], /app\/generated stored/],
    [["mv", "app/key", "app/moved"], /moved to app\/moved/],
    [["rm", "app/key", "--force"], /moved to the trash: app\/key/],
    [["export", "--format", "json", "--plaintext"], /"s3cr3t"/],
    [["run", ...prefixed], /\[s3cr3t\]/],
    [["run", "--mask", ...prefixed], /\[\*\*\*\]/],
    [["run", "--print-names", "--prefix", "app/"], /key.*app\/key/],
  ];
  for (const [args, shows, others = []] of rows) {
    it(`${args.slice(0, 2).join(" ")} asks for the passphrase once and continues`, async () => {
      const { code, shown, echoedWhileAsking, echoesAfter } = await on(await lockedServer(), args, [right, ...others]);
      expect(code, shown).to.equal(0);
      expect(shown).to.match(shows).and.not.to.contain(passphrase);
      expect(shown.split(question).length - 1, shown).to.equal(1);
      expect({ echoedWhileAsking, echoesAfter }).to.deep.equal({ echoedWhileAsking: false, echoesAfter: true });
    });
  }

  it("a second try unlocks, and the prompt counts down", async () => {
    for (const args of [["get", "app/key"], ["unlock"]]) {
      const { code, shown } = await on(await lockedServer(), args, [wrong, wrong, right]);
      expect(code, shown).to.equal(0);
      expect(shown).to.match(/wrong passphrase, 2 tries left.*wrong passphrase, 1 try left/s);
    }
  });

  it("three wrong passphrases end the command: exit 9, and the vault stays locked", async () => {
    for (const args of [["get", "app/key"], ["unlock"], ["run", ...prefixed]]) {
      const server = await lockedServer();
      const { code, shown } = await on(server, args, [wrong, wrong, wrong]);
      expect(code, shown).to.equal(9);
      expect(shown).to.contain("wrong passphrase, 3 times").and.to.contain("10 wrong ones within a minute");
      expect((await mustStatus(server))["locked"]).to.equal(true);
    }
  });

  it("the tenth wrong passphrase locks the address out, as the message says", async () => {
    const server = await lockedServer();
    for (let count = 0; count < 3; count += 1) await on(server, ["unlock"], [wrong, wrong, wrong]);
    const { code, shown } = await on(server, ["unlock"], [wrong, right]);
    expect(code, shown).to.equal(6);
    expect(shown).to.contain("2 tries left").and.to.contain("too many wrong passphrases");
  });

  it("Ctrl-C at the prompt cancels: exit 13", async () => {
    const { code, shown } = await on(await lockedServer(), ["get", "app/key"], [{ question, keys: "\u0003" }]);
    expect(code, shown).to.equal(13);
    expect(shown).to.contain("cancelled: the vault is still locked");
  });

  it("edit asks when the vault has locked itself during the edit, and stores it", async () => {
    const server = await startLocalServer();
    await mustInit(server, { passphrase });
    const lock = `echo new > $1; "${node}" "${mainFile}" lock -q`;
    const more = { STRONGROOM_HOME: server.home, VISUAL: `sh -c '${lock}' sh` };
    const { code, shown } = await runOnTerminal(["edit", "a"], right, more);
    expect(code, shown).to.equal(0);
    expect((await mustGet(server, "a"))["value"]).to.equal("new");
  });

  it("a locked vault does not ask with --non-interactive, --json or -q, without a terminal, or without a vault", async () => {
    const server = await lockedServer();
    const args = ["get", "app/key"];
    for (const flag of ["--non-interactive", "--json", "-q"]) {
      const { code, shown } = await on(server, [...args, flag], [right]);
      expect({ code, asks: shown.includes(question) }, shown).to.deep.equal({ code: 3, asks: false });
    }
    for (const flags of [["-q"], ["--non-interactive"]]) {
      const { code, shown } = await on(server, ["run", ...flags, ...prefixed], [right]);
      expect({ code, asks: shown.includes(question) }, shown).to.deep.equal({ code: 3, asks: false });
    }
    expect((await strongroom({ STRONGROOM_HOME: server.home }, args)).code).to.equal(3);
    const { code, shown } = await on(await startLocalServer(), args, [right]);
    expect({ code, asks: shown.includes(question) }, shown).to.deep.equal({ code: 8, asks: false });
  });
});
