/** `strongroom up` and --autostart: a server in the background, its log, and its end. */
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { systemdCommand } from "../../src/cli/service/started-by.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { builtHere, startProcess } from "../../tools/rig/process.js";
import { must, strongroom } from "./command-rows.js";

/** A home of its own, whose server is stopped at the end in any case. */
function newHome(more: Readonly<Record<string, string>> = {}) {
  const home = join(temporaryDirectory(), "home");
  const environment = { STRONGROOM_HOME: home, STRONGROOM_PORT: "0", STRONGROOM_SCRYPT_LOG_N: "14", ...more };
  later(async () => void (await strongroom(environment, ["shutdown", "-q"])));
  return { home, environment };
}

const passphrase = "six words that no one else has typed\n";

describe("strongroom up", () => {
  it("starts a server that outlives the command, once, and leads to the first secret in three commands", async () => {
    const { home, environment } = newHome();
    const log = join(home, "serve.log");
    const started = await must(environment, ["up", "--idle-timeout", "8h"]);
    const [, pid] = /in the background \(pid (\d+), https:\/\/\S+; log: .*serve\.log\)\n/.exec(started) ?? [];
    expect(started, started).to.match(/\nnext: strongroom init\n$/);
    expect(readFileSync(`/proc/${pid}/stat`, "latin1").split(" ")[5], "a session of its own").to.equal(pid);
    await must(environment, ["init", "--passphrase-file", "-"], passphrase);
    await must(environment, ["put", "app/key", "-"], "first");
    expect(JSON.parse(await must(environment, ["status", "--json"]))).to.include({ idleTimeoutMs: 8 * 3_600_000 });
    expect(await must(environment, ["up"])).to.equal(
      `a server is already running (pid ${pid})\n` +
        "idle-timeout 8h was given only to this start: strongroom config set idle-timeout 8h  keeps it\n",
    );
    expect(statSync(log).mode & 0o777).to.equal(0o600);
    expect(readFileSync(log, "utf8")).not.to.contain("first");
    await must(environment, ["shutdown"]);
    expect((await strongroom(environment, ["status"])).code).to.equal(10);
    expect(await must(environment, ["up"])).to.contain("next: strongroom unlock");
  });

  it("refuses a flag or variable that a running server does not have, until --restart applies it", async () => {
    const { home, environment } = newHome();
    await must(environment, ["config", "set", "audit", "all"]);
    await must(environment, ["up", "--log-level", "debug"]);
    const { code, stderr } = await strongroom({ ...environment, STRONGROOM_KEEP_VERSIONS: "3" }, ["up", "--audit=off"]);
    expect(code, stderr).to.equal(7);
    expect(stderr)
      .to.contain("audit off (it has all)")
      .and.contain("keep-versions 3 (it has 10)")
      .and.contain("strongroom up --restart --audit=off");
    const restarted = await strongroom(environment, ["up", "--restart", "--audit=off"]);
    expect(restarted.code, restarted.stderr).to.equal(0);
    expect(restarted.stderr).to.match(
      /^restarting the server \(pid \d+\), which locks the vault; without log-level debug\n$/,
    );
    expect((await must(environment, ["up"])).split("\n").slice(1)).to.deep.equal([
      "audit off was given only to this start: strongroom config set audit off  keeps it",
      "",
    ]);
    expect(readFileSync(join(home, "config.toml"), "utf8"), "the file is as it was").to.equal('audit = "all"\n');
    await must(environment, ["config", "set", "keep-versions", "5"]);
    expect(await must(environment, ["up"])).to.contain("the server does not have keep-versions 5 (it has 10)");
    const asked = await must(environment, ["up", "--audit=off"]);
    expect(asked, "what the call itself gives is not named").not.to.contain("only to this start");
  });

  it("names the command that restarts a server which systemd runs, and leaves it running", async () => {
    const under = ["sh", "-c", 'SYSTEMD_EXEC_PID=$$ exec "$@"', "sh"];
    const { home, child } = await startProcess([], {}, { ...builtHere, under });
    const environment = { STRONGROOM_HOME: home, STRONGROOM_PORT: "0", STRONGROOM_SCRYPT_LOG_N: "14" };
    const { code, stderr } = await strongroom(environment, ["up", "--restart", "--audit", "all"]);
    expect(code, stderr).to.equal(7);
    expect(stderr).to.match(
      /strongroom config set audit all {2}and then {2}systemctl (?:--user )?restart \S+\.service/,
    );
    expect((await strongroom(environment, ["up", "--restart"])).stderr).to.contain(`(pid ${child.pid})`);
    expect(child.exitCode).to.equal(null);
    expect(systemdCommand("/user.slice/user-7.slice/user@7.service/app.slice/strongroom.service")).to.equal(
      "systemctl --user restart strongroom.service",
    );
    expect(systemdCommand("/system.slice/vault.service")).to.equal("systemctl restart vault.service");
  });

  it("warns of a variable that is no setting, which the server would only log, as --autostart does", async () => {
    const { environment } = newHome({ STRONGROOM_IDLE_TIMOUT: "8h" });
    const warning = "warning: STRONGROOM_IDLE_TIMOUT is not a setting: strongroom serve --help lists them\n";
    const { code, stderr } = await strongroom(environment, ["up"]);
    expect(code, stderr).to.equal(0);
    expect(stderr).to.equal(warning);
    await must(environment, ["shutdown"]);
    expect((await strongroom(environment, ["ls", "--autostart"])).stderr).to.contain(warning);
  });

  it("up repeats the message of a server that cannot start", async () => {
    const { environment } = newHome();
    expect(await strongroom(environment, ["up", "--port", "none"])).to.include({ code: 2 });
    const { code, stderr } = await strongroom(environment, ["up", "--tls-cert", "/none", "--tls-key", "/none"]);
    expect(code).to.equal(1);
    expect(stderr).to.match(/^strongroom: .*\/none/);
  });
});

describe("a command whose server is stopped", () => {
  const notRunning =
    /^strongroom: no server is running for the vault in .* \((.*)\): start it with {2}strongroom up --port 0\n$/;

  it("up names another vault's server that has its port", async () => {
    const { home, environment } = newHome();
    await must(environment, ["up"]);
    await must(environment, ["shutdown"]);
    const other = newHome();
    const [, port = ""] = /localhost:(\d+)/.exec(await must(other.environment, ["up"])) ?? [];
    const { code, stderr } = await strongroom({ STRONGROOM_HOME: home, STRONGROOM_PORT: port }, ["ls"]);
    expect(code, stderr).to.equal(10);
    expect(notRunning.exec(stderr)?.[1]).to.equal("another one answers on its port");
  });

  it("up says that a server of another program has its port", async () => {
    const { home, environment } = newHome();
    await must(environment, ["up"]);
    await must(environment, ["shutdown"]);
    const server = createServer((_, res) => res.end("hello"));
    later(() => void server.close());
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const here = { STRONGROOM_HOME: home, STRONGROOM_PORT: String(port) };
    const { code, stderr } = await strongroom(here, ["status"]);
    expect(code, stderr).to.equal(10);
    expect(notRunning.exec(stderr)?.[1]).to.equal("something else answers on its port");
    expect((await strongroom(here, ["status", "--address", `https://localhost:${port}`])).code).to.equal(1);
  });
});

describe("--autostart", () => {
  it("starts a server for a command that finds none, and for no other", async () => {
    const { environment } = newHome();
    const without = await strongroom(environment, ["ls"]);
    expect(without.code).to.equal(10);
    expect(without.stderr).to.contain("start it with  strongroom up");
    const { code, stderr } = await strongroom(environment, ["ls", "--autostart"]);
    expect(code, stderr).to.equal(8);
    expect(stderr).to.match(/^started the server in the background \(pid \d+\)\nstrongroom: there is no vault yet/);
    await must(environment, ["shutdown"]);
    const inEnvironment = { ...environment, STRONGROOM_AUTOSTART: "1" };
    for (const args of [["status"], ["shutdown"], ["ls", "--address", "https://localhost:1"]]) {
      expect((await strongroom(inEnvironment, args)).code, args.join(" ")).to.equal(10);
    }
    expect((await strongroom(inEnvironment, ["ls"])).stderr).to.contain("started the server");
  });
});
