/** `strongroom serve` as a process: command, settings, start line, signals, exit codes, hardening. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { definitions, formatDefault } from "../../src/config/definitions.js";
import { readSettings } from "../../src/config/settings.js";
import { StartError } from "../../src/errors.js";
import { later, shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { collect, environment, mainFile, node, run, startProcess } from "../../tools/rig/process.js";
import { startTestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut, mustStatus, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";

const programDirectory = dirname(dirname(dirname(mainFile)));

/** The message of a start that is refused as a failure of the system, exit 1. */
async function refusalOn(home: string): Promise<string> {
  const refused = await startTestServer({ home }).catch((error: unknown) => error);
  if (!(refused instanceof StartError)) throw new Error("the server started", { cause: refused });
  expect(refused.exitCode).to.equal(1);
  return refused.message;
}

describe("the command", () => {
  for (const args of [["help"], ["--help"], ["-h"]]) {
    it(`strongroom ${args.join(" ")} prints the commands`, async () => {
      const { code, stdout } = await run(args);
      expect(code).to.equal(0);
      expect(stdout).to.contain("serve");
    });
  }

  for (const [args, commit] of [
    [["version"], ""],
    [["--version"], String.raw`(?: \(commit [0-9a-f]{12,}(?:-dirty)?\))?`], // a source without git has none
  ] as const) {
    it(`strongroom ${args.join(" ")} prints the version`, async () => {
      const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
      const { code, stdout, stderr } = await run(args);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
      expect(stdout).to.match(new RegExp(`^${version.replaceAll(".", "\\.")}${commit}\n$`));
    });
  }

  for (const args of [["nonsense"], ["--port", "1"]]) {
    it(`strongroom ${args.join(" ")} exits 2 and shows its usage`, async () => {
      const { code, stdout, stderr } = await run(args);
      expect(code).to.equal(2);
      expect(stdout).to.equal("");
      expect(stderr).to.contain("usage: strongroom");
    });
  }

  it("strongroom serve --help names every flag, variable and default", async () => {
    const { code, stdout } = await run(["serve", "--help"]);
    expect(code).to.equal(0);
    const help = stdout.replace(/\s+/g, " ");
    for (const definition of Object.values(definitions)) {
      const { flag, variable } = definition;
      expect(help).to.contain(flag === null ? variable : `(${variable}; ${formatDefault(definition)})`);
      if (flag !== null) expect(help).to.contain(`--${flag} `);
    }
  });
});

describe("the start line", () => {
  it("the start line names address, chosen port, token file, certificate file and vault, never the token", async () => {
    const server = await startProcess();
    expect(server.port).to.be.above(0);
    await mustInit(server);
    await server.stop();
    const { code, stdout, stderr } = await server.ended;
    expect(code).to.equal(0);
    expect(stdout.split("\n")).to.have.lengthOf(2);
    for (const part of [server.url, server.tokenSource, server.certificateFile, server.vaultPath]) {
      expect(stdout).to.contain(part);
    }
    expect(stdout + stderr).not.to.contain(server.token);
  });
});

describe("the log", () => {
  it("the log has one JSON object per line, from a closed set of fields, without path, body or token", async () => {
    const server = await startProcess(["--log-level", "debug"]);
    await mustInit(server);
    await mustPut(server, "path-canary", { value: "value-canary", description: "description-canary" });
    await send(server, {
      path: "/v1/secrets/path-canary?prefix=query-canary",
      headers: { "x-canary": "header-canary" },
    });
    await server.stop();
    const { stderr } = await server.ended;
    const fields = ["time", "level", "event", "requestId", "method", "route", "status", "code"];
    for (const line of stderr.trimEnd().split("\n")) {
      expect(JSON.parse(line)).to.be.an("object");
      expect([...fields, "address", "durationMs", "count", "hint", "error"]).to.include.members(
        Object.keys(JSON.parse(line)),
      );
    }
    expect(stderr).to.match(/"route":"\/v1\/secrets\/:path","status":200/);
    expect(stderr)
      .not.to.match(/canary|correct horse/)
      .and.not.to.contain(server.token);
  });

  it("a start and a stop at level error log nothing", async () => {
    const server = await startProcess(["--log-level", "error"]);
    await server.stop();
    expect((await server.ended).stderr).to.equal("");
  });
});

describe("settings", () => {
  it("invalid settings stop the start with exit 2 and one message that lists every problem", async () => {
    const { code, stdout, stderr } = await run(["serve", "--port", "99999", "--nonsense", "--host"], {
      STRONGROOM_IDLE_TIMEOUT_MS: "soon",
      STRONGROOM_SCRYPT_LOG_N: "13",
      STRONGROOM_MAX_VALUE_BYTES: "0",
      STRONGROOM_TOKEN: "has a space",
      STRONGROOM_TLS_CERT: "/cert.pem",
      STRONGROOM_LOG_LEVEL: "loud",
    });
    expect(code).to.equal(2);
    expect(stdout).to.equal("");
    for (const named of ["--port", "--nonsense", "--host", "IDLE_TIMEOUT_MS", "SCRYPT_LOG_N", "MAX_VALUE_BYTES"]) {
      expect(stderr).to.contain(named);
    }
    for (const named of ["STRONGROOM_TOKEN", "TLS_CERT", "LOG_LEVEL"]) expect(stderr).to.contain(named);
    expect(stderr).not.to.contain("has a space");
  });

  const bad: readonly (readonly [string, string])[] = [
    ...["-1", "65536", "1.5", "0x10", "http", " "].map((text): [string, string] => ["STRONGROOM_PORT", text]),
    ...["-1", "1e3", "x"].map((text): [string, string] => ["STRONGROOM_IDLE_TIMEOUT_MS", text]),
    ...["13", "21", "17.0"].map((text): [string, string] => ["STRONGROOM_SCRYPT_LOG_N", text]),
    ...["0", "67108865", "1MB"].map((text): [string, string] => ["STRONGROOM_MAX_VALUE_BYTES", text]),
    ...["not a host", "a/b", "-x"].map((text): [string, string] => ["STRONGROOM_HOST", text]),
    ...["a,,b", "a b"].map((text): [string, string] => ["STRONGROOM_SERVER_NAMES", text]),
    ...["two words", "ünï", "t".repeat(31)].map((text): [string, string] => ["STRONGROOM_TOKEN", text]),
  ];
  for (const [variable, text] of bad) {
    it(`${variable}=${JSON.stringify(text)} is refused with exit 2`, () => {
      const read = () => readSettings({}, { [variable]: text });
      expect(read).to.throw(StartError, `${variable} must be`).with.property("exitCode", 2);
    });
  }

  it("a bad flag is listed with the others, and its value is not repeated", async () => {
    const { code, stderr } = await run([
      "serve",
      "--port",
      "1",
      "--port=2",
      "--token=canary",
      "-pcanary",
      "--prot",
      "--host",
    ]);
    expect(code).to.equal(2);
    expect(stderr).to.contain("--port is given more than once").and.to.contain("--host needs a value");
    expect(stderr)
      .to.match(/unknown flag --token\b/)
      .and.to.contain("unknown flag -p\n");
    expect(stderr).to.contain("unknown flag --prot. Did you mean --port?\n").and.not.to.contain("canary");
  });

  it("serve takes no arguments", async () => {
    const { code, stderr } = await run(["serve", "canary"]);
    expect(code).to.equal(2);
    expect(stderr).to.contain("takes no arguments");
  });

  it("a setting is taken from a flag, then from the environment, then from the default", async () => {
    const flags = ["--idle-timeout-ms", "111000", "--scrypt-log-n", "15"];
    const server = await startProcess(flags, { STRONGROOM_IDLE_TIMEOUT_MS: "222" });
    await mustInit(server);
    expect((await mustStatus(server))["idleTimeoutMs"]).to.equal(111_000);
    const header = readFileSync(join(server.home, "vault", "gen-1", "header.json"), "utf8");
    expect(header).to.contain('"logN":15');
    const inEnvironment = { STRONGROOM_IDLE_TIMEOUT_MS: "222" };
    const timeouts = [
      readSettings({ idleTimeoutMs: "111" }, inEnvironment),
      readSettings({}, inEnvironment),
      readSettings({ idleTimeoutMs: "15m" }, {}),
      readSettings({}, {}),
      readSettings({}, { ...inEnvironment, STRONGROOM_IDLE_TIMEOUT: "never" }),
      readSettings({ idleTimeout: "8h" }, inEnvironment),
      readSettings({ idleTimeoutMs: "111" }, { STRONGROOM_IDLE_TIMEOUT: "8h" }),
    ].map(({ idleTimeoutMs }) => idleTimeoutMs);
    expect(timeouts).to.deep.equal([111, 222, 900_000, 900_000, 0, 28_800_000, 111]);
  });

  it("defaults are host 127.0.0.1, port 13100, scrypt N 2^17, values of 1 MiB, an audit of changes", () => {
    const { host, port, scryptLogN, maxValueBytes, idleTimeoutMs, audit } = definitions;
    const named = [host, port, scryptLogN, maxValueBytes, idleTimeoutMs, audit];
    const defaults = named.map(({ fallback }) => fallback({}));
    expect(defaults).to.deep.equal(["127.0.0.1", 13100, 17, 1_048_576, 900_000, "changes"]);
    expect(named.map((definition) => formatDefault(definition))).to.deep.equal(defaults.map(String));
  });

  for (const flag of ["--home", "--token-file", "--port"]) {
    it(`an empty ${flag} is refused`, async () => {
      const { code, stderr } = await run(["serve", flag, ""]);
      expect(code).to.equal(2);
      expect(stderr).to.contain(`${flag} needs a value`);
    });
  }

  it("STRONGROOM_TOKEN is the token, and no token file is created", async () => {
    const server = await startProcess([], { STRONGROOM_TOKEN: "chosen-token-of-32-characters-000" });
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock", token: "chosen-token-of-32-characters-000" }));
    expect(existsSync(join(server.home, "token"))).to.equal(false);
  });

  it("STRONGROOM_TOKEN_FILE is read, and must exist and hold a token", async () => {
    const file = join(temporaryDirectory(), "token");
    const missing = await run(["serve", "--port", "0"], { STRONGROOM_TOKEN_FILE: file });
    expect(missing.code).to.equal(1);
    expect(missing.stderr).to.contain(file);
    writeFileSync(file, "two words\n");
    const wrong = await run(["serve", "--port", "0"], { STRONGROOM_TOKEN_FILE: file });
    expect(wrong.code).to.equal(1);
    expect(wrong.stderr).to.contain(file).and.not.to.contain("two words");
    writeFileSync(file, `${"t".repeat(31)}\n`);
    const short = await run(["serve", "--port", "0"], { STRONGROOM_TOKEN_FILE: file });
    expect(short.code).to.equal(1);
    expect(short.stderr).to.contain("shorter than 32 characters").and.not.to.contain("tttt");
    writeFileSync(file, "from-a-file-of-32-characters-0000\n");
    const server = await startProcess([], { STRONGROOM_TOKEN_FILE: file });
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock", token: "from-a-file-of-32-characters-0000" }));
    expect(existsSync(join(server.home, "token"))).to.equal(false);
  });

  it("the home is in the platform's data directory by default", async () => {
    const base = temporaryDirectory();
    const { code, stderr } = await run(["serve", "--tls-cert", "/missing", "--tls-key", "/missing"], {
      XDG_DATA_HOME: base,
    });
    expect(code).to.equal(1);
    expect(stderr).to.contain("/missing");
    expect(existsSync(join(base, "strongroom", "vault"))).to.equal(true);
  });
});

describe("the home directory", () => {
  it("the home's token has 32 random bytes, base64url, prefix srt_, and stays across restarts", async () => {
    const first = await startProcess([], { STRONGROOM_HOME: emptyHome() });
    expect(first.token).to.match(/^srt_[A-Za-z0-9_-]{49}$/);
    await first.stop();
    const second = await startTestServer({ home: first.home });
    expect(second.token).to.equal(first.token);
    expect(second.certificate).to.equal(first.certificate);
  });

  it("a damaged token is told from a wrong one, in its file and in a request", async () => {
    const server = await startTestServer();
    const { token } = server;
    for (const damaged of [
      token.slice(0, -1),
      `${token}A`,
      token.replace(/.{9}$/, (end) => [...end].reverse().join("")),
    ])
      expect((await send(server, { path: "/v1/tokens/self", token: damaged })).json["error"]).to.contain("damaged");
    const wrong = await send(server, { path: "/v1/tokens/self", token: `srt_${"A".repeat(43)}` });
    expect(wrong.json["error"]).to.contain("missing or wrong");
    await server.stop();
    writeFileSync(join(server.home, "token"), token.slice(0, -3));
    expect(await refusalOn(server.home))
      .to.contain("is damaged")
      .and.to.contain("token rotate");
    writeFileSync(join(server.home, "token"), `srt_${"A".repeat(43)}\n`); // of an earlier version
    await startTestServer({ home: server.home });
  });

  it("directories have mode 0700, files 0600 and the certificate at most 0644, whatever the umask", async () => {
    const before = process.umask(0);
    try {
      const server = await startProcess([], { STRONGROOM_HOME: emptyHome() });
      await mustInit(server);
      await mustPut(server, "a/b", "v");
      const mode = (...parts: string[]) => (statSync(join(server.home, ...parts)).mode & 0o777).toString(8);
      for (const directory of [[], ["tls"], ["vault"], ["vault", "gen-1"], ["vault", "gen-1", "secrets", "a"]]) {
        expect(mode(...directory), directory.join("/")).to.equal("700");
      }
      for (const file of [["token"], ["tls", "key.pem"], ["vault", "current"], ["vault", "server.pid"]]) {
        expect(mode(...file), file.join("/")).to.equal("600");
      }
      expect(mode("vault", "gen-1", "header.json")).to.equal("600");
      expect(mode("vault", "gen-1", "secrets", "a", "b.sealed")).to.equal("600");
      expect(mode("tls", "cert.pem")).to.be.oneOf(["600", "644"]);
    } finally {
      process.umask(before);
    }
  });

  const loosened: readonly (readonly [string, number, string])[] = [
    ["", 0o750, "chmod 700"],
    ["tls", 0o755, "chmod 700"],
    ["vault", 0o770, "chmod 700"],
    ["token", 0o644, "chmod 600"],
    ["tls/key.pem", 0o640, "chmod 600"],
    ["tls/cert.pem", 0o666, "chmod 644"],
  ];
  for (const [name, mode, says] of loosened) {
    it(`mode ${mode.toString(8)} on ${name || "the home"} is refused with the command that fixes it`, async () => {
      const first = await startTestServer();
      await first.stop();
      chmodSync(join(first.home, name), mode);
      expect(await refusalOn(first.home)).to.contain(`${says} ${join(first.home, name)}`);
    });
  }

  it("a home may be a link to a directory that passes the same checks", async () => {
    const target = join(temporaryDirectory(), "target");
    const home = join(temporaryDirectory(), "link");
    mkdirSync(target, { mode: 0o700 });
    symlinkSync(target, home);
    const server = await startTestServer({ home });
    await mustInit(server);
    expect((await mustStatus(server))["vaultPath"]).to.equal(join(home, "vault"));
    await server.stop();
    chmodSync(target, 0o777);
    expect(await refusalOn(home)).to.contain("chmod 700");
  });

  it("files of an interrupted start are removed", async () => {
    const first = await startTestServer();
    await first.stop();
    for (const directory of ["", "tls"])
      writeFileSync(join(first.home, directory, ".tmp-0123456789abcdef"), "half a secret");
    await startTestServer({ home: first.home });
    for (const directory of ["", "tls"])
      expect(existsSync(join(first.home, directory, ".tmp-0123456789abcdef"))).to.equal(false);
  });

  it("a start refused by another server, whose pid it names, leaves the home unchanged", async () => {
    const first = await startProcess();
    const { code, stderr } = await run(["serve", "--port", "0", "--server-names", "vault.test"], {
      STRONGROOM_HOME: first.home,
    });
    expect(code).to.equal(1);
    expect(stderr).to.contain(`pid ${first.child.pid}`);
    expect(readFileSync(first.certificateFile, "utf8")).to.equal(first.certificate);
  });

  it("a link in place of the vault is refused", async () => {
    const home = join(temporaryDirectory(), "home");
    mkdirSync(home, { mode: 0o700 });
    symlinkSync(temporaryDirectory(), join(home, "vault"));
    expect(await refusalOn(home)).to.contain("is not a directory");
  });
});

describe("starts that fail", () => {
  it("a start that fails at a file of the vault names the file", async () => {
    const first = await startProcess();
    await first.stop();
    mkdirSync(join(first.home, "vault", "server.pid"));
    const { code, stderr } = await run(["serve", "--port", "0"], { STRONGROOM_HOME: first.home });
    expect(code).to.equal(1);
    expect(stderr).to.contain(join(first.home, "vault", "server.pid"));
  });

  it("a start on a taken port names the port, ends, and releases the vault", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    later(() => void taken.close());
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const home = join(temporaryDirectory(), "home");
    for (const flag of ["--port", "--broker-port"]) {
      const settings = { STRONGROOM_HOME: home, STRONGROOM_PORT: "0", STRONGROOM_VAULT_PORT: "0" };
      const { code, stderr } = await run(["serve", flag, String(port)], settings);
      expect(code).to.equal(1);
      expect(stderr).to.contain(`port ${port}`).and.to.contain(flag);
    }
    await startProcess([], { STRONGROOM_HOME: home });
  });

  const missing: readonly (readonly [file: string, message: string])[] = [
    ["dist/openapi.json", "openapi.json is missing or damaged: install strongroom again"],
    ["dist/workers/key-worker.cjs", "the key worker does not start: install strongroom again"],
    ["dist/program/broker-thread.cjs", "the broker's thread ended before it listened"],
  ];
  for (const [file, message] of missing) {
    it(`a program without its ${file} ends and says why`, async () => {
      const program = join(temporaryDirectory(), "program");
      for (const part of ["dist/program", "dist/workers/key-worker.cjs", "package.json", "dist/openapi.json"])
        cpSync(join(programDirectory, part), join(program, part), { recursive: true });
      rmSync(join(program, file));
      const args = [join(program, "dist/program/entry.cjs"), "serve", "--port", "0", "--broker-port", "0"];
      const home = join(temporaryDirectory(), "home");
      const { code, stderr } = await collect(spawn(node, args, { env: environment({ STRONGROOM_HOME: home }) })).ended;
      expect(code).to.equal(1);
      expect(stderr).to.contain(message);
    });
  }

  const damaged: readonly (readonly [string, string, string])[] = [
    ["a truncated header", "gen-1/header.json", '{"format":"strongroom"'],
    ["a header with other parameters", "gen-1/header.json", "{}"],
    ["a pointer to nothing", "current", "gen-7\n"],
    ["an invalid pointer", "current", "../../etc\n"],
  ];
  for (const [name, file, text] of damaged) {
    it(`a start with ${name} says so, and changes nothing`, async () => {
      const first = await startTestServer();
      await mustInit(first);
      await mustPut(first, "a", "v");
      await first.stop();
      writeFileSync(join(first.home, "vault", file), text);
      expect(await refusalOn(first.home)).to.contain(join(first.home, "vault"));
      expect(readFileSync(join(first.home, "vault", file), "utf8")).to.equal(text);
      expect(existsSync(join(first.home, "vault", "gen-1", "secrets", "a.sealed"))).to.equal(true);
    });
  }
});

describe("stops", () => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    it(`${signal} completes running requests, locks and exits 0; the next start has what was acknowledged`, async () => {
      const server = await startProcess();
      await mustInit(server);
      await mustPut(server, "a/b", "v");
      const puts = Array.from({ length: 20 }, (_, n) =>
        send(server, { method: "PUT", path: `/v1/secrets/${n}`, body: { value: "v" } }).catch(() => null),
      );
      await puts[0];
      server.child.kill(signal);
      server.child.kill(signal);
      const { code, stderr } = await server.ended;
      expect(code).to.equal(0);
      expect(stderr).to.contain('"event":"locked"').and.to.contain('"event":"stopped"');
      const acknowledged = (await Promise.all(puts)).flatMap((answer, n) =>
        answer?.status === 200 ? [String(n)] : [],
      );
      const again = await startTestServer({ home: server.home });
      expect(await mustStatus(again)).to.include({ initialized: true, locked: true });
      await mustUnlock(again);
      for (const path of ["a/b", ...acknowledged]) expect((await mustGet(again, path))["value"]).to.equal("v");
    });
  }

  it("a stop works when the readers of the output have closed it", async () => {
    const server = await startProcess(["--log-level", "debug"]);
    server.child.stderr?.destroy();
    server.child.stdout?.destroy();
    for (let i = 0; i < 20; i++) await mustStatus(server);
    server.child.kill("SIGTERM");
    expect((await server.ended).code).to.equal(0);
  });

  it("a SIGHUP does not stop the server, whether or not it was ignored at start, as by nohup", async function () {
    needs(this, process.platform !== "win32", "Unix");
    const command = fileURLToPath(new URL("../../../bin/strongroom.cjs", import.meta.url));
    const start = (ignore: string) => {
      const more = { STRONGROOM_HOME: emptyHome(), STRONGROOM_PORT: "0" };
      const child = spawn("sh", ["-c", `${ignore} exec "$0" serve`, command], { env: environment(more) });
      const output = collect(child);
      later(async () => {
        child.kill("SIGKILL");
        await output.ended;
      });
      return { child, output };
    };
    for (const ignore of ["trap '' HUP;", ""]) {
      const { child, output } = start(ignore);
      await once(child.stdout, "data");
      child.kill("SIGHUP");
      child.kill("SIGUSR2"); // handled after it
      while (!output.stderr().includes('"event":"locked"')) await once(child.stderr, "data");
      expect(output.stderr()).not.to.contain('"event":"stopping"');
      child.kill("SIGTERM");
      const { code, stderr } = await output.ended;
      expect(code).to.equal(0);
      expect(stderr).to.contain('"event":"stopped"');
    }
  });

  it("POST /v1/shutdown gets 200, exits 0, and does not wait for a client that never ends its request", async () => {
    const server = await startProcess();
    const { connectRaw } = await import("../../tools/rig/test-client.js");
    const socket = connectRaw(server);
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    socket.write(
      `POST /v1/init HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 100\r\n\r\n{`,
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    mustSucceed(await send(server, { method: "POST", path: "/v1/shutdown" }));
    expect((await server.ended).code).to.equal(0);
    socket.destroy();
  });
});

describe("hardening", () => {
  before(function () {
    needs(this, process.platform === "linux", "Linux");
  });

  const token = randomBytes(32).toString("hex");
  const warned = shared(() => startProcess([], { STRONGROOM_TOKEN: token, STRONGROOM_IDLE_TIMEOUTS: "canary" }));

  it("SIGUSR1 does not open the debugger; a server with no such settings warns of nothing", async () => {
    const server = await startProcess();
    server.child.kill("SIGUSR1");
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await mustStatus(server))["port"]).to.equal(server.port);
    await server.stop();
    const { code, stderr } = await server.ended;
    expect(code).to.equal(0);
    expect(stderr).not.to.match(/debugger|unknown-variable|token-in-environment/i);
  });

  it("the server's memory stays out of core dumps", () => {
    expect(readFileSync(`/proc/${warned().child.pid}/coredump_filter`, "utf8").trim()).to.match(/^0+$/);
  });

  it("the log warns of a variable that is not a setting, without its value", () => {
    expect(warned().logged())
      .to.contain('"event":"unknown-variable"')
      .and.to.contain("STRONGROOM_IDLE_TIMEOUTS is not a");
    expect(warned().logged()).not.to.contain("canary");
  });

  it("the log warns of an open debugger", async () => {
    const server = await startProcess([], { NODE_OPTIONS: "--inspect=127.0.0.1:0" });
    expect(server.logged()).to.contain('"event":"not-hardened"').and.to.contain("debugger");
  });

  it("the log warns about a token in the environment, which stays readable there, and names the token file", () => {
    expect(readFileSync(`/proc/${warned().child.pid}/environ`, "latin1")).to.contain(token);
    const warnings = warned()
      .logged()
      .split("\n")
      .filter((line) => line.includes('"event":"token-in-environment"'));
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.contain('"level":"warn"').and.contain("token file");
  });
});
