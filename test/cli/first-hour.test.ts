/** A stranger's first hour, on a real terminal (tmux): from nothing to a program that runs with imported secrets. */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { firstPassphrase, hasTmux, type Reaction, Shell } from "../support/shell.js";

const strong = "quiet lamp over 9 rivers";

describe("a stranger's first hour", () => {
  before(function () {
    needs(this, hasTmux(), "tmux");
  });

  it("one terminal leads from nothing to a program with imported secrets", async () => {
    const directory = temporaryDirectory();
    const bin = join(directory, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "strongroom"), `#!/bin/sh\nexec '${node}' -- '${mainFile}' "$@"\n`, { mode: 0o755 });
    const PATH = `${bin}:${process.env["PATH"]}`;
    const terminal = new Shell(directory, {
      HOME: directory,
      PATH,
      STRONGROOM_PORT: "0",
      STRONGROOM_SCRYPT_LOG_N: "14",
    });
    const env = "DB_URL=postgres://localhost/app\nAPI_KEY=abc#def\n";
    writeFileSync(join(directory, ".env"), `${env}SMTP=a#b\n`);

    const none = await terminal.run("strongroom ls", { exit: 10 });
    expect(none).to.contain("start it with  strongroom up");
    expect(await terminal.run("strongroom up --idle-timeout 8h")).to.contain("next: strongroom init");
    later(() => void spawnSync(join(bin, "strongroom"), ["shutdown"], { env: { HOME: directory, PATH } }));
    const created = await terminal.run("strongroom init", {
      reactions: firstPassphrase(strong),
    });
    expect(created).to.contain("initialized and unlocked").and.not.to.contain(strong);
    const first: Reaction = [/Value of app\/first:\s*$/m, "one\n"];
    expect(await terminal.run("strongroom put app/first", { reactions: [first] })).to.contain("stored (3 bytes)");
    await terminal.stop("strongroom put app/second", /Value of app\/second:\s*$/m, "tw");
    const resumed = await terminal.run("fg", { reactions: [[/Value of app\/second:\s*$/m, "o\n"]] });
    expect(resumed).to.contain("stored (3 bytes)").and.not.to.contain("tw");

    const unclear = await terminal.run("strongroom import --format dotenv --prefix app .env", { exit: 2 });
    expect(unclear).to.contain("2 lines are unclear").and.contain("line 2: API_KEY").and.contain("line 3: SMTP");
    writeFileSync(join(directory, ".env"), "DB_URL=postgres://localhost/app\nAPI_KEY='abc#def'\n");
    expect(await terminal.run("strongroom import --format dotenv --prefix app .env")).to.contain("2 created");
    const ran = await terminal.run(`strongroom run --prefix app -- sh -c 'echo got $API_KEY at $DB_URL'`);
    expect(ran).to.contain("got abc#def at postgres://localhost/app");

    expect(await terminal.run("strongroom token revok x", { exit: 2 })).to.contain("Did you mean revoke?");
    expect(await terminal.run("strongroom key rm passphrase", { exit: 2 })).to.contain("the last way into the vault");
    expect(await terminal.run("strongroom status"))
      .to.contain("unlocked")
      .and.contain("in 8 hours without activity");
    expect(await terminal.run("strongroom shutdown")).to.contain("the server has stopped");
  });
});
