/** `strongroom ssh-agent` with OpenSSH's own programs and git. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { needs } from "../../../tools/rig/needs.js";
import { freePort } from "../../../tools/rig/postgres.js";
import { isRunning } from "../../../tools/rig/process.js";
import { shareLocalServer } from "../../../tools/rig/server.js";
import { mustInit, mustLock, mustSucceed, mustUnlock, send } from "../../../tools/rig/test-client.js";
import { must, strongroom } from "../../cli/command-rows.js";
import { runHere } from "../../support/command-here.js";

describe("strongroom ssh-agent", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    for (const type of ["ed25519", "ecdsa-p256", "rsa-2048", "aes256-gcm96"]) {
      mustSucceed(await send(started, { method: "POST", path: `/v1/transit/keys/ssh/${type}`, body: { type } }));
    }
  });
  const here = () => ({ STRONGROOM_HOME: server().home });
  const publicLine = async (name: string) => (await must(here(), ["transit", "show", name, "--ssh"])).trim();
  const tokens = async () => mustSucceed(await send(server(), { path: "/v1/tokens" }))["tokens"] as object[];

  /** Starts an agent in the background; returns what the shell would have. */
  async function startAgent(...flags: readonly string[]): Promise<{ readonly socket: string; readonly pid: number }> {
    const printed = await must(here(), ["ssh-agent", ...flags]);
    const socket = /^SSH_AUTH_SOCK='([^']+)'; export/.exec(printed)?.[1] ?? "";
    const pid = Number(/^SSH_AGENT_PID=(\d+);/m.exec(printed)?.[1]);
    later(() => {
      try {
        process.kill(pid, "SIGTERM");
      } catch {
        // it has ended
      }
    });
    return { socket, pid };
  }

  it("ssh-agent lists the signing keys while a command runs, returns its code and revokes its token", async () => {
    const script = "stat -c %a $SSH_AUTH_SOCK; ssh-add -L; exit 7";
    const { code, stdout: listed } = await strongroom(here(), ["ssh-agent", "--", "sh", "-c", script]);
    expect(code).to.equal(7);
    const lines = [
      await publicLine("ssh/ecdsa-p256"),
      await publicLine("ssh/ed25519"),
      await publicLine("ssh/rsa-2048"),
    ];
    expect(listed.trim().split("\n")).to.deep.equal(["600", ...lines]);
    expect(await tokens()).to.deep.equal([]);
  });

  it("ssh-agent returns 127 for a missing command and 126 for one that cannot run, without a token", async () => {
    for (const [program, code, problem] of [
      ["no-such-command", 127, "no-such-command: the command is not found"],
      ["/etc/passwd", 126, "/etc/passwd: the command cannot be executed (EACCES)"],
    ] as const) {
      const refused = await runHere(["ssh-agent", "--", program], here());
      expect(refused.stderr).to.equal(`strongroom: ${problem}\n`);
      expect(refused.code).to.equal(code);
    }
    expect(await tokens()).to.deep.equal([]);
  });

  it("ssh-agent refuses a token that never expires", async () => {
    for (const zero of ["0", "0s", "0d"]) {
      const { code, stderr } = await runHere(["ssh-agent", "--ttl", zero, "--", "true"], here());
      expect(stderr).to.match(/--ttl must be a duration with its unit, .*of more than 0 and at most 365d/);
      expect(code).to.equal(2);
    }
  });

  it("ssh-agent runs in the background with a token for signing, and is silent while the vault is locked", async () => {
    const env = { ...process.env, SSH_AUTH_SOCK: (await startAgent()).socket };
    expect(statSync(env.SSH_AUTH_SOCK).mode & 0o777).to.equal(0o600);
    expect((await tokens()).map((token) => (token as { can: string[] }).can)).to.deep.equal([["sign"]]);
    const directory = temporaryDirectory();
    const key = join(directory, "key.pub");
    writeFileSync(key, `${await publicLine("ssh/ed25519")}\n`);
    writeFileSync(join(directory, "message"), "a message");
    const sign = () =>
      spawnAndRead("ssh-keygen", ["-Y", "sign", "-n", "file", "-f", key, join(directory, "message")], env);
    expect((await sign()).code).to.equal(0);
    await mustLock(server());
    const refused = await sign();
    expect(refused.code).not.to.equal(0);
    expect(refused.stderr).to.match(/agent refused operation|communication with agent failed/);
    expect((await spawnAndRead("ssh-add", ["-l"], env)).stdout).to.contain("ssh/ed25519");
    const another = await strongroom(here(), ["ssh-agent"]);
    expect(another).to.include({ code: 3, stdout: "" });
    expect(another.stderr).to.contain("the vault is locked: unlock it with  strongroom unlock");
    await mustUnlock(server());
    expect((await sign()).code, "after an unlock").to.equal(0);
  });

  it("ssh-agent signs commits of git, which git verifies, and makes none while the vault is locked", async () => {
    const env = {
      ...process.env,
      SSH_AUTH_SOCK: (await startAgent()).socket,
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_SYSTEM: "/dev/null",
    };
    const directory = temporaryDirectory();
    const line = await publicLine("ssh/ecdsa-p256");
    writeFileSync(join(directory, "allowed"), `me@example.com ${line}\n`);
    writeFileSync(join(directory, "key.pub"), `${line}\n`);
    const runGit = (...args: readonly string[]) =>
      spawnAndRead("git", ["-C", directory, ...settings(directory), ...args], env);
    const git = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await runGit(...args);
      expect(code, stderr).to.equal(0);
      return stdout;
    };
    await git("init", "-q");
    await git("commit", "-q", "--allow-empty", "-S", "-m", "signed");
    expect(await git("log", "--format=%G? %GS")).to.equal("G me@example.com\n");
    await mustLock(server());
    try {
      const refused = await runGit("commit", "-q", "--allow-empty", "-S", "-m", "while locked");
      expect(refused.code).to.equal(128);
      expect(refused.stderr).to.match(/agent refused operation[\s\S]*failed to write commit object/);
    } finally {
      await mustUnlock(server());
    }
    expect(await git("log", "--format=%s")).to.equal("signed\n");
  });

  function settings(directory: string): string[] {
    const values = {
      "user.name": "Me",
      "user.email": "me@example.com",
      "gpg.format": "ssh",
      "user.signingKey": join(directory, "key.pub"),
      "gpg.ssh.allowedSignersFile": join(directory, "allowed"),
    };
    return Object.entries(values).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  }

  it("ssh-agent logs in to sshd with each type of key, and not while the vault is locked", async function () {
    needs(this, existsSync("/usr/sbin/sshd"), "sshd");
    const env = { ...process.env, SSH_AUTH_SOCK: (await startAgent()).socket };
    const directory = temporaryDirectory();
    const port = await startSshd(directory);
    for (const type of ["ecdsa-p256", "rsa-2048"]) {
      const { stdout, stderr } = await (await loginWith(directory, port, type, env))();
      expect(stdout, `${type}: ${stderr}`).to.equal("logged in\n");
    }
    const logIn = await loginWith(directory, port, "ed25519", env);
    await mustLock(server());
    try {
      const locked = await logIn();
      expect([locked.code, locked.stdout]).to.deep.equal([255, ""]);
      expect(locked.stderr)
        .to.match(/sign_and_send_pubkey: .*agent refused operation/)
        .and.match(/Permission denied/);
    } finally {
      await mustUnlock(server());
    }
    expect((await logIn()).stdout).to.equal("logged in\n");
  });

  async function loginWith(directory: string, port: number, type: string, env: NodeJS.ProcessEnv) {
    const line = await publicLine(`ssh/${type}`);
    writeFileSync(join(directory, "authorized_keys"), `${line}\n`, { mode: 0o600 });
    writeFileSync(join(directory, "key.pub"), `${line}\n`);
    const options = ["-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"];
    const only = ["-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-i", join(directory, "key.pub")];
    const target = ["-p", String(port), `${userInfo().username}@127.0.0.1`, "echo", "logged in"];
    return () => spawnAndRead("ssh", [...options, ...only, ...target], env);
  }

  async function startSshd(directory: string): Promise<number> {
    const port = await freePort();
    if (userInfo().uid === 0) mkdirSync("/run/sshd", { recursive: true });
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(directory, "host")]);
    const config = [
      `Port ${port}`,
      "ListenAddress 127.0.0.1",
      `HostKey ${directory}/host`,
      `AuthorizedKeysFile ${directory}/authorized_keys`,
      "PidFile none",
      "StrictModes no",
      "UsePAM no",
      "PasswordAuthentication no",
      "PermitRootLogin prohibit-password",
    ];
    writeFileSync(join(directory, "sshd_config"), `${config.join("\n")}\n`);
    const sshd = spawn("/usr/sbin/sshd", ["-D", "-e", "-f", join(directory, "sshd_config")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    later(() => void sshd.kill());
    await new Promise<void>((listening) => {
      sshd.stderr.on("data", (text: Buffer) => /listening/.test(text.toString()) && listening());
    });
    return port;
  }

  it("ssh-agent asks before each signature with --confirm", async () => {
    const directory = temporaryDirectory();
    const asked = join(directory, "asked");
    const program = join(directory, "askpass");
    writeFileSync(program, `#!/bin/sh\necho "$1" >> ${asked}\ntest -e ${directory}/yes\n`, { mode: 0o700 });
    const asking = { ...here(), SSH_ASKPASS: program, SSH_ASKPASS_REQUIRE: "force" };
    const line = join(directory, "key.pub");
    writeFileSync(line, `${await publicLine("ssh/ed25519")}\n`);
    writeFileSync(join(directory, "message"), "a message");
    const signing = ["ssh-agent", "--confirm", "--", "ssh-keygen", "-Y", "sign", "-n", "file", "-f", line];
    expect((await strongroom(asking, [...signing, join(directory, "message")])).code).not.to.equal(0);
    writeFileSync(join(directory, "yes"), "");
    expect((await strongroom(asking, [...signing, join(directory, "message")])).code).to.equal(0);
    expect(readFileSync(asked, "utf8")).to.equal("Allow a signature with the key ssh/ed25519?\n".repeat(2));
    expect((await strongroom(here(), ["ssh-agent", "--confirm"])).code).to.equal(2);
  });

  it("ssh-agent escapes a key's name in its questions, and where ssh-add shows it", async () => {
    const name = "ssh/\u202e\u3164";
    const odd = `/v1/transit/keys/${encodeURIComponent(name)}`;
    mustSucceed(await send(server(), { method: "POST", path: odd, body: { type: "ed25519" } }));
    const directory = temporaryDirectory();
    const [asked, program, line] = ["asked", "askpass", "key.pub"].map((file) => join(directory, file));
    writeFileSync(program ?? "", `#!/bin/sh\necho "$1" >> ${asked}\n`, { mode: 0o700 });
    writeFileSync(line ?? "", `${await publicLine(name)}\n`);
    writeFileSync(join(directory, "message"), "a message");
    const asking = { ...here(), SSH_ASKPASS: program ?? "", SSH_ASKPASS_REQUIRE: "force" };
    const commands = `ssh-add -L; ssh-keygen -q -Y sign -n file -f ${line} ${directory}/message`;
    const listed = await must(asking, ["ssh-agent", "--confirm", "--", "sh", "-c", commands]);
    expect(listed).to.contain("ssh/\\u{202e}\\u{3164}\n").and.not.to.contain("\u202e");
    expect(readFileSync(asked ?? "", "utf8")).to.equal("Allow a signature with the key ssh/\\u{202e}\\u{3164}?\n");
    mustSucceed(await send(server(), { method: "POST", path: `${odd}/config`, body: { deletionAllowed: true } }));
    mustSucceed(await send(server(), { method: "DELETE", path: odd }));
  });

  it("ssh-agent asks one question at a time, so that an answer is never another one's", async () => {
    const directory = temporaryDirectory();
    const [log, program, line] = ["log", "askpass", "key.pub"].map((name) => join(directory, name));
    writeFileSync(program ?? "", `#!/bin/sh\necho begin >> ${log}\nsleep 0.2\necho end >> ${log}\n`, { mode: 0o700 });
    writeFileSync(line ?? "", `${await publicLine("ssh/ed25519")}\n`);
    const each = [1, 2, 3].map((n) => {
      writeFileSync(join(directory, `message-${n}`), "a message");
      return `ssh-keygen -Y sign -n file -f ${line} ${directory}/message-${n} &`;
    });
    const asking = { ...here(), SSH_ASKPASS: program ?? "", SSH_ASKPASS_REQUIRE: "force" };
    expect(
      (await strongroom(asking, ["ssh-agent", "--confirm", "--", "sh", "-c", `${each.join(" ")} wait`])).code,
    ).to.equal(0);
    expect(readFileSync(log ?? "", "utf8")).to.equal("begin\nend\n".repeat(3));
  });

  it("ssh-agent leaves the other files beside its socket alone when it ends", async () => {
    const directory = join(temporaryDirectory(), "strongroom-ssh-of-mine");
    mkdirSync(directory);
    writeFileSync(join(directory, "mine"), "a file of the user's");
    const { pid } = await startAgent("--socket", join(directory, "agent"));
    process.kill(pid, "SIGTERM");
    while (isRunning(pid)) await new Promise((later) => setTimeout(later, 10));
    expect(readdirSync(directory)).to.deep.equal(["mine"]);
  });

  it("ssh-agent replaces a socket without a listener, and nothing else", async () => {
    const directory = temporaryDirectory();
    const socket = join(directory, "agent");
    const { pid } = await startAgent("--socket", socket);
    expect((await strongroom(here(), ["ssh-agent", "--socket", socket, "--", "true"])).code).to.equal(7);
    process.kill(pid, "SIGKILL");
    while (isRunning(pid)) await new Promise((later) => setTimeout(later, 10));
    expect((await strongroom(here(), ["ssh-agent", "--socket", socket, "--", "true"])).code).to.equal(0);
    writeFileSync(socket, "a file of the user's");
    expect((await strongroom(here(), ["ssh-agent", "--socket", socket, "--", "true"])).code).to.equal(7);
    expect(readFileSync(socket, "utf8")).to.equal("a file of the user's");
  });
});

async function spawnAndRead(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (part: Buffer) => {
    stdout += part.toString();
  });
  child.stderr.on("data", (part: Buffer) => {
    stderr += part.toString();
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}
