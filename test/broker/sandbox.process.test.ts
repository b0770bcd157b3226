/** The sandbox of `agent run`: what the program must not reach or change, wherever it stands and whatever it is started from. */
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { quoted } from "../../src/client/ownership.js";
import { brokerRig } from "../../tools/rig/broker-rig.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { isRoot, needs } from "../../tools/rig/needs.js";
import { collect, type Ended, environment, mainFile, node } from "../../tools/rig/process.js";
import { startTestServer } from "../../tools/rig/server.js";
import { mustCreateToken } from "../../tools/rig/test-client.js";
import { hasPython, type Reaction, runProgramOnTerminal } from "../support/pseudo-terminal.js";
import { asUser, give, makeOwnHome, needsSandbox, ownDirectory, runAsUser } from "./plain-user.js";

describe("the sandbox of agent run", function () {
  this.timeout(0);
  const rig = brokerRig();

  type Start = {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    /** Script of the shell that starts the command, before it. */
    readonly before?: string;
    readonly flags?: readonly string[];
  };

  /** A user's home directory, with the vault's home where it is by default. */
  function newUser(): { readonly home: string; readonly vault: string; readonly project: string } {
    const home = ownDirectory(".local", ".local/share", ".local/state", "project");
    const vault = join(home, ".local", "share", "strongroom");
    makeOwnHome(rig().server, vault);
    return { home, vault, project: join(home, "project") };
  }

  function userVariables(home: string, more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    const { server } = rig();
    const places = {
      HOME: home,
      XDG_DATA_HOME: join(home, ".local/share"),
      XDG_STATE_HOME: join(home, ".local/state"),
    };
    return environment({ ...places, STRONGROOM_ADDRESS: server.url, LANG: "C.UTF-8", ...more });
  }

  /** Runs a script in the sandbox. */
  function sandboxed(user: { readonly home: string; readonly project: string }, script: string, start: Start = {}) {
    const { cwd = user.project, env = {}, before = "", flags = [] } = start;
    const args = ["agent", "run", "-q", "--use", "app/", ...flags, "--", "sh", "-c", script];
    return runAsUser(args, { cwd, before, env: userVariables(user.home, env) });
  }

  /** Neither the root token nor a way to it. */
  function mustNotShow({ stdout, stderr }: Ended): void {
    expect(stdout + stderr).not.to.contain(rig().server.token);
  }

  function mustRefuse(ended: Ended, says: string): void {
    expect(ended.stderr).to.contain(says);
    expect(ended.code, ended.stderr).to.be.oneOf([2, 7]);
    expect(ended.stdout).to.equal("");
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
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject).listen(place.replace(/^@/, "\0"), resolve);
    });
    later(() => void socket.close());
    if (place.startsWith("/")) chmodSync(place, 0o777);
    return place;
  }

  describe("programs in the sandbox", () => {
    before(function () {
      needsSandbox(this);
    });

    for (const cwd of ["/", "/tmp", "/proc", "/run"]) {
      it(`a sandboxed program in ${cwd} sees no other process and no file of another user`, async () => {
        const user = newUser();
        const file = join(temporaryDirectory(), "another's");
        writeFileSync(file, "");
        const script = `for each in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $each; echo; done; ls -A /tmp /run; cat ${user.vault}/token`;
        const ended = await sandboxed(user, script, { cwd });
        expect(ended.stdout, ended.stderr).not.to.contain(process.argv[1]).and.not.contain("another's");
        expect(ended.stdout).not.to.contain("postgres");
        expect(ended.stderr).to.contain("token: ");
        mustNotShow(ended);
      });
    }

    it("a sandboxed program reaches no socket of the session, docker, a terminal, a display or a program", async () => {
      const user = newUser();
      const runtime = ownDirectory();
      const elsewhere = ownDirectory();
      const places = [
        await listen(`@strongroom-test-${process.pid}`),
        await listen(join(runtime, "bus")),
        await listen(join(user.project, "agent.sock")),
        await listen(join(elsewhere, "editor.sock")),
        await listen(join("/run", `strongroom-test-${process.pid}.sock`)).catch(() => "/run/docker.sock"),
      ];
      const reached = await collect(spawn("python3", ["-c", connects, ...places])).ended;
      expect(reached.stdout.split("\n")).to.include.members(places.slice(0, 4));
      const env = { XDG_RUNTIME_DIR: runtime, SSH_AUTH_SOCK: join(user.project, "agent.sock"), TMPDIR: user.project };
      const script = `python3 -c '${connects}' ${places.join(" ")}`;
      const { stdout, stderr } = await sandboxed(user, script, { env });
      expect({ stdout, stderr }).to.deep.equal({ stdout: "", stderr: "" });
    });

    it("a sandboxed program reads no file that gives access to the vault, by any of its names", async () => {
      const user = newUser();
      const directory = ownDirectory("keys", "agent");
      const secret = (name: string) => {
        writeFileSync(join(directory, name), rig().server.token, { mode: 0o600 });
        give(join(directory, name));
        return join(directory, name);
      };
      const [token, key, password, pgpass] = ["keys/token", "keys/tls", "keys/store", "keys/pgpass"].map(secret);
      const [own, agent] = [join(user.home, ".pgpass"), secret("agent/id")];
      writeFileSync(own, rig().server.token);
      give(own);
      const [link, home] = [join(directory, "link"), join(directory, "home")];
      symlinkSync(String(token), link);
      symlinkSync(user.vault, home);
      const all = [token, key, password, pgpass, own, agent, link, join(home, "token"), join(user.vault, "token")];
      const ended = await sandboxed(user, `cat ${all.join(" ")}; echo end`, {
        env: {
          ...{ STRONGROOM_HOME: home, STRONGROOM_TOKEN_FILE: link, STRONGROOM_TLS_KEY: String(key) },
          ...{ STRONGROOM_STORE_PASSWORD_FILE: String(password), PGPASSFILE: String(pgpass) },
          SSH_AUTH_SOCK: agent,
        },
      });
      mustNotShow(ended);
      expect(ended.stdout, ended.stderr).to.equal("end\n");
    });

    it("a sandboxed program reads no token of Vault's client, and no vault in the default place", async () => {
      const user = newUser();
      const other = ownDirectory("data");
      const file = join(user.home, ".vault-token");
      writeFileSync(file, rig().server.token, { mode: 0o600 });
      give(file);
      makeOwnHome(rig().server, join(other, "home"));
      const env = { STRONGROOM_HOME: join(other, "home"), XDG_DATA_HOME: join(other, "data") };
      for (const [hidden, cwd] of [file, join(user.vault, "token")].flatMap((path) =>
        [user.home, user.project].map((directory) => [path, directory] as const),
      )) {
        const ended = await sandboxed(user, `cat ${hidden}; echo end`, { cwd, env });
        mustNotShow(ended);
        expect(ended.stdout, ended.stderr).to.equal("end\n");
      }
    });

    it("a sandboxed program writes only to its working directory, /tmp and --write", async () => {
      const user = newUser();
      const other = ownDirectory("given", "kept");
      const [given, kept] = [join(other, "given"), join(other, "kept")];
      const places = [user.project, "/tmp", given, kept, user.home, join(user.home, ".local")];
      const script = places.map((place) => `touch ${place}/written`).join("; ");
      await sandboxed(user, script, { flags: ["--write", given] });
      expect(places.map((place) => existsSync(join(place, "written")))).to.deep.equal([
        true, // the host's /tmp has none:
        false,
        true,
        false,
        false,
        false,
      ]);
    });

    it("a sandboxed program renames no directory above the vault or the marks of allow", async () => {
      for (const place of ["project", "", ".local"]) {
        const user = newUser();
        const share = join(user.home, ".local", "share");
        const marks = join(user.home, ".local", "state", "strongroom", "allowed");
        const script = [
          ...[join(user.home, ".local"), share, user.vault, marks, dirname(marks)].map((each) => `mv ${each} ${each}2`),
          `rm -rf ${user.vault} ${marks}`,
          `mkdir -p ${user.vault} ${marks}; echo > ${user.vault}/token; echo > ${marks}/mark`,
          `find ${user.home} -name token -exec cat {} +`,
        ].join("; ");
        mustNotShow(await sandboxed(user, script, { cwd: join(user.home, place) }));
        expect(readFileSync(join(user.vault, "token"), "utf8"), place).to.contain(rig().server.token);
        expect(existsSync(join(marks, "mark")), place).to.equal(false);
        expect(existsSync(marks), place).to.equal(true);
      }
    });

    it("a sandboxed program reads no home in or below its working directory, nor do two concurrent ones", async () => {
      const user = newUser();
      makeOwnHome(rig().server, join(user.project, "vault"));
      const env = { STRONGROOM_HOME: join(user.project, "vault") };
      const script =
        "mv vault v2; mv ../project ../p2; for i in 1 2 3 4 5 6 7 8; do cat vault/token */token */*/token; sleep 0.1; done";
      const starts = [user.project, user.home].map((cwd) => sandboxed(user, script, { cwd, env }));
      for (const ended of await Promise.all(starts)) mustNotShow(ended);
    });

    it("a sandboxed program creates no file with a hidden name that does not exist", async () => {
      const user = newUser();
      const names = [".pgpass", "token", "no/such/key"];
      const env = { STRONGROOM_TOKEN: rig().server.token, STRONGROOM_TLS_KEY: join(user.home, "no/such/key") };
      const script = names.map((name) => `mkdir -p no/such; echo forged > ${name}`).join("; ");
      await sandboxed(user, script, {
        cwd: user.home,
        env: { ...env, STRONGROOM_TOKEN_FILE: join(user.home, "token") },
      });
      for (const name of names) expect(readFileSync(join(user.home, name), "utf8"), name).to.equal("");
    });

    it("agent run refuses a replaceable link to a hidden file, and a hidden file with a second name", async () => {
      const user = newUser();
      const target = ownDirectory();
      renameSync(join(user.home, ".local", "share"), join(target, "share"));
      symlinkSync(join(target, "share"), join(user.home, ".local", "share"));
      mustRefuse(await sandboxed(user, "true", { cwd: user.home }), "is a link on the way to");
      expect((await sandboxed(user, "echo ran")).stdout).to.equal("ran\n");
      linkSync(join(user.vault, "token"), join(target, "second"));
      mustRefuse(await sandboxed(user, "true"), "has another name (a hard link)");
    });

    it("agent run refuses to start in a hidden directory or in the installed program", async () => {
      const user = newUser();
      mustRefuse(await sandboxed(user, "true", { cwd: user.vault }), "is or lies below");
      mustRefuse(await sandboxed(user, "true", { flags: ["--write", user.vault] }), "which is hidden");
      mustRefuse(await sandboxed(user, "true", { flags: ["--write", dirname(mainFile)] }), "has the installed program");
      mustRefuse(await sandboxed(user, "true", { flags: ["--write", "/"] }), "would open the sandbox");
      mustRefuse(await sandboxed(user, "true", { flags: ["--write", join(user.home, "none")] }), "create it first");
      mustRefuse(await sandboxed(user, "true", { before: `exec 0<${user.home}; ` }), "descriptor 0 is a directory");
    });

    it("a sandboxed program does not see a hidden directory that moves while the sandbox is made", async () => {
      const user = newUser();
      const [share, other] = [join(user.home, ".local", "share"), join(user.home, ".local", "other")];
      mkdirSync(other);
      give(other);
      let isOver = false;
      const running = Promise.all(
        [1, 2, 3].map(() => sandboxed(user, `find ${user.home} -name token -exec cat {} +`, { cwd: user.project })),
      ).finally(() => {
        isOver = true;
      });
      for (let turn = 0; !isOver; turn++) {
        renameSync(share, `${share}2`);
        renameSync(other, share);
        await new Promise((resolve) => setTimeout(resolve, turn % 7));
        renameSync(share, other);
        renameSync(`${share}2`, share);
        await new Promise((resolve) => setTimeout(resolve, turn % 5));
      }
      for (const ended of await running) mustNotShow(ended);
    });

    it("a sandboxed program does not see hidden files below an entry that becomes a link during the start", async () => {
      const user = newUser();
      // Bound into the frame of the vault, wherever the home is; the link would show the vault without its cover.
      const bait = join(user.home, ".local", "share", "bait");
      mkdirSync(bait);
      give(bait);
      const link = join(user.home, "link");
      symlinkSync(join(user.home, ".local"), link);
      let isOver = false;
      const script = `find ${bait}/ -name token -exec cat {} +`;
      const running = sandboxed(user, script, { cwd: user.home }).finally(() => {
        isOver = true;
      });
      while (!isOver && !isPlanned(bait)) await new Promise((resolve) => setTimeout(resolve, 1));
      renameSync(bait, join(user.home, "kept"));
      renameSync(link, bait);
      const ended = await running;
      mustNotShow(ended);
      mustRefuse(ended, `${bait} has changed while the sandbox was made`);
    });

    /** Whether a session's conditions name a path, which are written before its mounts are made. */
    function isPlanned(path: string): boolean {
      const sessions = readdirSync("/tmp").filter((name) => name.startsWith("strongroom-agent-"));
      return sessions.some((name) => readIfThere(join("/tmp", name, "sandbox.json")).includes(path));
    }

    function readIfThere(file: string): string {
      try {
        return readFileSync(file, "utf8");
      } catch {
        return "";
      }
    }

    it("a sandboxed program gets no copy of a token that wget's settings link to", async () => {
      const user = newUser();
      symlinkSync(join(user.vault, "token"), join(user.home, ".wgetrc"));
      const ended = await sandboxed(user, "cat $WGETRC /tmp/strongroom-agent-*/wgetrc /tmp/wgetrc-*");
      mustNotShow(ended);
      expect(ended.stdout).to.contain("ca_certificate = ");
    });

    it("a sandboxed program reads a file as its standard input, and cannot write it", async () => {
      const user = newUser();
      const file = join(user.home, "input");
      writeFileSync(file, "of the user\n");
      give(file);
      const script = "cat; for fd in /proc/[0-9]*/fd/0; do echo changed > $fd; done";
      const ended = await sandboxed(user, script, { before: `exec <${file}; ` });
      expect(ended.stdout, ended.stderr).to.contain("of the user\n");
      expect(readFileSync(file, "utf8")).to.equal("of the user\n");
    });

    it("a sandboxed program sees no token that replaces a hidden one while it runs", async () => {
      const user = newUser();
      const directory = ownDirectory();
      const file = join(directory, "token");
      const replace = () => {
        writeFileSync(`${file}.new`, rig().server.token, { mode: 0o600 });
        give(`${file}.new`);
        renameSync(`${file}.new`, file);
      };
      replace();
      const script = `echo > begun; for i in 1 2 3 4 5 6 7 8 9; do cat ${directory}/*; sleep 0.1; done`;
      const running = sandboxed(user, script, { env: { STRONGROOM_TOKEN_FILE: file } });
      await isMade(join(user.project, "begun"));
      replace();
      mustNotShow(await running);
    });

    it("a sandboxed program ends where a hidden file in its working directory is replaced", async () => {
      const user = newUser();
      const file = join(user.home, ".pgpass");
      const script = "echo > begun; for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done; cat .pgpass";
      const running = sandboxed(user, script, { cwd: user.home });
      await isMade(join(user.home, "begun"));
      writeFileSync(join(user.home, "new"), rig().server.token);
      give(join(user.home, "new"));
      renameSync(join(user.home, "new"), file);
      const ended = await running;
      mustNotShow(ended);
      expect(ended).to.include({ code: 137 });
      expect(ended.stderr).to.contain(".pgpass was replaced");
    });

    it("a sandboxed program gets the command's SIGTERM, and can end in order", async () => {
      const user = newUser();
      const script = "trap 'echo ended; exit 6' TERM; echo > begun; while :; do sleep 0.1; done";
      const running = sandboxed(user, script, { before: "echo $$ > pid; " });
      await isMade(join(user.project, "begun"));
      process.kill(Number(readFileSync(join(user.project, "pid"), "utf8")), "SIGTERM");
      expect(await running).to.deep.equal({ code: 6, stdout: "ended\n", stderr: "" });
    });

    it("a sandboxed program that traces its sandbox does not outlive the command", async function () {
      needs(this, process.arch === "x64", "an x86-64 processor"); // its registers
      const user = newUser();
      const python = `
import ctypes, os, struct, sys, time
library = ctypes.CDLL(None)
registers = ctypes.create_string_buffer(27 * 8)
library.ptrace.argtypes = [ctypes.c_long] * 2 + [ctypes.c_void_p] * 2
if library.ptrace(16, 1, None, None) == 0: # ATTACH
    if sys.argv[1] == "stop": sys.exit(0) # it is then stopped, and reports no end
    os.waitpid(1, 0x40000000)
    library.ptrace(12, 1, None, registers) # GETREGS
    before = registers.raw
    # prctl(PR_SET_PDEATHSIG, 0) at the instruction of its present system call
    for at, number in [(10, 157), (15, (1 << 64) - 1), (14, 1), (13, 0), (16, struct.unpack_from("<Q", before, 128)[0] - 2)]:
        struct.pack_into("<Q", registers, at * 8, number)
    library.ptrace(13, 1, None, registers) # SETREGS
    library.ptrace(9, 1, None, None) # SINGLESTEP
    os.waitpid(1, 0x40000000)
    library.ptrace(13, 1, None, before)
    library.ptrace(17, 1, None, None) # DETACH
open("begun", "w")
while True: time.sleep(1)`;
      const start = (how: string) => {
        const script = `rm -f begun; exec python3 -c '${python}' ${how} ${user.home}`;
        return sandboxed(user, script, { cwd: user.home });
      };
      expect(await start("stop")).to.include({ code: 0 });
      const running = start("detach");
      await isMade(join(user.home, "begun"));
      writeFileSync(join(user.home, "new"), "");
      renameSync(join(user.home, "new"), join(user.home, ".pgpass"));
      expect(await running).to.include({ code: 137 }); // its output has ended, which a survivor would hold open
    });

    async function isMade(file: string): Promise<void> {
      while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
    }

    it("agent run warns where the program can write to the home directory", async () => {
      const user = newUser();
      const start = (cwd: string, ...flags: readonly string[]) =>
        runAsUser(["agent", "run", "--use", "app/", ...flags, "--", "true"], { cwd, env: userVariables(user.home) });
      const says = "warning: the program can write your home directory";
      expect((await start(user.project, "--write", "..")).stderr).to.contain(says);
      expect((await start(user.project)).stderr).not.to.contain(says);
    });

    it("a program in the user's directories or in the project never replaces one of the sandbox's", async () => {
      const user = newUser();
      const bin = join(user.home, "bin");
      const fake = "#!/bin/sh\\necho no sandbox\\n";
      const make = `for name in bwrap unshare script; do printf '${fake}' > ${bin}/$name; chmod 755 ${bin}/$name; done`;
      const modules = join(user.project, "node_modules", ".bin");
      const copy = `mkdir -p ${modules}; cp ${bin}/* ${modules}; cp ${bin}/* ${user.project}`;
      await sandboxed(user, `mkdir ${bin}; ${make}; ${copy}`, { cwd: user.home });
      expect(existsSync(join(user.project, "unshare"))).to.equal(true);
      const path = [modules, ".", "", bin, process.env["PATH"]].join(":");
      const found = await sandboxed(user, "echo ran", { env: { PATH: path } });
      expect(found.stdout, found.stderr).to.equal("ran\n");
      const alone = () =>
        runAsUser(["agent", "run", "--use", "app/", "--", "/bin/true"], {
          env: userVariables(user.home, { PATH: bin }),
        });
      mustRefuse(await alone(), "bin/bwrap is not used, because programs of your user can change /");
      renameSync(join(bin, "bwrap"), join(bin, "former"));
      symlinkSync("/usr/bin/true", join(bin, "bwrap"));
      mustRefuse(await alone(), "bin/bwrap is not used, because programs of your user can change /");
    });

    it("a sandboxed program inherits no open file, and no setting or token of the vault", async () => {
      const user = newUser();
      const numbers = Array.from({ length: 38 }, (_, i) => i + 3);
      const before = `exec ${numbers.map((number) => `${number}<${user.vault}/token`).join(" ")}; `;
      const { token } = rig().server;
      const basic = Buffer.from(`x:${token}`).toString("base64");
      const env = {
        ...{ VAULT_TOKEN: token, HEADERS: `X-Vault-Token: ${token}`, BASIC: `Authorization: Basic ${basic}` },
        ...{ ESCAPED: token.replace("_", "%5f"), HEX: Buffer.from(token).toString("hex") },
      };
      const ended = await sandboxed(user, "ls -l /proc/[0-9]*/fd; env", { before, env });
      mustNotShow(ended);
      expect(ended.stdout).to.contain("AGENT_TOKEN=").and.not.contain(user.vault);
      expect(ended.stdout).not.to.match(/STRONGROOM_|VAULT_TOKEN|HEADERS|BASIC|ESCAPED|HEX/);
    });

    it("a sandboxed program has no privileges, and creates no user namespace", async () => {
      const script = "grep CapBnd /proc/self/status; unshare -U echo made; unshare -r echo made; true";
      const { stdout } = await sandboxed(newUser(), script);
      expect(stdout).to.match(/^CapBnd:\s0+\n$/);
    });

    it("a sandboxed program opens no socket and no keyring that namespaces do not separate", async () => {
      const python = `
import ctypes, platform, socket
for family in [1, 2, 10, 16, 31, 38, 40]:
    try: socket.socket(family, socket.SOCK_RAW if family == 16 else socket.SOCK_STREAM if family != 38 else socket.SOCK_SEQPACKET)
    except OSError as error: print(family, error.errno)
    else: print(family, "opened")
numbers = {"x86_64": [250, 425, 0x40000000 + 41], "aarch64": [219, 425]}[platform.machine()]
library = ctypes.CDLL(None, use_errno=True)
for number in numbers: print(library.syscall(number, 0, 0, 0), ctypes.get_errno())`;
      const { stdout, stderr } = await sandboxed(newUser(), `python3 -c '${python}'`);
      expect(stdout, stderr).to.match(
        /^1 opened\n2 opened\n10 opened\n16 opened\n31 97\n38 97\n40 97\n(?:-1 1\n){2,3}$/,
      );
    });

    it("a sandboxed program uses its working directory, the session's files and the broker", async () => {
      const user = newUser();
      writeFileSync(join(user.project, "mine"), "of the program\n");
      give(join(user.project, "mine"));
      const script = `cat mine; echo more >> mine; curl -sS https://localhost:${rig().upstream.port}/inside`;
      const { stdout, stderr } = await sandboxed(user, script);
      expect(stdout, stderr).to.equal("of the program\nGET /inside 0\n");
      expect(readFileSync(join(user.project, "mine"), "utf8")).to.equal("of the program\nmore\n");
    });

    it("a sandboxed program reaches no host and no port but the broker", async () => {
      const { server, upstream } = rig();
      const places = [`https://127.0.0.1:${server.port}/v1/status`, `https://127.0.0.1:${upstream.port}/direct`];
      const script = `curl -sS -m 5 --noproxy '*' -k ${places.join(" ")}; echo end`;
      expect((await sandboxed(newUser(), script)).stdout).to.equal("end\n");
      expect(upstream.seen.some(({ url }) => url === "/direct")).to.equal(false);
    });

    it("a sandboxed program uses no other token at the broker, by its proxy or at the relay's socket", async () => {
      const { server, upstream } = rig();
      const { token } = await mustCreateToken(server, { name: "found", can: ["use"] });
      const url = `https://localhost:${upstream.port}`;
      const script = `port="\${HTTPS_PROXY##*:}"
        curl -sS -x "http://x:${token}@127.0.0.1:$port" ${url}/found
        curl -sS --noproxy '*' -H "X-Api-Key: ${token}" http://127.0.0.1:$port/r/up/found
        curl -sS --unix-socket /tmp/strongroom-agent-*/broker.sock --noproxy '*' -H "X-Api-Key: ${token}" http://127.0.0.1:$port/r/up/found
        for i in 1 2 3 4 5 6 7 8 9 10 11; do curl -s -o /dev/null -x "http://x:guess-$i@127.0.0.1:$port" ${url}/; done
        curl -sS ${url}/own`;
      const { stdout, stderr } = await sandboxed(newUser(), script);
      expect(stdout.match(/only the session's own token counts/g), stdout + stderr).to.have.length(2);
      expect(stderr).to.match(/CONNECT.*403/);
      expect(stdout).to.match(/GET \/own 0\n$/);
      expect(upstream.seen.map((one) => one.url)).not.to.include("/found");
    });

    it("strongroom says in the sandbox that the vault is out of reach", async () => {
      const ended = await sandboxed(newUser(), `${node} ${mainFile} get app/key`);
      expect(ended).to.include({ code: 10, stdout: "" });
      expect(ended.stderr).to.contain("the vault is out of reach in the sandbox of strongroom agent run");
    });

    it("a sandboxed program reads no secret file that only the server's settings name", async () => {
      const user = newUser();
      const directory = ownDirectory();
      const file = join(directory, "chosen");
      writeFileSync(file, rig().server.token, { mode: 0o600 });
      const server = await startTestServer({ storePasswordFile: file });
      writeFileSync(join(user.vault, "vault", "server.pid"), readFileSync(join(server.home, "vault", "server.pid")));
      chmodSync(join(user.vault, "vault", "server.pid"), 0o600);
      give(file, join(user.vault, "vault", "server.pid"));
      const ended = await sandboxed(user, `cat ${file}; echo end`);
      mustNotShow(ended);
      expect(ended.stdout, ended.stderr).to.equal("end\n");
    });
  });

  describe("terminals of the sandbox", () => {
    before(function () {
      needsSandbox(this);
      needs(this, hasPython(), "Python"); // it makes the terminal
      needs(this, spawnSync("script", ["--version"]).status === 0, "script"); // it makes the inner one
    });

    type User = { readonly home: string; readonly project: string };

    /** The words that run a program in the sandbox, and the shell above them. */
    function onTerminal(user: User, program: readonly string[], reactions: readonly Reaction[], before = "") {
      return shellOnTerminal(user, `${before}exec ${agentWords(program)}`, reactions);
    }

    function agentWords(program: readonly string[]): string {
      return [node, mainFile, "agent", "run", "-q", "--use", "app/", "--", ...program].map(quoted).join(" ");
    }

    function shellOnTerminal({ home, project }: User, script: string, reactions: readonly Reaction[]) {
      const shell = ["/bin/bash", "--norc", "-c", `cd ${project} && ${script}`];
      const variables = Object.entries(userVariables(home)).flatMap(([name, value = ""]) =>
        name === "TMPDIR" ? [] : [[name, value]],
      );
      return runProgramOnTerminal([...asUser(), ...shell], reactions, Object.fromEntries(variables));
    }

    it("a sandboxed shell has job control and follows the size of the terminal", async () => {
      const ended = await onTerminal(
        newUser(),
        ["bash", "--norc", "-i"],
        [
          { question: "$ ", keys: "sh -c 'echo sleep''ing; exec sleep 100'\r" },
          { question: "sleeping\r\n", keys: "\x03" },
          { question: "$ ", keys: "echo status $?\r" },
          { question: "status 130", keys: "sh -c 'echo ag''ain; exec sleep 100'\r" },
          { question: "again\r\n", keys: "\x1a" },
          { question: "Stopped", keys: "sleep 101 &\rfg %1 && echo nev''er\r" },
          { question: "exec sleep 100'\r\n", keys: "\x03" },
          { question: "$ ", size: [33, 77] },
          { question: "", keys: "stty size\r" },
          { question: "33 77", keys: "kill -9 $$\r" },
        ],
      );
      expect(ended.shown).not.to.contain("no job control").and.not.contain("never");
      expect(ended).to.include({ code: 137, echoesAfter: true, left: "" });
    });

    it("a sandboxed program gets Ctrl-C and Ctrl-\\ itself, and continues where it handles them", async () => {
      const script = "trap 'echo caught' INT; trap 'exit 5' QUIT; echo begun; while :; do sleep 0.1; done";
      const ended = await onTerminal(
        newUser(),
        ["sh", "-c", script],
        [
          { question: "begun", keys: "\x03" },
          { question: "caught", keys: "\x03" },
          { question: "caught", keys: "\x1c" },
        ],
      );
      expect(ended, ended.shown).to.include({ code: 5, echoesAfter: true });
    });

    it("a sandboxed program continues where it stops itself or its process group", async () => {
      const script = "echo begun; kill -STOP $$; kill -STOP 0; echo continued; kill -TERM $$";
      const ended = await onTerminal(newUser(), ["sh", "-c", script], []);
      expect(ended.shown).to.contain("continued");
      expect(ended.code).to.equal(143);
    });

    it("a sandboxed program has its own terminal, and puts no input into it", async () => {
      const python = `
import ctypes, fcntl, mmap, os, platform, struct, sys
library = ctypes.CDLL(None, use_errno=True)
for request in [0x5412, 0x541c, 0x5423]:
    for high in [0, 1 << 32]:
        ioctl = {"x86_64": 16, "aarch64": 29}[platform.machine()]
        print("ioctl", library.syscall(ioctl, 0, ctypes.c_ulong(request | high), b"x\\0\\0\\0"), ctypes.get_errno())
    if platform.machine() != "x86_64": continue
    print("x32", library.syscall(0x40000000 + 514, 0, request, b"x\\0\\0\\0"), ctypes.get_errno())
    sys.stdout.flush()
    if os.fork() == 0: # int 0x80 in a page below 4 GiB, which the kernel of a machine may not know
        library.mmap.restype = ctypes.c_void_p
        page = library.mmap(None, ctypes.c_size_t(4096), 7, 0x62, -1, ctypes.c_size_t(0))
        code = b"\\x53\\xb8" + struct.pack("<I", 54) + b"\\xbb" + struct.pack("<I", 0) + b"\\xb9" + struct.pack("<I", request)
        code += b"\\xba" + struct.pack("<I", page + 2048) + b"\\xcd\\x80\\x5b\\xc3"
        ctypes.memmove(page, code, len(code))
        print("i386", ctypes.CFUNCTYPE(ctypes.c_int)(page)())
        sys.stdout.flush()
        os._exit(0)
    os.wait()
print("inside", *{os.major(os.fstat(n).st_rdev) * 1000 + os.minor(os.fstat(n).st_rdev) for n in range(3)})`;
      const before =
        "python3 -c 'import os; d = os.fstat(0).st_rdev; print(\"outside\", os.major(d) * 1000 + os.minor(d))'; ";
      const { shown, code } = await onTerminal(newUser(), ["python3", "-c", python], [], before);
      const lines = shown.trimEnd().split("\r\n");
      expect(code, shown).to.equal(0);
      const [outside = "", inside = ""] = ["outside ", "inside "].map((name) =>
        lines.find((line) => line.startsWith(name)),
      );
      expect(inside.split(" ")).to.have.length(2);
      expect(inside.slice("inside ".length)).not.to.equal(outside.slice("outside ".length));
      const tried = lines.filter((line) => /^(?:ioctl|x32|i386) /.test(line));
      for (const line of tried) expect(line).to.be.oneOf(["ioctl -1 1", "x32 -1 1", "i386 -1"]);
      expect(tried.length).to.be.greaterThan(5);
    });

    it("a sandboxed program in the background reads nothing that is typed to the shell", async () => {
      const user = newUser();
      const program = agentWords(["sh", "-c", "echo > begun; cat > got"]);
      const wait = "until jobs | grep -q Stopped || test -e begun; do sleep 0.1; done; echo no''w";
      const typed = ["one", "two", "three", "four", "five", "six"].map((word) => `echo typed-${word}\r`);
      const { shown } = await shellOnTerminal(user, "exec bash --norc -i", [
        { question: "$ ", keys: `${program} &\r` },
        { question: "$ ", keys: `${wait}\r` },
        { question: "now\r\n", keys: typed[0] ?? "" },
        ...typed.slice(1).map((keys) => ({ question: "$ ", keys })),
        { question: "$ ", keys: "kill %1; fg; exit\r" },
      ]);
      const got = join(user.project, "got");
      expect(existsSync(got) ? readFileSync(got, "utf8") : "", shown).to.equal("");
    });

    it("a sandboxed program keeps redirected streams, and reads no terminal without one as output", async () => {
      const user = newUser();
      const script = `cat; for n in 0 1 2; do test -t $n && echo "terminal $n" >&2; done; echo written
        trap 'echo caught >&2; exit 5' INT; echo begun >&2; while :; do sleep 0.1; done`;
      const ended = await onTerminal(
        user,
        ["sh", "-c", script],
        [{ question: "begun", keys: "\x03" }],
        `exec > ${user.project}/out; `,
      );
      expect(ended.shown).to.contain("terminal 2").and.contain("caught").and.not.contain("terminal 1");
      expect(ended.code, ended.shown).to.equal(5);
      expect(readFileSync(join(user.project, "out"), "utf8")).to.equal("written\n");
      const piped = await shellOnTerminal(
        user,
        `printf 'a\\nb\\n' | ${agentWords(["sh", "-c", "cat; test -t 1 && echo end"])}`,
        [],
      );
      expect(piped.shown).to.match(/^a\r+\nb\r+\nend\r+\n$/);
      expect(piped.code).to.equal(0);
    });
  });

  describe("agent run without a sandbox", () => {
    it("agent run says what to install where bubblewrap is missing, and does not run the program", async function () {
      if (isRoot) needsSandbox(this);
      const user = newUser();
      const directory = ownDirectory("bin");
      writeFileSync(join(directory, "bin", "apt-get"), "#!/bin/sh\n", { mode: 0o755 });
      const program = join(directory, "bin", "program");
      writeFileSync(program, `#!/bin/sh\n: > ${directory}/ran\n`, { mode: 0o755 });
      const env = { PATH: join(directory, "bin") };
      const args = ["agent", "run", "--use", "app/", "--", program];
      const { code, stderr } = await runAsUser(args, { env: userVariables(user.home, env) });
      expect(code).to.equal(2);
      expect(stderr).to.contain("install it with  sudo apt install bubblewrap");
      expect(existsSync(join(directory, "ran"))).to.equal(false);
    });

    it("agent run refuses root without --no-sandbox", async function () {
      needs(this, isRoot, "root");
      const { server } = rig();
      const env = environment({ STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url });
      const run = (...flags: readonly string[]) => {
        const args = [mainFile, "agent", "run", "-q", ...flags, "--", "echo", "ran"];
        return collect(spawn(node, args, { env, cwd: temporaryDirectory() })).ended;
      };
      for (const flags of [[], ["--sandbox"]]) {
        const refused = await run(...flags);
        expect(refused).to.include({ code: 2, stdout: "" });
        expect(refused.stderr).to.contain("root cannot be kept in a sandbox");
      }
      expect(await run("--no-sandbox")).to.deep.equal({ code: 0, stdout: "ran\n", stderr: "" });
    });
  });
});
