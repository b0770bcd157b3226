/**
 * A stranger's first hour on a terminal of 80 x 24 (tmux), in one script whose steps build on each other: first secret, import,
 * run, browse, tokens, service, backup, restore, upgrade, lock, doctor. `npm run test:long -- stranger` runs it.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { stagePackage } from "../../packaging/packed-manifest.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { isRoot, needs } from "../../tools/rig/needs.js";
import { databaseUrl, freePort, postgresPrograms, startPostgres } from "../../tools/rig/postgres.js";
import { firstPassphrase, hasTmux, type Reaction, Shell } from "../support/shell.js";

const strong = "quiet lamp over 9 rivers";
const passphrase: Reaction = [/Passphrase of the vault:\s*$/m, `${strong}\n`];

/** Installs the package as README does, into a directory of its own; returns that of its commands. */
function install(home: string): string {
  const prefix = join(home, "installed");
  const npm = (...args: readonly string[]) => execFileSync("npm", args, { encoding: "utf8", stdio: "pipe" }).trim();
  const staged = join(home, "package");
  stagePackage(staged);
  const file = join(home, npm("pack", "--ignore-scripts", "--silent", "--pack-destination", home, staged));
  npm("install", "-g", "--offline", "--no-audit", "--no-fund", "--prefix", prefix, file);
  return join(prefix, "bin");
}

const failingSystemctl = "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n";

/** A clipboard that is a file. */
const clipboard = (file: string) => `#!/bin/sh\ncase "$*" in *output*) cat ${file} ;; *) cat > ${file} ;; esac\n`;

describe("a stranger's hour", function () {
  this.bail(true); // each step needs those before it
  this.timeout(0); // the shell waits for its time only
  let home = "";
  let shell: Shell;
  /** Opened when the first one is closed. */
  let nextShell: Shell;
  let typed = 0;
  const at = (name: string) => join(home, name);
  let environment: Readonly<Record<string, string>> = {};
  const run: Shell["run"] = (command, options) => shell.run(command, options);
  const shows = async (command: string, ...words: readonly string[]) => {
    const shown = await run(command);
    for (const word of words) expect(shown).to.contain(word);
  };
  const refuses = async (command: string, exit: number, ...words: readonly string[]) => {
    const shown = (await run(command, { exit })).replaceAll(/\s+/g, " ");
    for (const word of words) expect(shown).to.contain(word);
  };

  before(async function () {
    needs(this, process.env["STRONGROOM_STRANGER"] !== undefined && hasTmux(), "STRONGROOM_STRANGER and tmux");
    home = temporaryDirectory();
    mkdirSync(at("bin"));
    const stand = (name: string, script: string) => writeFileSync(at(`bin/${name}`), script, { mode: 0o755 });
    stand("systemctl", failingSystemctl); // the tests' machine may have a service manager
    stand("xsel", clipboard(at("copied")));
    stand("editor", `#!/bin/sh\nprintf edited > "$1"\n`);
    const PATH = `${at("bin")}:${install(home)}:${process.env["PATH"]}`;
    const settings = { STRONGROOM_PORT: `${await freePort()}`, STRONGROOM_SCRYPT_LOG_N: "14" };
    environment = { HOME: home, PATH, ...settings, TERM: "xterm", DISPLAY: ":0", VISUAL: at("bin/editor") };
    mkdirSync(at("next"));
    const size = { columns: 80, rows: 24, program: "bash --norc --noprofile" };
    shell = new Shell(home, environment, size);
    nextShell = new Shell(home, environment, { ...size, socket: join(home, "next", "tmux") });
    for (const of of [[], ["--home", at("restored")], ["--home", at("in-database")]]) {
      later(() => void spawnSync("strongroom", ["shutdown", ...of], { env: environment }));
    }
  });

  it("fewer than 6 commands in one terminal lead to a first secret", async () => {
    await shows("strongroom up --idle-timeout never", "next: strongroom init");
    await run("strongroom init", {
      reactions: firstPassphrase(strong),
    });
    const value: Reaction = [/Value of app\/db\/password:\s*$/m, "s3cr3t\n"];
    expect(await run("strongroom put app/db/password", { reactions: [value] })).to.contain("stored (6 bytes)");
    typed = shell.commands + 1; // the installation is one more
    expect(typed).to.be.below(6);
    await shows("strongroom get app/db/password", "s3cr3t");
  });

  it("1: status says when the vault locks, and an unknown setting is named", async () => {
    await shows("strongroom status", "unlocked");
    const other = at("other-home");
    await shows(`STRONGROOM_IDLE_TIMEOT=0 STRONGROOM_PORT=0 strongroom up --home ${other}`, "runs in the background");
    await shows(`cat ${other}/serve.log`, "STRONGROOM_IDLE_TIMEOT");
    await shows(`strongroom shutdown --home ${other}`, "the server has stopped");
  });

  it("2: the server survives its terminal, stops, and starts by itself", async () => {
    shell.close();
    shell = nextShell;
    await shows("strongroom status", "unlocked");
    await shows("strongroom shutdown", "the server has stopped");
    await refuses("strongroom ls", 10, "strongroom up");
    await run("strongroom ls --autostart", { reactions: [passphrase] });
  });

  it("3 and 8: import names all unclear lines of an env file together, and run names variables by their path", async () => {
    writeFileSync(at(".env"), "DB_URL=postgres://localhost/app\nAPI_KEY=abc#def\nSMTP=a#b\n");
    await refuses("strongroom import --prefix app .env", 2, "2 lines are unclear", "line 2: API_KEY", "line 3: SMTP");
    writeFileSync(at(".env"), "DB_URL=postgres://localhost/app\nAPI_KEY='abc#def'\n");
    await shows("strongroom import --prefix app .env", "the format is dotenv", "2 created");
    await shows("strongroom run --prefix app/ --name path -- printenv DB_PASSWORD", "s3cr3t");
    writeFileSync(at("logins.csv"), "name,url,username,password\nforum,https://forum.example,bob,pw-1\n");
    await shows("strongroom import --prefix web logins.csv", "created");
    await shows("strongroom ls web/", "forum");
  });

  it("a wrong path or reference is refused with the way to write a field", async () => {
    writeFileSync(at("login.json"), '{"user":"bob"}');
    await shows("strongroom put app/login --from-file login.json", "stored");
    await refuses("strongroom run --set U=app/login#user -- true", 4, "strongroom://app/login#user");
    await shows("strongroom run --set U=strongroom://app/login#user -- printenv U", "bob");
    await refuses("strongroom get strongroom://app/login#user", 2, "strongroom get app/login --field user");
  });

  it("4: loses nothing without a word", async () => {
    await shows("strongroom cp app/login app/copy", "app/copy");
    await shows("strongroom mv --replace app/copy app/login", "app/login");
    await shows("strongroom trash ls", "app/login");
    await shows("strongroom rm app/login -y", "strongroom undo app/login");
    await shows("strongroom undo app/login", "app/login");
  });

  it("5: refuses a passphrase with a line break, and asks before it replaces a vault", async () => {
    writeFileSync(at("two-lines"), "one line\nanother line\n");
    writeFileSync(at("current"), `${strong}\n`);
    const change = "strongroom passphrase --passphrase-file current --new-passphrase-file";
    await refuses(`${change} two-lines`, 2, "line break", "--raw");
    writeFileSync(at("weak"), "hunter2\n");
    await shows(`${change} weak`, "warning: the passphrase is weak");
    await shows("strongroom passphrase --passphrase-file weak --new-passphrase-file current", "changed");
    await run("strongroom init --force", { exit: 13, reactions: [[/empty one\?/, "n\n"]] });
    await refuses("strongroom init --force --passphrase-file current --non-interactive", 2, "--yes");
    await shows("strongroom get app/db/password", "s3cr3t");
  });

  it("6: says in status, doctor and get that a database is down, and continues when it is back", async function () {
    const unreachable = "--store postgres://absent@127.0.0.1:1/none --home nowhere";
    await refuses(
      `STRONGROOM_PORT=0 strongroom up ${unreachable}`,
      1,
      "the database cannot be used",
      "check that it runs",
    );
    needs(this, postgresPrograms !== null, "PostgreSQL");
    const cluster = await startPostgres();
    const store = databaseUrl(cluster.port, await cluster.database());
    await shows(`STRONGROOM_PORT=0 strongroom up --home in-database --store ${store}`, "next: strongroom init");
    await shows("strongroom init --home in-database --passphrase-file current", "initialized and unlocked");
    await shows("strongroom status --home in-database", "unlocked");
    await cluster.kill();
    await refuses("strongroom status --home in-database", 1, "the storage does not respond", "the database");
    await refuses("strongroom doctor --home in-database", 1, "the server cannot use the database");
    await refuses("strongroom get a --home in-database", 1, "the database does not answer or refuses");
    await cluster.start();
    await shows("strongroom status --home in-database", "unlocked");
    await shows("strongroom shutdown --home in-database", "the server has stopped");
  });

  it("browses: search, reveal, versions, lock of the screen by Ctrl-Z, resize, trash and undo", async () => {
    shell.clear();
    shell.type("strongroom browse\n");
    await shell.shows(/Strongroom: \d+ secrets/);
    shell.type("/db/pass\n");
    await shell.shows(/> app\/db\/password/);
    shell.type("r");
    await shell.shows(/s3cr3t/);
    shell.press("C-z");
    await shell.shows(/Stopped/);
    expect(shell.screen()).not.to.contain("s3cr3t");
    shell.type("fg\n");
    await shell.shows(/> app\/db\/password/);
    shell.resize(60, 15);
    await shell.shows(/> app\/db\/password/);
    shell.resize(80, 24);
    shell.type("v");
    await shell.shows(/the first version/);
    shell.press("Escape");
    await shell.shows(/> app\/db\/password/);
    shell.type("d");
    await shell.shows(/Move app\/db\/password to the trash\? \[y\/N\]/);
    shell.type("y\n");
    await shell.shows(/is in the trash/);
    shell.type("t");
    await shell.shows(/In the trash: 1 secret/);
    shell.type("u");
    await shell.shows(/app\/db\/password is back/);
    shell.type("q");
    await shell.shows(/[$#]\s*$/);
    expect(shell.screen()).not.to.contain("s3cr3t");
    await shows("strongroom get app/db/password", "s3cr3t");
  });

  it("browses: copy, edit, one-time code, and the lock of the vault", async () => {
    writeFileSync(at("seed"), "otpauth://totp/me?secret=JBSWY3DPEHPK3PXP");
    await shows("strongroom put web/code --from-file seed", "stored");
    await shows("strongroom put app/note --from-file weak", "stored");
    shell.clear();
    shell.type("strongroom browse\n");
    await shell.shows(/Strongroom: \d+ secrets/);
    shell.type("/db/pass\n");
    await shell.shows(/> app\/db\/password/);
    shell.type("c");
    await shell.shows(/app\/db\/password is in the clipboard for 45 s/);
    expect(readFileSync(at("copied"), "utf8")).to.equal("s3cr3t");
    shell.type("/");
    shell.press("C-u");
    shell.type("app/note\n");
    await shell.shows(/> app\/note/);
    shell.type("e");
    await shell.shows(/app\/note: done/);
    shell.type("/");
    shell.press("C-u");
    shell.type("web/code\n");
    await shell.shows(/> web\/code/);
    shell.type("o");
    await shell.shows(/one-time code of web\/code, valid for \d+ s ─*\n\d{6}$/m);
    shell.type("L");
    await shell.shows(/^the vault is locked/m);
    expect(await run("strongroom get app/note", { reactions: [passphrase] })).to.match(/^edited$/m);
  });

  it("10: gives tokens, completes their names, suggests, and explains what a key's removal means", async () => {
    await shows("strongroom token create ci --path app/ -o ci.token", "ci");
    await shows("STRONGROOM_TOKEN_FILE=ci.token strongroom token whoami", "ci");
    await refuses("STRONGROOM_TOKEN_FILE=ci.token strongroom get web/code", 14, "the path is outside of th");
    await refuses("strongroom token revok ci", 2, "Did you mean revoke?");
    await run("source <(strongroom completion bash)");
    shell.clear();
    shell.type("strongroom token revoke c");
    shell.press("Tab");
    await shell.shows(/token revoke ci/);
    shell.press("C-c");
    await shows("strongroom token revoke ci", "ci");
    await shows("strongroom help help", "usage: strongroom");
    await refuses("strongroom key rm passphrase", 2, "the last way into the vault");
    await refuses("strongroom hlep", 2, "Did you mean help?");
    await run("strongroom key create --label laptop --passphrase-file current -q");
    const kept: Reaction = [/Only .*laptop.* will unlock the vault/s, "n\n"];
    await run("strongroom key rm passphrase", { exit: 13, reactions: [kept] });
    await shows("strongroom key rm laptop -y", "no longer unlocks the vault");
    expect(await run("strongroom audit show")).to.match(/key-delete[^$]*laptop/);
    writeFileSync(at("template"), "password: {{ strongroom://app/db/password }}\n");
    await run("strongroom inject -i template -o filled"); // no XDG_RUNTIME_DIR is set
    expect(readFileSync(at("filled"), "utf8")).to.equal("password: s3cr3t\n");
    await shell.stop("strongroom put app/second", /Value of app\/second:\s*$/m, "tw");
    await run("fg", { reactions: [[/Value of app\/second:\s*$/m, "o\n"]] });
  });

  it("9 and 11: another user has what a token covers, and sees of the rest what the documents say", async function () {
    needs(this, isRoot, "root");
    const otherUser = 65_534; // the kernel's unprivileged user
    const other = temporaryDirectory();
    await shows(`strongroom token create bob --path web/ --can get,list -o ${other}/token`, "bob");
    copyFileSync(at(".local/share/strongroom/tls/cert.pem"), join(other, "cert.pem"));
    chmodSync(join(other, "cert.pem"), 0o644);
    for (const each of [other, join(other, "token")]) chownSync(each, otherUser, otherUser);
    chmodSync(home, 0o711); // the program is in it
    const trust = `STRONGROOM_ADDRESS=https://localhost:${environment["STRONGROOM_PORT"]} STRONGROOM_TLS_CERT=cert.pem`;
    const become = `setpriv --reuid=${otherUser} --regid=${otherUser} --clear-groups env -i TERM=xterm HOME=${other}`;
    const script = `#!/bin/sh\ncd ${other}\nexec ${become} "PATH=$PATH" ${trust} STRONGROOM_TOKEN_FILE=token "$@"\n`;
    writeFileSync(at("bin/bob"), script, { mode: 0o755 });
    await shows("bob strongroom ls web/", "code");
    await shows("bob strongroom get web/forum/password", "pw-1");
    await refuses("bob strongroom otp web/code", 14, "this needs use");
    await refuses("bob strongroom get app/db/password", 14, "the path is outside of th");
    await refuses("bob strongroom audit show", 14);
    await refuses("bob cat ~/.local/share/strongroom/token", 1, "Permission denied");
    const status = await run("bob env -u STRONGROOM_TOKEN_FILE strongroom status");
    expect(status).to.contain("the vault is unlocked").and.contain(at(".local/share/strongroom/vault"));
    expect(status).not.to.contain("app/");
    const readme = readFileSync(at("installed/lib/node_modules/strongroom/README.md"), "utf8");
    const beginning = readme.split("\n").slice(0, 60).join(" ");
    expect(beginning.replaceAll("*", "")).to.contain("can read that token, and with it every secret");
    await shows("strongroom token revoke bob", "bob");
    await refuses("bob strongroom ls web/", 5, "the token was revoked");
  });

  it("1 and 2: leaves no unit without a service manager, and says what to do", async () => {
    await refuses("strongroom service install", 1, "No medium found", "strongroom up");
    await refuses("strongroom service status", 4, "no service is installed");
    expect(existsSync(at(".config/systemd/user/strongroom.service"))).to.equal(false);
  });

  it("backs up, restores into another home, and finds no problem", async () => {
    await shows("strongroom backup vault.tar", "vault.tar");
    await shows("strongroom restore vault.tar --home restored", "secrets");
    await shows("strongroom doctor --home restored", "no problems found");
    await shows("strongroom doctor", "no problems found");
    expect(readFileSync(at("vault.tar"), "latin1")).not.to.contain("s3cr3t");
  });

  it("upgrades: the package is replaced under a running server, and the new one has everything", async () => {
    install(home);
    await shows("strongroom get app/db/password", "s3cr3t");
    await shows("strongroom shutdown", "the server has stopped");
    await shows("strongroom up", "next: strongroom unlock");
    expect(await run("strongroom get app/db/password", { reactions: [passphrase] })).to.contain("s3cr3t");
  });

  it("10: locks, says so in words and as JSON, and stops", async () => {
    await shows("strongroom lock", "the vault is locked");
    await refuses("strongroom ls --json --non-interactive", 3, "VAULT_LOCKED");
    await refuses("strongroom status", 3, "locked");
    await shows("strongroom shutdown", "the server has stopped");
  });
});
