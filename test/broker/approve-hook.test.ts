/** `strongroom approve --hook`: what the hook gets, and what its end decides. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { runCommandLine } from "../../src/cli/command-line.js";
import { blocksIn } from "../../tools/docs/document-files.js";
import { sendThrough, startAgent, startBound, startUpstream } from "../../tools/rig/broker-rig.js";
import { shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, isRunning } from "../../tools/rig/process.js";
import { passphrase, realScryptCost, type TestOptions } from "../../tools/rig/server.js";
import { stringIo } from "../../tools/rig/string-io.js";
import { type Json, mustSucceed, send } from "../../tools/rig/test-client.js";
import { FakeClock } from "../support/manual-clock.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";

async function start(options: TestOptions = {}) {
  return startBound(await startUpstream(), { ask: "request" }, { ...realScryptCost, ...options });
}

/** Writes a hook, a script whose working files are in its directory. */
function hook(script: string, interpreter = "/bin/sh"): { readonly file: string; readonly directory: string } {
  const directory = temporaryDirectory();
  const file = join(directory, "hook");
  writeFileSync(file, `#!${interpreter}\ncd ${directory}\n${script}\n`);
  chmodSync(file, 0o755);
  return { file, directory };
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await sleep(20);
}

describe("approve --hook", function () {
  this.timeout(120_000);
  const rig = shared(start);

  async function approvals(): Promise<readonly Json[]> {
    return mustSucceed(await send(rig().server, { path: "/v1/approvals" }))["approvals"] as readonly Json[];
  }

  /** Sends a request of each target, and resolves to their responses' promise once all of them wait. */
  async function ask(...targets: readonly string[]): Promise<{ readonly responses: Promise<readonly string[]> }> {
    const { server, at } = rig();
    const agent = await startAgent(server);
    const before = (await approvals()).length;
    const method = (target: string) => (target === "/write" ? "POST" : "GET");
    const head = (target: string) => `${method(target)} ${target} HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;
    const responses = Promise.all(targets.map((target) => sendThrough(agent, at, head(target))));
    await until(async () => (await approvals()).length === before + targets.length);
    return { responses };
  }

  function approve(args: readonly string[], given: Parameters<typeof stringIo>[0] = {}) {
    const { server } = rig();
    const env = environment({ STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url });
    const sent: unknown[] = [];
    const kill = (pid: number, signal: NodeJS.Signals) =>
      void (pid < 0 ? process.kill(pid, signal) : sent.push([pid, signal]));
    const io = stringIo({ env, kill, ...given });
    return {
      io,
      sent,
      ended: runCommandLine(["approve", ...args], io).then(() => ({ code: io.exitCode, ...io.printed() })),
    };
  }

  it("a hook gets one request as JSON, without a token, and approves only it with exit status 0", async () => {
    const { file, directory } = hook("cat > request; env > variables; exit 0");
    const { responses } = await ask("/a?b=c");
    const [listed] = await approvals();
    const { code, stdout, stderr } = await approve(["--once", "--hook", file]).ended;
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    expect(stdout).to.match(/^approved: GET localhost:\d+, secret app\/key, token agent-\w+\n$/);
    expect((await responses)[0]).to.match(/^HTTP\/1.1 200 /);
    const given = readFileSync(join(directory, "request"), "utf8");
    expect(given).to.match(/^\{.*\}\n$/);
    const members = "id token path method scheme host port target query program since";
    expect(Object.keys(JSON.parse(given))).to.have.members(members.split(" "));
    expect(JSON.parse(given)).to.deep.equal(listed).and.to.include({ target: "/a", query: "b=c" });
    expect(readFileSync(join(directory, "variables"), "utf8")).not.to.contain(rig().server.token);
    const again = await ask("/a?b=c");
    await approve(["--once", "-q", "--hook", hook("exit 3").file]).ended;
    expect((await again.responses)[0]).to.match(/^HTTP\/1.1 403 .*was not approved/s);
  });

  const ways: readonly (readonly [how: string, script: string, status: number, interpreter?: string])[] = [
    ["ends with another status", "exit 1", 403],
    ["dies", "kill -9 $$", 403],
    ["cannot be run", "exit 0", 403, "/no/such/shell"],
    ["floods its output, reads nothing and denies", "head -c 50000000 /dev/zero; exit 1", 403],
    ["floods its output, reads nothing and approves", "head -c 50000000 /dev/zero; exit 0", 200],
  ];
  for (const [how, script, status, interpreter] of ways) {
    it(`a request gets ${status} when the hook ${how}`, async () => {
      const { responses } = await ask("/way");
      const { code } = await approve(["--once", "--hook", hook(script, interpreter).file]).ended;
      expect(code).to.equal(0);
      expect((await responses)[0]).to.match(new RegExp(`^HTTP/1.1 ${status} `));
    });
  }

  it("the hook in docs/reference/broker.md approves reads only", async function () {
    needs(this, hasPython(), "Python");
    const file = join(temporaryDirectory(), "only-reads.py");
    const page = blocksIn(readFileSync("docs/reference/broker.md", "utf8"));
    writeFileSync(file, page.find((block) => block.file === "only-reads.py")?.code ?? "", { mode: 0o755 });
    const { responses } = await ask("/read", "/write");
    const { stdout } = await approve(["--once", "--hook", file]).ended;
    expect(stdout.match(/^\w+: \w+/gm)).to.have.members(["approved: GET", "refused: POST"]);
    expect((await responses).map((response) => response.slice(9, 12))).to.deep.equal(["200", "403"]);
  });

  it("a hook and its child processes are killed after 60 seconds, and the request is refused", async () => {
    const clock = new FakeClock();
    const { file, directory } = hook("sleep 300 & echo $! > child; echo $$ > own; mv own parent; wait");
    const { responses } = await ask("/hang");
    const { ended } = approve(["--once", "--hook", file], { clock });
    await until(() => existsSync(join(directory, "parent")));
    clock.advance(59_999);
    await sleep(50);
    const pids = ["child", "parent"].map((name) => Number(readFileSync(join(directory, name), "utf8")));
    expect(pids.map(isRunning)).to.deep.equal([true, true]);
    clock.advance(1);
    expect((await ended).stdout).to.contain("refused: GET localhost:");
    expect((await responses)[0]).to.match(/^HTTP\/1.1 403 /);
    await until(() => !pids.some(isRunning));
  });

  it("hooks run at most 16 at a time, one for each waiting request", async () => {
    const { file, directory } = hook("echo >> started; until [ -e go ]; do sleep 0.1; done; exit 0");
    const targets = Array.from({ length: 10 }, (_, i) => `/many/${i}`);
    const asked = [await ask(...targets), await ask(...targets)];
    const { ended } = approve(["--once", "-q", "--hook", file]);
    const started = () => {
      return existsSync(join(directory, "started")) ? readFileSync(join(directory, "started"), "utf8").length : 0;
    };
    await until(() => started() === 16);
    await sleep(1_200); // two looks at what waits
    expect(started()).to.equal(16);
    writeFileSync(join(directory, "go"), "");
    await ended;
    for (const { responses } of asked)
      for (const response of await responses) expect(response).to.match(/^HTTP\/1.1 200 /);
    expect(started()).to.equal(20);
  });

  it("a hook ends with the command on a signal, and with a request that no longer waits", async () => {
    const { file, directory } = hook("echo $$ > pid; exec sleep 300");
    const { responses } = await ask("/signal");
    const { io, sent, ended } = approve(["--hook", file]);
    const pidFile = join(directory, "pid");
    await until(() => existsSync(pidFile) && readFileSync(pidFile, "utf8").endsWith("\n"));
    io.events.emit("SIGTERM", "SIGTERM");
    await ended;
    expect(sent).to.deep.equal([[process.pid, "SIGTERM"]]);
    await until(() => !isRunning(Number(readFileSync(pidFile, "utf8"))));
    const second = hook("echo $$ > pid; exec sleep 300");
    const other = approve(["--hook", second.file]);
    await until(() => existsSync(join(second.directory, "pid")));
    const [waiting] = await approvals();
    await send(rig().server, { method: "POST", path: `/v1/approvals/${waiting?.["id"]}`, body: { approve: false } });
    expect((await responses)[0]).to.match(/^HTTP\/1.1 403 /);
    await until(() => other.io.printed().stderr === "the request no longer waits\n");
    other.io.events.emit("SIGINT", "SIGINT");
    await other.ended;
  });

  it("--hook with --json or --notify, or with a missing program, is refused", async () => {
    for (const [args, exit, says] of [
      [["--hook", "true", "--json"], 2, "cannot be used together"],
      [["--hook", "true", "--notify"], 2, "cannot be used together"],
      [["--hook", "no-such-program --flag"], 127, "no-such-program --flag: the command is not found"],
    ] as const) {
      const { code, stdout, stderr } = await approve(args).ended;
      expect(code, stderr).to.equal(exit);
      expect(stdout + stderr).to.contain(says);
    }
  });
});

describe("approval with the passphrase", () => {
  const rig = shared(() => start({ approveWith: "passphrase" }));
  const place = () => ({ STRONGROOM_HOME: rig().server.home, STRONGROOM_ADDRESS: rig().server.url });

  it("approve asks for the passphrase three times at a terminal", async function () {
    needs(this, hasPython(), "Python");
    const { server, at } = rig();
    const response = sendThrough(
      await startAgent(server),
      at,
      `GET /asked HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`,
    );
    await until(async () => {
      const { approvals } = mustSucceed(await send(server, { path: "/v1/approvals" })) as { approvals: Json[] };
      return approvals.length > 0;
    });
    const typed = ["wrong", "wrong again", passphrase].map((keys) => ({
      question: "Passphrase of the vault: ",
      keys: `${keys}\r`,
    }));
    const steps = [{ question: "[n]o: ", keys: "y\r" }, ...typed];
    const { code, shown } = await runOnTerminal(["approve", "--once"], steps, place());
    expect(code, shown).to.equal(0);
    expect(shown).to.match(/wrong passphrase, 2 tries left.*wrong passphrase, 1 try left/s);
    expect(await response).to.match(/^HTTP\/1\.1 200 /);
  });

  it("approve refuses --hook with exit code 2 when the server requires the passphrase", async () => {
    const io = stringIo({ env: environment(place()) });
    await runCommandLine(["approve", "--hook", "true"], io);
    expect(io.exitCode).to.equal(2);
    expect(io.printed().stderr).to.contain("this server approves with the passphrase, which a hook does not have");
  });
});
