/** Lifecycle commands (init, unlock, lock, status, shutdown), and the other commands in each state of the vault. */
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { cleanUpMark, cleanUpTo, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { startLocalServer } from "../../tools/rig/server.js";
import { send } from "../../tools/rig/test-client.js";
import { must, strongroom, testRows } from "./command-rows.js";

const passphrase = "quiet lamp river song";

/** The arguments of each command that needs the vault. */
const needy: Readonly<Record<string, readonly string[]>> = {
  get: ["a"],
  put: ["a"],
  ls: [],
  rm: ["a", "--force"],
  mv: ["a", "b"],
  cp: ["a", "b"],
  edit: ["a"],
  generate: ["a"],
  find: ["a"],
};

function refusals(exit: number, err: RegExp, others: Readonly<Record<string, readonly string[]>> = {}) {
  const rows = Object.entries({ ...needy, ...others });
  return Object.fromEntries(rows.map(([name, args]) => [name, { args: [name, ...args], input: "v", exit, err }]));
}

describe("the command line in each state of the vault", () => {
  let server: ServerProcess;
  let mark = 0;
  const here = () => ({ STRONGROOM_HOME: server.home });
  before(async () => {
    mark = cleanUpMark();
    server = await startProcess();
  });
  after(() => cleanUpTo(mark));

  describe("without a server", () => {
    const others = { init: [], unlock: [], lock: [], status: ["-q"] };
    testRows(() => ({}), {
      ...refusals(10, /no server is running for the vault in .*: start it with {2}strongroom up/, others),
      shutdown: { args: ["shutdown"], exit: 10, err: /no server is running for .*: nothing to stop/ },
      "shutdown at an address": { args: ["shutdown", "--address", "https://localhost:1"], exit: 10 },
      "a home with too long a name": {
        args: ["doctor", "--home", `/tmp/${"a".repeat(300)}`],
        exit: 1,
        err: /^strongroom: .* cannot be used \(ENAMETOOLONG\): choose a shorter name\n$/,
      },
      "a server that is gone": { args: ["status", "--address", "https://localhost:1"], exit: 10 },
      "completion of paths prints nothing": { args: ["complete-paths", "a"], exit: 0 },
    });
  });

  describe("before init", () => {
    testRows(here, {
      ...refusals(8, /there is no vault yet: create one with {2}strongroom init/, { unlock: [] }),
      status: { args: ["status"], exit: 8, out: /no vault/, err: /^$/ },
      "completion of paths prints nothing": { args: ["complete-paths"], exit: 0 },
      "a dry run of init": {
        args: ["init", "--passphrase-file", "-", "--dry-run"],
        input: passphrase,
        exit: 0,
        out: /would be/,
      },
      "init without a terminal": { args: ["init"], exit: 2, err: /--passphrase-file/ },
      "init with --non-interactive": { args: ["init", "--non-interactive"], exit: 2, err: /--non-interactive/ },
      "a missing passphrase file": {
        args: ["init", "--passphrase-file", "canary"],
        exit: 2,
        err: /^(?!.*canary).*the passphrase file cannot be read \(ENOENT\)/s,
      },
      "a new passphrase with a line break": {
        args: ["init", "--passphrase-file", "-"],
        input: "two\nlines\n",
        exit: 2,
        err: /the new passphrase has a line break.*--raw/,
      },
      "a new passphrase with a key's effect in it": {
        args: ["init", "--passphrase-file", "-"],
        input: "one\u0015two words that no one typed\n",
        exit: 2,
        err: /the new passphrase has a control character, .*--raw/,
      },
      "a new passphrase in a file with a byte order mark": {
        args: ["init", "--passphrase-file", "-"],
        input: "\ufeffsix words that no one has typed\n",
        exit: 2,
        err: /the new passphrase has a byte order mark .*--raw/,
      },
      "an empty passphrase": { args: ["init", "--passphrase-file", "-"], exit: 2, err: /empty/ },
    });
  });

  describe("init", () => {
    it("creates and unlocks a vault, and refuses a second one without --force", async () => {
      const init = ["init", "--passphrase-file", "-"];
      expect(await must(here(), init, `${passphrase}\n`)).to.match(/initialized and unlocked/);
      const again = await strongroom(here(), init, passphrase);
      expect(again).to.include({ code: 7, stdout: "" });
      expect(again.stderr).to.contain("strongroom unlock").and.to.contain("--force");
      const tried = await must(here(), [...init, "--force", "--dry-run"], passphrase);
      expect(tried).to.contain("the old one kept beside it").and.to.contain("nothing was done");
      const unasked = await strongroom(here(), [...init, "--force"], passphrase);
      expect(unasked).to.include({ code: 2 });
      expect(unasked.stderr).to.contain("this needs a confirmation").and.to.contain("--yes");
      const forced = JSON.parse(await must(here(), [...init, "--force", "--yes", "--json"], passphrase));
      expect(forced).to.include({ ok: true, vaultPath: server.vaultPath });
      expect(forced.message).to.contain("gen-1");
    });
  });

  describe("while unlocked", () => {
    const tokenless = /^strongroom: (?:STRONGROOM_TOKEN|\/etc\/passwd) does not hold a token: correct it.*\n$/;
    const wrongToken = () => fileWith(`srt_${"x".repeat(43)}`);
    testRows(here, {
      status: {
        args: ["status"],
        exit: 0,
        out: /^the vault is unlocked\n(?:.*\n)* {2}locks {10}in 15 minutes without activity, at (?:[\d-]+ )?\d\d:\d\d:\d\dZ\n/,
      },
      "status as JSON": { args: ["status", "--json"], exit: 0, out: /^\{"initialized":true,"locked":false,.*\}\n$/ },
      "quiet status": { args: ["status", "-q"], exit: 0 },
      "status needs no token": { args: ["status", "-q", "--token-file", "/missing"], exit: 0 },
      "unlock of an unlocked vault": { args: ["unlock"], exit: 0, out: "the vault is already unlocked\n" },
      "a missing token file": {
        args: ["ls", "--token-file", "/missing"],
        exit: 5,
        err: /^strongroom: cannot read \/missing: no such file\n$/,
      },
      "an unknown host": {
        args: ["status", "--address", "https://nohost.invalid"],
        exit: 10,
        err: /the host of https:\/\/nohost\.invalid cannot be found \((?:ENOTFOUND|EAI_AGAIN)\): correct the address, as in STRONGROOM_ADDRESS\n/,
      },
      "a damaged token": {
        args: ["ls"],
        more: { STRONGROOM_TOKEN: `srt_${"A".repeat(49)}` },
        exit: 5,
        err: /^strongroom: the bearer token is damaged \(its checksum does not match\): STRONGROOM_TOKEN is not this server's token, unset it or set the right one\n$/,
      },
      "a directory as token file": {
        args: ["ls"],
        more: { STRONGROOM_TOKEN_FILE: "/" },
        exit: 5,
        err: /^strongroom: cannot read \/ \(STRONGROOM_TOKEN_FILE\): it is a directory\n$/,
      },
      "an invalid token in the environment": {
        args: ["ls"],
        more: { STRONGROOM_TOKEN: "two words" },
        exit: 5,
        err: /unset it/,
      },
      "a response that takes too long": {
        args: ["ls", "--timeout", "1ms"],
        exit: 10,
        err: /no response within 1 ms/,
      },
      "an invalid timeout": { args: ["ls", "--timeout", "soon"], exit: 2, err: /must be a duration/ },
      "an invalid address": { args: ["ls", "--address", "bogus"], exit: 2, err: /https:\/\/localhost/ },
      "an address without TLS": { args: ["ls"], more: { STRONGROOM_ADDRESS: "http://localhost:1" }, exit: 2 },
      "an address with a path": { args: ["ls", "--address", "https://localhost/v1"], exit: 2 },
      "a token of two lines": { args: ["ls"], more: { STRONGROOM_TOKEN: "a\nb" }, exit: 5, err: tokenless },
      "a token file without a token": { args: ["ls", "--token-file", "/etc/passwd"], exit: 5, err: tokenless },
      "a missing certificate": { args: ["ls", "--cacert", "/missing"], exit: 11, err: /\/missing/ },
    });
    it("accepts connection flags before the command's name", async () => {
      const elsewhere = { STRONGROOM_HOME: "/nowhere" };
      for (const flags of [
        ["--home", server.home, "--timeout", "1m"],
        [`--home=${server.home}`, "--json"],
      ]) {
        expect(await must(elsewhere, [...flags, "ls"])).to.be.oneOf(["", '{"entries":[],"damaged":[]}\n']);
      }
    });
    it("exits 5 on a wrong token and names its file", async () => {
      const file = wrongToken();
      const { code, stderr } = await strongroom(here(), ["ls", "--token-file", file]);
      expect(code).to.equal(5);
      expect(stderr).to.contain(file).and.not.to.contain("srt_");
    });
    it("exits 11 on another server's certificate", async () => {
      const other = await startLocalServer({ home: emptyHome() });
      const { code, stderr } = await strongroom(here(), ["ls", "--cacert", other.certificateFile]);
      expect(code).to.equal(11);
      expect(stderr).to.contain("another server answers there");
    });
  });

  describe("while locked", () => {
    before(async () => {
      expect(await must(here(), ["lock"])).to.equal("the vault is locked\n");
    });
    testRows(here, {
      ...refusals(3, /the vault is locked: unlock it with {2}strongroom unlock/),
      status: {
        args: ["status"],
        exit: 3,
        out: /locked: unlock it with {2}strongroom unlock\n(?:.*\n)* {2}locks {10}after 15 minutes without activity\n(?:.*\n)* {2}last lock {6}\d\d:\d\d:\d\dZ, on request\n$/,
        err: /^$/,
      },
      "an error as JSON": {
        args: ["get", "a", "--json"],
        exit: 3,
        err: /^\{"error":"the vault is locked: unlock it with {2}strongroom unlock","code":"VAULT_LOCKED","exit":3\}\n$/,
      },
      "quiet status": { args: ["status", "-q"], exit: 3, err: /^$/ },
      "completion of paths prints nothing": { args: ["complete-paths"], exit: 0 },
      "lock of a locked vault": { args: ["lock", "--json"], exit: 0, out: '{"ok":true}\n' },
      "a wrong passphrase": {
        args: ["unlock", "--passphrase-file", "-"],
        input: "canary",
        exit: 9,
        err: /^(?!.*canary)/s,
      },
      "unlock without a terminal": { args: ["unlock"], exit: 2, err: /no terminal/ },
    });
    it("unlock reads the passphrase from a file", async () => {
      const file = fileWith(`${passphrase}\n`);
      expect(await must(here(), ["unlock", "--passphrase-file", file])).to.equal("the vault is unlocked\n");
      await must(here(), ["lock", "-q"]);
      expect(await must(here(), ["unlock", "--json", "--passphrase-file", file])).to.equal(
        '{"ok":true,"changed":true}\n',
      );
      expect(await must(here(), ["status", "-q"])).to.equal("");
    });
  });

  describe("at the end", () => {
    it("exits 6 after too many wrong passphrases, with the time to wait", async () => {
      await must(here(), ["lock"]);
      const body = { passphrase: "wrong" };
      const local = { ...server, overSocket: true }; // the way the command takes
      for (let n = 0; n < 10; n++) await send(local, { method: "POST", path: "/v1/unlock", body });
      const { code, stderr } = await strongroom(here(), ["unlock", "--passphrase-file", "-"], passphrase);
      expect(code).to.equal(6);
      expect(stderr).to.match(/\(\d+ s\)/);
    });

    it("shutdown stops a server whose process is not visible, as in a container", async () => {
      const contained = await startProcess();
      const home = temporaryDirectory();
      for (const directory of ["tls", "vault"]) mkdirSync(join(home, directory), { mode: 0o700 });
      for (const file of ["token", "tls/cert.pem"]) cpSync(join(contained.home, file), join(home, file));
      writeFileSync(join(home, "vault", "server.pid"), JSON.stringify({ pid: 2 ** 30, url: contained.url }), {
        mode: 0o600,
      });
      expect(await must({ STRONGROOM_HOME: home }, ["shutdown"])).to.match(/stopped/);
      expect((await contained.ended).code).to.equal(0);
    });

    it("shutdown returns once the server has exited", async () => {
      expect(await must(here(), ["shutdown"])).to.match(/stopped/);
      expect(existsSync(join(server.vaultPath, "server.pid"))).to.equal(false);
      expect((await server.ended).code).to.equal(0);
      const { code, stderr } = await strongroom(here(), ["status", "-q", "--address", server.url]);
      expect(code).to.equal(10);
      expect(stderr).to.contain("start it with  strongroom up");
    });
  });
});

function fileWith(text: string): string {
  const file = join(temporaryDirectory(), "file");
  writeFileSync(file, text);
  return file;
}
