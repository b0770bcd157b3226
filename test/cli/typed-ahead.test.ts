/**
 * Input that is typed before a command asks: on a pseudo-terminal with the installed launcher, nothing of it is shown, and nothing of
 * it is left to the shell.
 */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import pMap from "p-map";
import { packageDirectory } from "../../src/program-files.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, environment, isInstalled } from "../../tools/rig/process.js";
import { pythonFile } from "../../tools/rig/python.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustLock, mustPut } from "../../tools/rig/test-client.js";
import { hasPython, runProgramOnTerminal } from "../support/pseudo-terminal.js";

/**
 * Each order starts a command on a terminal of its own, types the keys after the delay, and ends it by Ctrl-C, as often as it
 * takes. On a busy machine the launcher may not have run by then: the keys wait for it, and the echo must be off before anything
 * is shown. Prints what was shown, what a shell would read, and whether the echo is as it was.
 */
const script = `
import fcntl, json, os, select, signal, subprocess, sys, termios, threading, time, tty
orders = json.loads(sys.stdin.read())
def run(order):
    master, slave = os.openpty()
    def begin():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    child = subprocess.Popen(order["command"], stdin=slave, stdout=slave, stderr=slave, preexec_fn=begin)
    shown, began, typed, interrupted = b"", time.monotonic(), False, 0
    while True:
        ended = child.poll() is not None
        ready = select.select([master], [], [], 0.02)[0]
        if ready: shown += os.read(master, 65536)
        now = time.monotonic() - began
        isQuiet = not (termios.tcgetattr(slave)[3] & termios.ECHO)
        order["wasQuiet"] = order.get("wasQuiet") or isQuiet and not shown
        if ended: typed = True  # what is typed now is the shell's
        if not typed and now > order["delay"] and isQuiet:
            os.write(master, order["keys"].encode())
            typed = True
        if typed and now > order["delay"] + 3 + 2 * interrupted and not ended:
            os.write(master, b"\\x03")
            interrupted += 1
        if interrupted > 60: child.kill()
        if ended and typed and not ready: break
    echoes = bool(termios.tcgetattr(slave)[3] & termios.ECHO)
    tty.setraw(slave, termios.TCSANOW)
    os.set_blocking(slave, False)
    time.sleep(0.05)
    try: left = os.read(slave, 65536)
    except BlockingIOError: left = b""
    order.update(shown=shown.decode(errors="replace"), left=left.decode(errors="replace"), echoes=echoes, code=child.returncode)
    os.close(master)
    os.close(slave)
threads = [threading.Thread(target=run, args=[order]) for order in orders]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(orders))
`;

type Order = {
  readonly command: readonly string[];
  readonly keys: string;
  readonly delay: number;
  readonly shown: string;
  readonly left: string;
  readonly echoes: boolean;
  readonly wasQuiet: boolean;
};

const launcher = join(packageDirectory, "bin/strongroom.cjs");
const typedText = "geheim typed too early";

async function typeEarly(
  home: string,
  commands: readonly (readonly string[])[],
  delays: readonly number[],
): Promise<Order[]> {
  const orders = commands.flatMap((args) =>
    delays.map((delay) => ({ command: [launcher, ...args], keys: `${typedText}\r${typedText}\r${typedText}`, delay })),
  );
  const child = spawn(pythonFile() ?? "python3", ["-IS", "-c", script], {
    env: environment({ TERM: "xterm", STRONGROOM_HOME: home }),
  });
  child.stdin.end(JSON.stringify(orders));
  const { code, stdout, stderr } = await collect(child).ended;
  expect(code, stderr).to.equal(0);
  return JSON.parse(stdout) as Order[];
}

describe("text typed before a command asks", () => {
  const locked = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/key", "value");
    await mustLock(started);
  });
  const empty = shareLocalServer();
  const unlocked = shareLocalServer({}, async (started) => void (await mustInit(started)));
  before(function () {
    needs(this, hasPython(), "Python");
    needs(this, process.platform === "linux" && !isInstalled, "Linux and a build");
  });

  const commands = [
    ["unlock"],
    ["unlock", "--shares"],
    ["passphrase"],
    ["key", "create"],
    ["key", "split"],
    ["rotate-key"],
    ["put", "app/new"],
    ["get", "app/key"],
    ["ls"],
    ["doctor", "--open"],
    ["audit", "verify", "--open"],
    ["prove", "--as-attacker"],
    ["history", "app/key"],
  ] as const;

  it("text typed 0.1, 0.3 and 1 s early is neither shown nor left to the shell, by every command that asks", async () => {
    const batches = [[0.1], [0.3], [1]].flatMap((delays) => [
      { home: locked().home, commands: commands.slice(0, 7), delays },
      { home: locked().home, commands: commands.slice(7), delays },
      { home: empty().home, commands: [["init"]], delays },
    ]);
    const ended = await pMap(batches, (batch) => typeEarly(batch.home, batch.commands, batch.delays), {
      concurrency: 2,
    });
    const all = ended.flat();
    expect(all).to.have.length(3 * (commands.length + 1));
    for (const { command, delay, shown, left, echoes, wasQuiet } of all) {
      const what = `${command.slice(1).join(" ")} after ${delay} s: ${shown}`;
      expect(shown, what).not.to.contain("geheim");
      expect(wasQuiet, what).to.equal(true);
      expect(left, what).to.equal("");
      expect(echoes, what).to.equal(true);
    }
  });

  it("put stores the value that is typed at the question", async () => {
    const { home } = unlocked();
    const value = { question: "Value", keys: "typed value\r" };
    const ended = await runProgramOnTerminal([launcher, "put", "app/typed"], value, { STRONGROOM_HOME: home });
    expect(ended.code, ended.shown).to.equal(0);
    expect(ended.shown).not.to.contain("typed value");
    expect(await mustGet(unlocked(), "app/typed")).to.include({ value: "typed value" });
  });
});

describe("the launcher's terminal", () => {
  before(function () {
    needs(this, hasPython(), "Python");
    needs(this, process.platform === "linux" && !isInstalled, "Linux and a build");
  });

  /** Runs a line of shell on a terminal, where $0 is the launcher and Node is a script. */
  async function runWithNode(node: string, line: string) {
    const programs = temporaryDirectory();
    writeFileSync(join(programs, "node"), `#!/bin/sh\n${node}\n`, { mode: 0o755 });
    const path = `${programs}:${environment({})["PATH"] ?? ""}`;
    return runProgramOnTerminal(["bash", "-c", line, launcher], [], { PATH: path });
  }

  const showsEcho = "stty -a < /dev/tty | grep -o '.echo ' >&2";
  const rows = [
    ["the terminal does not echo while a command runs", '"$0" ls', "-echo"],
    ["the terminal does not echo while a command's output goes to a file", '"$0" ls > /dev/null', "-echo"],
    ["the terminal echoes before a pipe, whose reader may be a pager", '"$0" ls | cat', " echo"],
    ["the terminal echoes for two commands at the same time", 'cat <("$0" ls) <("$0" ls)', " echo"],
    ["the terminal echoes for a command that gives the terminal to a program", '"$0" run', " echo"],
  ] as const;
  for (const [rule, line, echo] of rows) {
    it(rule, async () => {
      const { shown, echoesAfter } = await runWithNode(showsEcho, line);
      expect([...new Set(shown.trimEnd().split(/ *\r\n/))].map((each) => each.padStart(5))).to.deep.equal([echo]);
      expect(echoesAfter).to.equal(true);
    });
  }

  it("the terminal echoes while the command is suspended", async () => {
    const suspends = "kill -TSTP 0; echo continued >&2";
    const line = `set -m; "$0" ls; ${showsEcho}; fg > /dev/null; ${showsEcho}`;
    const { shown } = await runWithNode(suspends, line);
    expect(shown.split(/ *\r\n/).filter((each) => /^(?: echo|-echo|continued)$/.test(each))).to.deep.equal([
      " echo",
      "continued",
      " echo",
    ]);
  });
});
