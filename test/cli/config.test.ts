/** `strongroom config` and the settings file: what it may hold, who reads it, and how it is changed. */
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { settingsOfStart } from "../../src/cli/kit/args/start-settings.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { startTestServer } from "../../tools/rig/server.js";
import { must, strongroom } from "./command-rows.js";

/** A home with this settings file. */
function homeWith(text: string) {
  const home = join(temporaryDirectory(), "home");
  mkdirSync(home, { mode: 0o700 });
  const file = join(home, "config.toml");
  writeFileSync(file, text, { mode: 0o600 });
  return { home, file, environment: { STRONGROOM_HOME: home } };
}

describe("the settings file", () => {
  it("a setting in the file ranks below flag and variable, with both names of the idle timeout", async () => {
    const { home } = homeWith('audit = "all"\nkeep-versions = 7\nidle-timeout = "8h"\nlog-level = "debug"\n');
    const start = (flags: object, variables: Readonly<Record<string, string>>) =>
      settingsOfStart({ home, ...flags }, variables);
    const { audit, keepVersions, logLevel, port } = await start(
      { logLevel: "warn" },
      { STRONGROOM_KEEP_VERSIONS: "3" },
    );
    expect({ audit, keepVersions, logLevel, port }).to.deep.equal({
      ...{ audit: "all", keepVersions: 3, logLevel: "warn", port: 13100 },
    });
    expect((await start({}, {})).idleTimeoutMs).to.equal(8 * 3_600_000);
    expect((await start({}, { STRONGROOM_IDLE_TIMEOUT_MS: "111" })).idleTimeoutMs).to.equal(111);
    expect((await start({ idleTimeoutMs: "112" }, { STRONGROOM_IDLE_TIMEOUT: "1h" })).idleTimeoutMs).to.equal(112);
  });

  it("the file takes numbers, true and false, lists, and paths that begin at its directory", async () => {
    const { home } = homeWith(
      'review-page = false\nvault-port = 8200\nserver-names = ["a.example", "b.example"]\ntoken-file = "mine/token"\nsocket = "off"\n',
    );
    expect(await settingsOfStart({ home }, {})).to.deep.include({
      vaultPort: 8200,
      serverNames: ["a.example", "b.example"],
      tokenFile: join(home, "mine/token"),
      socket: "off",
    });
  });

  it("a start names every problem of the file together: unknown and excluded members, wrong types and values", async () => {
    const { home, environment } = homeWith(
      'audti = "all"\nport = 99999\ntoken = "x"\nhome = "/"\nhost = 1979-05-27\n[table]\n',
    );
    for (const command of ["serve", "up"]) {
      const { code, stderr } = await strongroom(environment, [command, "--log-level", "loud"]);
      expect(code, stderr).to.equal(2);
      for (const part of [
        ...["unknown setting audti. Did you mean audit?", "name its file with token-file", "the file is in the home"],
        ...[`port in ${home}/config.toml must be`, "host in", "unknown setting table", "--log-level must be one of"],
      ]) {
        expect(stderr).to.contain(part);
      }
    }
  });

  it("a file that is no TOML, not a plain file, or writable for others is refused", async () => {
    const damaged = homeWith('audit = "all"\nport =\n');
    expect((await strongroom(damaged.environment, ["up"])).stderr).to.contain("line 2, column");
    const open = homeWith('audit = "all"\n');
    chmodSync(open.file, 0o666);
    const { code, stderr } = await strongroom(open.environment, ["up"]);
    expect(code).to.equal(2);
    expect(stderr).to.contain(`other users can write to ${open.file}: run  chmod go-w ${open.file}`);
    const linked = homeWith("");
    const other = join(temporaryDirectory(), "home");
    mkdirSync(other, { mode: 0o700 });
    symlinkSync(linked.file, join(other, "config.toml"));
    expect((await strongroom({ STRONGROOM_HOME: other }, ["up"])).stderr).to.contain("is not a plain file");
  });

  it("the file tells commands where the server's token is", async () => {
    const server = await startTestServer();
    const token = join(temporaryDirectory(), "token");
    writeFileSync(token, "t".repeat(40), { mode: 0o600 });
    const environment = { STRONGROOM_HOME: server.home };
    expect((await strongroom(environment, ["token", "ls"])).code).to.equal(0);
    writeFileSync(join(server.home, "config.toml"), `token-file = "${token}"\n`, { mode: 0o600 });
    expect((await strongroom(environment, ["token", "ls"])).code).to.equal(5);
    expect(await must(environment, ["token", "path"])).to.equal(`${token}\n`);
  });
});

describe("strongroom config", () => {
  it("set checks a value, and keeps comments and all other members, also one of several lines", async () => {
    const text = '# mine\naudit = "off" # for now\nserver-names = [\n  "a.example", # one\n]\nport = 14000\n';
    const { file, environment } = homeWith(text);
    expect(await must(environment, ["config", "set", "audit", "all"])).to.equal(`audit is all in ${file}\n`);
    await must(environment, ["config", "set", "--", "--server-names", "b.example,c.example"]);
    await must(environment, ["config", "set", "vault-port", "8200"]);
    const after = '# mine\naudit = "all"\nserver-names = "b.example,c.example"\nport = 14000\nvault-port = 8200\n';
    expect(readFileSync(file, "utf8")).to.equal(after);
    expect(await must(environment, ["config", "get", "vault-port"])).to.equal("8200\n");
    await must(environment, ["config", "unset", "audit"]);
    expect(readFileSync(file, "utf8")).to.equal(after.replace('audit = "all"\n', ""));
    const missing = await strongroom(environment, ["config", "get", "audit"]);
    expect(missing).to.include({
      code: 4,
      stderr: `strongroom: audit is not set in ${file}: the default is changes\n`,
    });
    expect((await strongroom(environment, ["config", "unset", "audit"])).code).to.equal(4);
  });

  it("config set refuses unknown settings and values, and what has no place in the file", async () => {
    const { file, environment } = homeWith("");
    for (const [args, said] of [
      [["set", "audti", "all"], "unknown setting audti. Did you mean audit?"],
      [["set", "audit", "some"], "audit must be one of off, changes, all"],
      [["set", "token", "t".repeat(40)], "the token has no place here"],
      [["set", "home", "/srv"], "the file is in the home"],
      [["set", "store", "postgres://u:geheim@h/d"], "a URL without a password"],
      [["set", "audit"], "<value> is missing"],
      [["get"], "<name> is missing"],
      [["ls", "audit"], "config ls takes no arguments"],
    ] as const) {
      const { code, stderr } = await strongroom(environment, ["config", ...args]);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.contain(said).and.not.contain("geheim").and.not.contain("tttt");
    }
    expect(readFileSync(file, "utf8")).to.equal("");
  });

  it("ls shows what is set and where, what a start would refuse, and unset removes an unknown member", async () => {
    const { file, environment } = homeWith('audit = "all"\nbogus = 1\n');
    const more = { ...environment, STRONGROOM_PORT: "14000" };
    const { code, stdout, stderr } = await strongroom(more, ["config"]);
    expect(code, stderr).to.equal(2);
    expect(stdout).to.equal("port   14000  (STRONGROOM_PORT)\naudit  all\n");
    expect(stderr).to.contain("unknown setting bogus");
    await must(environment, ["config", "unset", "bogus"]);
    expect(JSON.parse(await must(more, ["config", "ls", "--json"]))).to.deep.equal({
      file,
      settings: { port: { value: "14000", source: "variable" }, audit: { value: "all", source: "file" } },
      problems: [],
    });
  });

  it("config set makes the home where there is none, and warns of a pair of settings that is not whole", async () => {
    const home = join(temporaryDirectory(), "new", "home");
    const { code, stderr } = await strongroom({ STRONGROOM_HOME: home }, [
      "config",
      "set",
      "tls-cert",
      "/srv/cert.pem",
    ]);
    expect(code, stderr).to.equal(0);
    expect(stderr).to.contain("warning: no server can start so").and.contain("need each other");
  });
});
