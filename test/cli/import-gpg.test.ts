/** `strongroom import --format pass` of an encrypted store, with the real gpg and keys made for the test. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList } from "../../tools/rig/test-client.js";
import { type Environment, strongroom } from "./command-rows.js";

const entries: Readonly<Record<string, string>> = {
  "web/example": "hunter2\notpauth://totp/me?secret=GEZDGNBVGY3TQOJQ\nuser: me\n",
  "mail/work": "s3cr3t\n",
  "mail/private": "pa55\n",
};

describe("strongroom import of an encrypted password store", () => {
  const server = shareLocalServer({}, mustInit);
  /** GnuPG's home, whose agent is stopped at the end. */
  let keys = "";
  let store = "";

  const gpg = (args: readonly string[], input = "") =>
    execFileSync("gpg", ["--batch", "--quiet", "--pinentry-mode", "loopback", ...args], {
      env: environment({ GNUPGHOME: keys }),
      input,
      stdio: ["pipe", "pipe", "ignore"],
    });

  function encrypt(path: string, text: string, to: string): void {
    const file = join(store, `${path}.gpg`);
    mkdirSync(dirname(file), { recursive: true });
    gpg(["--trust-model", "always", "--encrypt", "--recipient", to, "--output", file], text);
  }

  const here = (more: Environment = {}) => ({ STRONGROOM_HOME: server().home, GNUPGHOME: keys, ...more });
  const importStore = (args: readonly string[], more: Environment = {}) =>
    strongroom(here(more), ["import", "--format", "pass", ...args]);

  before(function () {
    needs(this, spawnSync("gpg", ["--version"]).status === 0, "gpg");
    keys = temporaryDirectory();
    store = temporaryDirectory();
    gpg(["--passphrase", "", "--quick-generate-key", "open@example.org", "future-default", "default", "never"]);
    gpg(["--passphrase", "locked", "--quick-generate-key", "locked@example.org", "future-default", "default", "never"]);
    for (const [path, text] of Object.entries(entries)) encrypt(path, text, "open@example.org");
    writeFileSync(join(store, ".gpg-id"), "open@example.org\n");
    gpg(["--passphrase", "", "--quick-generate-key", "gone@example.org", "future-default", "default", "never"]);
    encrypt("foreign", "value\n", "gone@example.org");
    const [, , fingerprint = ""] =
      String(gpg(["--with-colons", "--list-keys"])).match(/(?<=^fpr:{9})\w+(?=:\n(?:grp.*\n)?uid)/gm) ?? [];
    gpg(["--yes", "--delete-secret-keys", fingerprint]);
    writeFileSync(join(store, "broken.gpg"), "no message of OpenPGP");
    const damaged = readFileSync(join(store, "mail/work.gpg"));
    damaged.set([damaged.at(-5) === 0 ? 1 : 0], damaged.length - 5);
    writeFileSync(join(store, "damaged.gpg"), damaged);
  });
  after(() => {
    if (keys !== "") execFileSync("gpgconf", ["--kill", "all"], { env: environment({ GNUPGHOME: keys }) });
  });

  it("import decrypts the store in memory, and names what gpg cannot decrypt", async () => {
    const { code, stdout, stderr } = await importStore(["--prefix", "store", store]);
    expect(code, stderr).to.equal(2);
    expect(stdout).to.equal("5 created, 0 replaced, 0 unchanged, 0 skipped, 3 not imported\n");
    for (const name of ["broken", "damaged", "foreign"]) expect(stderr).to.contain(`not imported: ${name}.gpg: gpg: `);
    const paths = (await mustList(server(), "?prefix=store/")).map(({ path }) => path);
    expect(paths).to.deep.equal(
      ["mail/private", "mail/work", "web/example", "web/example/notes", "web/example/totp"].map(
        (path) => `store/${path}`,
      ),
    );
    expect((await mustGet(server(), "store/web/example"))["value"]).to.equal("hunter2");
    expect((await mustGet(server(), "store/web/example/notes"))["value"]).to.equal("user: me");
  });

  it("import finds the store of PASSWORD_STORE_DIR", async () => {
    const { stdout } = await importStore(["--prefix", "found", "--dry-run"], { PASSWORD_STORE_DIR: store });
    expect(stdout).to.contain("5 created");
  });

  it("import stops with what to do when gpg's key is locked, and stores nothing", async () => {
    encrypt("a/locked", "value\n", "locked@example.org");
    execFileSync("gpgconf", ["--kill", "gpg-agent"], { env: environment({ GNUPGHOME: keys }) });
    const { code, stderr } = await importStore(["--prefix", "locked", "--non-interactive", store]);
    expect(code).to.equal(1);
    expect(stderr).to.match(
      /^strongroom: gpg cannot unlock the secret key for .*locked\.gpg: unlock it with {2}gpg --decrypt /,
    );
    expect(await mustList(server(), "?prefix=locked/")).to.deep.equal([]);
  });

  it("import of an encrypted store without gpg says so", async () => {
    const { code, stderr } = await importStore([store], { PATH: keys });
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: "strongroom: gpg not found: install GnuPG, which decrypts the password store\n",
    });
  });
});
