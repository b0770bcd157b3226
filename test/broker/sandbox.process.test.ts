/** The sandbox of `agent run`: what the program must not reach, wherever it stands and whatever it is started from. */
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { later, temporaryDirectory } from "../support/clean-up.js";
import { collect, type Ended, environment, mainFile, node } from "../support/process.js";
import { brokerRig } from "./broker-rig.js";

describe("the sandbox of agent run", () => {
  const rig = brokerRig();

  type Start = {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    /** Of a shell, before the command. */
    readonly before?: string;
  };

  /** Runs a program in the sandbox. */
  function sandboxed(command: readonly string[], { cwd, env = {}, before = "" }: Start = {}): Promise<Ended> {
    const { server } = rig();
    const all = environment({ STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url, LANG: "C.UTF-8", ...env });
    const args = [node, mainFile, "agent", "run", "-q", "--sandbox", "--use", "app/", "--", ...command];
    const shell = spawn("/bin/sh", ["-c", `${before}exec "$@"`, "sh", ...args], {
      env: all,
      cwd: cwd ?? temporaryDirectory(),
    });
    return collect(shell).ended;
  }

  /** Prints which of its arguments it can connect to; `@` begins an abstract name, which older Node fills with zeros. */
  const connects = `
import socket, sys
for place in sys.argv[1:]:
    name = "\\0" + place[1:]
    for each in [name, name.ljust(108, "\\0")] if place[0] == "@" else [place]:
        try:
            socket.socket(socket.AF_UNIX).connect(each)
            print(place)
        except OSError: pass`;

  async function listen(place: string): Promise<string> {
    const socket = createServer((connection) => connection.destroy());
    await new Promise<void>((resolve) => socket.listen(place.replace(/^@/, "\0"), resolve));
    later(() => void socket.close());
    return place;
  }

  describe("a program in the sandbox", function () {
    this.timeout(0);
    before(function () {
      if (!existsSync("/usr/bin/bwrap")) this.skip();
    });

    for (const cwd of ["/", "/tmp", "/proc", "/run"]) {
      it(`sees no other process and no file of another's in ${cwd}`, async () => {
        const script = `for each in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $each; echo; done; ls -A /tmp /run; cat ${rig().server.home}/token`;
        const file = join(temporaryDirectory(), "another's");
        writeFileSync(file, "");
        const { stdout, stderr } = await sandboxed(["sh", "-c", script], { cwd });
        expect(stdout, stderr).not.to.contain(process.argv[1]).and.not.contain("another's");
        expect(stdout).not.to.contain(rig().server.token).and.not.contain("postgres");
        expect(stderr).to.contain("token: ");
      });
    }

    it("reaches no socket of the session, of docker, of a terminal or of a display", async () => {
      const runtime = temporaryDirectory();
      const own = temporaryDirectory();
      const places = [
        await listen(`@strongroom-test-${process.pid}`),
        await listen(join(runtime, "bus")),
        await listen(join(own, "agent.sock")),
        await listen(join("/run", `strongroom-test-${process.pid}.sock`)).catch(() => "/run/docker.sock"),
      ];
      const reached = await collect(spawn("python3", ["-c", connects, ...places])).ended;
      expect(reached.stdout.split("\n")).to.include.members(places.slice(0, 3));
      const env = { XDG_RUNTIME_DIR: runtime, SSH_AUTH_SOCK: join(own, "agent.sock"), TMPDIR: own };
      const { stdout, stderr } = await sandboxed(["python3", "-c", connects, ...places], { env, cwd: own });
      expect({ stdout, stderr }).to.deep.equal({ stdout: "", stderr: "" });
    });

    it("reads no token that stands elsewhere, by any of its names, and no home behind a link", async () => {
      const { server } = rig();
      const directory = temporaryDirectory();
      const [token, link, home] = [join(directory, "token"), join(directory, "link"), join(directory, "home")];
      writeFileSync(token, readFileSync(join(server.home, "token")), { mode: 0o600 });
      symlinkSync(token, link);
      symlinkSync(server.home, home);
      const names = [token, link, join(home, "token"), join(realpathSync(server.home), "token")];
      const env = { STRONGROOM_HOME: home, STRONGROOM_TOKEN_FILE: link };
      const { stdout } = await sandboxed(["sh", "-c", `cat ${names.join(" ")}; echo end`], { env, cwd: directory });
      expect(stdout).to.equal("end\n");
    });

    it("allows no project file", async () => {
      const state = temporaryDirectory();
      const allowed = join(state, "strongroom", "allowed");
      const script = `echo > ${allowed}/mark; ls ${allowed}`;
      const { stdout } = await sandboxed(["sh", "-c", script], { env: { XDG_STATE_HOME: state } });
      expect(stdout).to.equal("mark\n"); // in a directory of its own
      expect(existsSync(join(allowed, "mark"))).to.equal(false);
    });

    it("inherits no open file, and no setting or token of the vault", async () => {
      const { server } = rig();
      const script = "ls -l /proc/self/fd; cat <&3; cat <&9; env";
      const { stdout } = await sandboxed(["sh", "-c", script], { before: `exec 3<${server.home}/token 9<&3; ` });
      expect(stdout).to.contain("AGENT_TOKEN=");
      expect(stdout).not.to.contain(server.token).and.not.contain("STRONGROOM_").and.not.contain(server.home);
    });

    it("still has its working directory and the session's files", async () => {
      const cwd = temporaryDirectory();
      writeFileSync(join(cwd, "mine"), "of the program\n");
      const script = `cat mine; echo more >> mine; curl -sS https://localhost:${rig().upstream.port}/inside`;
      const { stdout, stderr } = await sandboxed(["sh", "-c", script], { cwd });
      expect(stdout, stderr).to.equal("of the program\nGET /inside 0\n");
      expect(readFileSync(join(cwd, "mine"), "utf8")).to.equal("of the program\nmore\n");
    });
  });

  describe("agent run --sandbox without bubblewrap", () => {
    it("says what to install, and does not run the program", async () => {
      const directory = temporaryDirectory();
      mkdirSync(join(directory, "bin"));
      const program = join(directory, "bin", "program");
      writeFileSync(program, `#!/bin/sh\n: > ${directory}/ran\n`);
      chmodSync(program, 0o755);
      const { code, stderr } = await sandboxed([program], {
        env: { PATH: join(directory, "bin") },
      });
      expect(code).to.equal(2);
      expect(stderr).to.contain("install it (the program bwrap)");
      expect(existsSync(join(directory, "ran"))).to.equal(false);
    });
  });
});
