/** Services and containers that find their secrets where they look for them: systemd and podman, unchanged. */
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { blocksIn } from "../../tools/docs/document-files.js";
import { isRoot, needs } from "../../tools/rig/needs.js";
import { collect } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import {
  mustInit,
  mustListPaths,
  mustLock,
  mustPut,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { must, serverEnvironment } from "../cli/command-rows.js";
import { makeClient, mustNeedVault } from "./credential-rig.js";
import { has } from "./programs.js";

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(50);
}

describe("systemd", () => {
  const server = shareLocalServer({}, mustInit);
  const manager = "/lib/systemd/systemd";

  /**
   * Starts a manager of a user in namespaces of its own, where systemd seems to have booted, and by it the unit; and again
   * after its secret is gone.
   */
  const script = `
mount -t tmpfs tmpfs /run && mount --make-rshared / && mkdir -p /run/systemd/system && mkdir -m 700 /run/user
export XDG_RUNTIME_DIR=/run/user
${manager} --user > manager.log 2>&1 < /dev/null &
until systemctl --user show-environment > /dev/null 2>&1; do sleep 0.1; done
start() {
  systemctl --user start example.service; touch started
  while systemctl --user is-active -q example.service; do sleep 0.1; done
  systemctl --user show --property=Result,ExecMainStatus example.service
}
start; touch ended; until test -e gone; do sleep 0.1; done; start
systemctl --user exit
wait
`;
  const inNamespaces = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c"];

  before(function () {
    needs(this, isRoot && existsSync(manager), "root and systemd");
    const mount = "mount -t tmpfs tmpfs /run && mount --make-rshared /";
    needs(this, spawnSync("unshare", [...inNamespaces, mount], { stdio: "ignore" }).status === 0, "namespaces");
  });

  it("systemd gives a unit its credential after an unlock, and fails the unit without the secret", async () => {
    const paths = ["app/db/password", "mail/password"];
    for (const path of paths) await mustPut(server(), path, { value: "s3cret" });
    const unit = (name: string) =>
      blocksIn(readFileSync("docs/extras/credentials.md", "utf8")).find(({ file }) => file === name)?.code ?? "";
    const { home, env } = await makeClient(
      server(),
      { can: ["get"], paths },
      {
        ".config/systemd/user/example.service": unit("example.service"),
        ".config/systemd/user/strongroom-credentials.service": unit("strongroom-credentials.service"),
        "bin/example": '#!/bin/sh\ncat "$2" > shown\nls -l "$2" >> shown\n',
      },
    );
    chmodSync(join(home, "bin/example"), 0o755);
    mkdirSync(join(home, ".local/bin"), { recursive: true });
    symlinkSync(resolve("bin/strongroom.cjs"), join(home, ".local/bin/strongroom"));
    const made = (name: string) => existsSync(join(home, name));
    await mustLock(server());
    const child = spawn("unshare", [...inNamespaces, script], {
      env,
      cwd: home,
      timeout: 150_000,
      killSignal: "SIGKILL",
    });
    const { ended } = collect(child);
    await until(() => made("started") || child.exitCode !== null);
    await sleep(1000);
    expect(made("shown")).to.equal(false);
    await mustUnlock(server());
    await until(() => made("ended") || child.exitCode !== null);
    expect(readFileSync(join(home, "shown"), "utf8")).to.match(/^s3cret-r--------/);
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/app/db/password" }));
    await until(() => !made(".cache/creds/password"));
    writeFileSync(join(home, "gone"), "");
    const { stdout, stderr } = await ended;
    const noCredentials = "Result=exit-code\nExecMainStatus=243\n";
    expect(stdout, stderr).to.equal(`Result=success\nExecMainStatus=0\n${noCredentials}`);
  });
});

describe("podman", () => {
  const server = shareLocalServer({}, mustInit);

  /** A directory for all that podman keeps, with a root file system of the machine's own programs. */
  async function client() {
    const rights = { can: ["list", "get", "put", "delete"], paths: ["podman/"] };
    const config = await must(serverEnvironment(server()), ["podman-secret", "--config"]);
    const made = await makeClient(server(), rights, { "containers.conf": config, value: "s3cret" });
    made.env["CONTAINERS_CONF"] = join(made.home, "containers.conf"); // root's is in /etc
    mkdirSync(join(made.home, "rootfs/usr"), { recursive: true });
    for (const name of ["bin", "lib", "lib64"]) symlinkSync(`usr/${name}`, join(made.home, "rootfs", name));
    const places = ["root", "runroot", "tmpdir"].flatMap((name) => [`--${name}`, join(made.home, name)]);
    const runtime = has("runc", "--version") ? ["--runtime", "runc"] : []; // crun refuses cgroups of both versions
    const flags = [...places, ...runtime, "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"];
    const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"];
    const container = ["--rm", "--network", "none", ...limits, "--volume", "/usr:/usr:ro"];
    return {
      made,
      podman: (...args: readonly string[]) => made.run("podman", ...flags, ...args),
      inContainer: (secrets: readonly string[], ...command: readonly string[]) =>
        made.run(
          "podman",
          ...flags,
          "run",
          ...container,
          ...secrets,
          "--rootfs",
          join(made.home, "rootfs"),
          ...command,
        ),
    };
  }

  before(async function () {
    needs(this, isRoot && has("podman", "--version"), "root and podman");
  });

  it("podman stores its secrets in the vault, and gives them to containers", async function () {
    const { made, podman, inContainer } = await client();
    needs(this, (await inContainer([], "true")).code === 0, "a kernel in which podman runs containers");
    expect(await podman("secret", "create", "db-password", "value")).to.include({ code: 0, stderr: "" });
    const [path = ""] = await mustListPaths(server(), "podman/");
    expect(path).to.match(/^podman\/[0-9a-f]{25}$/);
    const show = () => inContainer(["--secret", "db-password"], "cat", "/run/secrets/db-password");
    await mustNeedVault(server(), made, show, (ended) => expect(ended).to.include({ code: 0, stdout: "s3cret" }));
  });

  it("podman's deletion moves a secret to the trash", async () => {
    const { podman } = await client();
    const before = await mustListPaths(server(), "podman/");
    await podman("secret", "create", "short", "value");
    expect(await mustListPaths(server(), "podman/")).to.have.lengthOf(before.length + 1);
    expect(await podman("secret", "rm", "short")).to.include({ code: 0, stderr: "" });
    expect(await mustListPaths(server(), "podman/")).to.deep.equal(before);
  });
});
