/** `strongroom service`: the files for systemd and launchd, and what is asked of a stand-in for systemctl. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { launchAgent, serviceManager, systemdUnit } from "../../src/cli/service/manager.js";
import { withoutControls } from "../../src/cli/service/plan.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { stringIo } from "../../tools/rig/string-io.js";
import { hasPython } from "../support/pseudo-terminal.js";
import { strongroom } from "./command-rows.js";

const plan = {
  program: [node, '/opt/a b/"q" $x %h\\main.cjs', "serve"],
  environment: { STRONGROOM_HOME: "/srv/100% <vault> & $more", STRONGROOM_PORT: "14000" },
};

/** A user of their own, with a systemctl that notes what it is asked, and fails where a file says so. */
function newUser() {
  const home = temporaryDirectory();
  const asked = join(home, "asked");
  const failing = join(home, "failing");
  const bin = join(home, "bin");
  mkdirSync(bin);
  const standIn = `#!/bin/sh\necho "$*" >> ${asked}\n[ ! -e ${failing} ] || { echo "Failed to connect to bus: No medium found" >&2; exit 1; }\n`;
  writeFileSync(join(bin, "systemctl"), standIn, { mode: 0o755 });
  const environment = { HOME: home, XDG_CONFIG_HOME: join(home, "config"), PATH: `${bin}:${process.env["PATH"]}` };
  return {
    file: join(home, "config", "systemd", "user", "strongroom.service"),
    run: (...args: string[]) => strongroom(environment, ["service", ...args]),
    runWith: (more: Readonly<Record<string, string>>, ...args: string[]) =>
      strongroom({ ...environment, ...more }, ["service", ...args]),
    asked: () => (existsSync(asked) ? readFileSync(asked, "utf8").trim().split("\n") : []),
    fail: () => writeFileSync(failing, ""),
  };
}

describe("strongroom service", () => {
  before(function () {
    needs(this, process.platform === "linux", "Linux");
  });

  it("install writes the unit with absolute paths, enables and starts it, and replaces it the next time", async () => {
    const user = newUser();
    const { code, stdout } = await user.run("install", "--home", "somewhere");
    expect(code, stdout).to.equal(0);
    expect(stdout)
      .to.contain(user.file)
      .and.match(/strongroom --home \S*somewhere unlock/);
    const unit = readFileSync(user.file, "utf8");
    expect(unit).to.contain(`ExecStart="${node}" "${mainFile}" "serve"\n`);
    expect(unit).to.match(/^Environment="STRONGROOM_HOME=\/.*\/somewhere"$/m);
    expect(statSync(user.file).mode & 0o777).to.equal(0o600);
    const asked = ["--user daemon-reload", "--user enable strongroom.service", "--user restart strongroom.service"];
    expect(user.asked()).to.deep.equal(asked);
    const again = await user.runWith({ STRONGROOM_PORT: "14000" }, "install", "--json");
    expect(JSON.parse(again.stdout)).to.deep.equal({ ok: true, file: user.file });
    expect(readFileSync(user.file, "utf8")).to.contain('Environment="STRONGROOM_PORT=14000"\n');
  });

  it("install ignores a relative XDG_CONFIG_HOME, as its specification says", async () => {
    const user = newUser();
    const { code, stdout } = await user.runWith({ XDG_CONFIG_HOME: "config" }, "install", "--print", "--json");
    expect(code, stdout).to.equal(0);
    expect((JSON.parse(stdout) as { file: string }).file).to.match(/\/\.config\/systemd\/user\/strongroom\.service$/);
  });

  it("status says whether there is one and whether it runs, in its exit code too", async () => {
    const user = newUser();
    expect(await user.run("status")).to.include({ code: 4, stdout: "no service is installed\n" });
    expect((await user.run("install")).code).to.equal(0);
    const running = await user.run("status", "--json");
    expect(running.code).to.equal(0);
    expect(JSON.parse(running.stdout)).to.deep.equal({ installed: true, running: true, file: user.file });
    user.fail();
    const stopped = await user.run("status");
    expect(stopped.code).to.equal(10);
    expect(stopped.stdout).to.contain("not running").and.contain("journalctl --user -u strongroom");
    const removed = await user.run("uninstall");
    expect(removed.code, removed.stderr).to.equal(0);
    expect(existsSync(user.file), "without a session of systemd as well").to.equal(false);
  });

  it("install decides when the vault locks, and says it", async () => {
    const user = newUser();
    expect((await user.run("install")).stdout).to.contain("it locks after 15m without activity");
    expect(readFileSync(user.file, "utf8"), "it would win over the settings file").not.to.contain("IDLE_TIMEOUT");
    const never = await user.runWith({ STRONGROOM_IDLE_TIMEOUT_MS: "1000" }, "install", "--idle-timeout", "never");
    expect(never.stdout).to.contain("it never locks without activity");
    expect(readFileSync(user.file, "utf8"))
      .to.contain('Environment="STRONGROOM_IDLE_TIMEOUT=never"\n')
      .and.not.contain("_MS");
    await user.runWith({ STRONGROOM_IDLE_TIMEOUT_MS: "1000" }, "install");
    expect(readFileSync(user.file, "utf8"))
      .to.contain('"STRONGROOM_IDLE_TIMEOUT_MS=1000"\n')
      .and.not.contain("TIMEOUT=");
    expect((await user.run("install", "--idle-timeout", "soon")).code).to.equal(2);
  });

  it("install needs no flags for what the settings file has, and refuses what is wrong in it", async () => {
    const [user, home] = [newUser(), join(temporaryDirectory(), "home")];
    const { code, stderr } = await strongroom({ STRONGROOM_HOME: home }, ["config", "set", "idle-timeout", "8h"]);
    expect(code, stderr).to.equal(0);
    expect((await user.run("install", "--home", home)).stdout).to.contain("it locks after 8h without activity");
    expect(readFileSync(user.file, "utf8")).not.to.contain("IDLE_TIMEOUT");
    writeFileSync(join(home, "config.toml"), "idle-timeout = 8\n");
    expect((await user.run("install", "--home", home)).code).to.equal(2);
  });

  it("install warns of a variable that is no setting, which the service would not get", async () => {
    const { code, stderr } = await newUser().runWith({ STRONGROOM_IDLE_TIMOUT: "8h" }, "install");
    expect(code, stderr).to.equal(0);
    expect(stderr).to.contain("STRONGROOM_IDLE_TIMOUT is not a setting");
  });

  it("install refuses a setting that would add lines to the unit", async () => {
    const user = newUser();
    for (const control of ["\r", "\n", "\u0085"]) {
      const home = `/srv/vault${control}ExecStartPre=/bin/false`;
      const { code, stderr } = await user.runWith({ STRONGROOM_HOME: home }, "install", "--print");
      expect(code).to.equal(2);
      expect(stderr).to.contain("STRONGROOM_HOME has a control character");
    }
  });

  it("install refuses a path of the program that would add lines to the unit", () => {
    for (const control of ["\r", "\n"]) {
      const program = [node, `/opt/a${control}ExecStartPre=/bin/false/main.cjs`, "serve"];
      expect(() => withoutControls({ ...plan, program })).to.throw("has a control character");
    }
  });

  it("uninstall stops and removes the service", async () => {
    const user = newUser();
    expect((await user.run("uninstall")).code).to.equal(4);
    expect((await user.run("install")).code).to.equal(0);
    expect((await user.run("uninstall")).code).to.equal(0);
    expect(existsSync(user.file)).to.equal(false);
    expect(user.asked().slice(-2)).to.deep.equal(["--user disable --now strongroom.service", "--user daemon-reload"]);
  });

  it("a unit that service has not written stays untouched, and what systemctl says is reported", async () => {
    const user = newUser();
    mkdirSync(join(user.file, ".."), { recursive: true });
    writeFileSync(user.file, "[Service]\n");
    for (const action of ["install", "uninstall", "status"]) {
      const { code, stderr } = await user.run(action);
      expect(code, action).to.equal(7);
      expect(stderr).to.contain("move it away first");
    }
    expect(readFileSync(user.file, "utf8")).to.equal("[Service]\n");
    expect(user.asked()).to.deep.equal([]);
    const other = newUser();
    other.fail();
    const failed = await other.run("install");
    expect(existsSync(other.file), "no unit is left that would start at the next login").to.equal(false);
    expect(failed).to.include({ code: 1 });
    expect(failed.stderr)
      .to.contain("systemctl --user daemon-reload failed: Failed to connect to bus")
      .and.contain("log in as this user")
      .and.contain("strongroom up");
  });

  it("install --keyring also writes the keyring's unit and what D-Bus starts it by, and uninstall removes both", async () => {
    const user = newUser();
    const data = temporaryDirectory();
    const { code, stdout } = await user.runWith({ XDG_DATA_HOME: data }, "install", "--keyring", "--json");
    expect(code, stdout).to.equal(0);
    const [unit = "", activation = ""] = JSON.parse(stdout).keyring;
    expect(readFileSync(unit, "utf8")).to.match(/^Type=dbus\nBusName=org\.freedesktop\.secrets\n/m);
    expect(readFileSync(unit, "utf8")).to.contain(`ExecStart="${node}" "${mainFile}" "keyring" "--session"\n`);
    expect(activation).to.equal(join(data, "dbus-1", "services", "org.freedesktop.secrets.service"));
    expect(readFileSync(activation, "utf8")).to.contain("SystemdService=strongroom-keyring.service\n");
    expect(user.asked().at(-1)).to.equal("--user daemon-reload");
    expect((await user.runWith({ XDG_DATA_HOME: data }, "uninstall")).code).to.equal(0);
    expect([unit, activation].filter((file) => existsSync(file))).to.deep.equal([]);
  });

  it("install --print only shows the unit, and refuses a token in the environment and invalid settings", async () => {
    const user = newUser();
    const { code, stdout } = await user.run("install", "--print");
    const asJson = JSON.parse((await user.run("install", "--print", "--json")).stdout);
    expect(asJson.file).to.equal(user.file);
    const withoutHome = (unit: string) => unit.replace(/STRONGROOM_HOME=.*/, ""); // each run has a home of its own
    expect(withoutHome(asJson.text)).to.equal(withoutHome(stdout));
    expect(code).to.equal(0);
    expect(stdout).to.match(/^\[Unit\]\n[\s\S]*# Written by strongroom service install\.\n$/);
    expect(existsSync(user.file)).to.equal(false);
    expect(user.asked()).to.deep.equal([]);
    const withToken = await user.runWith({ STRONGROOM_TOKEN: "x".repeat(40) }, "install", "--print");
    expect(withToken.code).to.equal(2);
    expect(withToken.stdout + withToken.stderr).not.to.contain("xxx");
    expect((await user.runWith({ STRONGROOM_PORT: "none" }, "install")).code).to.equal(2);
    expect((await user.run("status", "--print")).code).to.equal(2);
  });
});

describe("the files of a service", () => {
  it("systemd accepts the unit, with its special characters escaped", function () {
    const unit = systemdUnit(plan);
    expect(unit).to.contain('Environment="STRONGROOM_HOME=/srv/100%% <vault> & $more"\n');
    expect(unit).to.contain('"/opt/a b/\\"q\\" $$x %%h\\\\main.cjs" "serve"\n');
    const directory = temporaryDirectory();
    const file = join(directory, "strongroom.service");
    writeFileSync(file, unit.replace(/ExecStart="[^"]*"/, `ExecStart="${node}"`));
    const environment = { ...process.env, XDG_RUNTIME_DIR: directory };
    const verified = spawnSync("systemd-analyze", ["--user", "verify", file], { encoding: "utf8", env: environment });
    needs(this, verified.error === undefined, "systemd-analyze");
    expect(verified.stderr).to.equal("");
    expect(verified.status).to.equal(0);
  });

  it("launchd's file is a property list with the same program and settings", function () {
    needs(this, hasPython(), "Python");
    const read = "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
    const { stdout } = spawnSync("python3", ["-c", read], { input: launchAgent(plan, "/a/log"), encoding: "utf8" });
    expect(JSON.parse(stdout)).to.deep.include({
      ProgramArguments: plan.program,
      EnvironmentVariables: plan.environment,
      RunAtLoad: true,
      Umask: 0o077,
      StandardErrorPath: "/a/log",
    });
    const on = (platform: NodeJS.Platform) => serviceManager(stringIo({ platform }));
    const { file, isRunning, isLoaded } = on("darwin");
    expect(file).to.match(/\/Library\/LaunchAgents\/org\.strongroom\.serve\.plist$/);
    expect(isLoaded.join(" ")).to.match(/^launchctl print gui\/\d+\/org\.strongroom\.serve$/);
    expect(isRunning.join(" ")).to.equal(`sh -c ${isLoaded.join(" ")} | grep -q "state = running"`);
    expect(() => on("win32")).to.throw("systemd and launchd only");
  });
});
