/** Commands on a pseudo-terminal, and commands with no terminal. */
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { later } from "../../tools/rig/clean-up.js";
import { collect, type Ended, environment, mainArguments, node } from "../../tools/rig/process.js";
import { pythonFile } from "../../tools/rig/python.js";
import { runToItsEnd, stringIo, writeTo } from "../../tools/rig/string-io.js";
import { runsHere } from "./command-here.js";

type Environment = Readonly<Record<string, string>>;

/**
 * In Python, since Node has no pseudo-terminals. Each line of standard input is an order: a terminal and what a person does at
 * it. The command either is started here, or runs in the tests' process, which gets the terminal's name and says when it is
 * over. Keys are written as the terminal takes them; what the command has not read at its end is what a shell after it would get.
 */
const script = `
import fcntl, json, os, select, struct, subprocess, sys, termios, threading, time, tty
def say(message): os.write(1, (json.dumps(message) + "\\n").encode())
class Terminal:
    def __init__(self, order):
        self.order, (self.master, self.slave), (self.over, self.ending) = order, os.openpty(), os.pipe()
        os.set_blocking(self.master, False)
        if order["size"]: self.resize(order["size"])
        while order["steps"] and order["steps"][0]["isEarly"]:
            os.write(self.master, bytes.fromhex(order["steps"].pop(0)["keys"]))
    def echoes(self): return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)
    def resize(self, size): fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    def write(self, keys):
        try: return keys[os.write(self.master, keys[:65536]):]
        except BlockingIOError: return keys
    def start(self):
        def begin():
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        return subprocess.Popen(self.order["command"], stdin=self.slave, stdout=self.slave, stderr=self.slave, preexec_fn=begin)
    def play(self):
        child = self.start() if self.order.get("command") else None
        is_over = (lambda: child.poll() is not None) if child else (lambda: bool(select.select([self.over], [], [], 0)[0]))
        shown, asked, seen, steps, keys = b"", None, 0, self.order["steps"], b""
        last = time.monotonic()
        while True:
            ended = is_over()  # before the look at what it has shown, which is then all
            watched = [self.master] if child or ended else [self.master, self.over]
            ready, writable, _ = select.select(watched, [self.master] if keys else [], [], 0 if ended else 0.1)
            if self.master in ready:
                shown, last = shown + os.read(self.master, 65536), time.monotonic()
            if time.monotonic() - last > self.order["patience"]:
                if child: child.kill()
                waited = steps[0]["question"] if steps else "the end"
                return {"error": f"nothing was shown for long, before {waited!r}; before that: {shown[-2000:]!r}"}
            if writable and not is_over():
                keys = self.write(keys)
            if steps and steps[0]["question"].encode() in shown[seen:]:
                step = steps.pop(0)
                acts = step["keys"] or step["size"] or step["signal"]
                # Where nothing is done, the next question may have come at once with this one.
                seen = len(shown) if acts else shown.index(step["question"].encode(), seen) + len(step["question"].encode())
                asked = self.echoes() if asked is None else asked
                keys += bytes.fromhex(step["keys"])
                if step["size"]: self.resize(step["size"])
                if step["signal"]:
                    while keys and select.select([], [self.master], [], 0.5)[1]: keys = self.write(keys)
                    child.send_signal(step["signal"])
                if step["hangsUp"]:
                    os.close(self.master)
                    return {"code": child.wait(), "shown": shown.decode(), "echoedWhileAsking": asked, "echoesAfter": False, "left": ""}
            if ended and self.master not in ready:
                break
        echo = self.echoes()
        tty.setraw(self.slave, termios.TCSANOW)
        os.set_blocking(self.slave, False)
        left, quiet = b"", 0
        while quiet < 3:
            keys = self.write(keys)
            try: left, quiet = left + os.read(self.slave, 65536), 0
            except BlockingIOError:
                quiet += 1
                time.sleep(0.02)
        for descriptor in [self.master, self.slave, self.over, self.ending]: os.close(descriptor)
        return {"code": child.returncode if child else 0, "shown": shown.decode(), "echoedWhileAsking": asked,
            "echoesAfter": echo, "left": left.decode("latin1")}
terminals = {}
def serve(order):
    terminal = terminals[order["id"]] = Terminal(order)
    name = os.ttyname(terminal.slave)
    def run():
        try: say({"id": order["id"], **terminal.play()})
        except Exception as problem: say({"id": order["id"], "error": repr(problem)})
    threading.Thread(target=run, daemon=True).start()
    say({"id": order["id"], "name": name})
for line in sys.stdin:
    order = json.loads(line)
    if order.get("command"):
        say(Terminal(order).play())
    elif "over" in order:
        os.write(terminals.pop(order["over"]).ending, b"x")
    else:
        serve(order)
`;

export type OnTerminal = {
  /** Negative: the number of the signal that ended it. */
  readonly code: number;
  /** The terminal's whole output. */
  readonly shown: string;
  /** Null when no question was shown. */
  readonly echoedWhileAsking: boolean | null;
  readonly echoesAfter: boolean;
  /** Keys that a shell would read after the command. */
  readonly left: string;
};

/** Rows and columns. */
export type TerminalSize = readonly [number, number];

/** Action once the question is shown: type keys, send a signal, resize or close the terminal. */
export type Reaction = {
  readonly question: string;
  readonly keys?: Uint8Array | string;
  readonly signal?: number;
  readonly size?: TerminalSize;
  readonly hangsUp?: true;
  /** Type the keys before the command is started; such reactions come first. */
  readonly isEarly?: true;
};

export function hasPython(): boolean {
  return pythonFile() !== null;
}

/** Below the time that a test may take, so that it says what never came. */
const patienceSeconds = 120;

/** Runs the real command: in this process, where that is the same on a terminal. */
export function runOnTerminal(
  args: readonly string[],
  reactions: Reaction | readonly Reaction[],
  more: Environment = {},
): Promise<OnTerminal> {
  const hasSignals = [reactions].flat().some(({ signal, hangsUp }) => signal !== undefined || hangsUp);
  return hasSignals || !runsHere(args, more, true)
    ? runProgramOnTerminal([node, ...mainArguments, ...args], reactions, more)
    : terminals().run(args, [reactions].flat(), more);
}

export async function runProgramOnTerminal(
  command: readonly string[],
  reactions: Reaction | readonly Reaction[],
  more: Environment = {},
  size: TerminalSize | null = null,
): Promise<OnTerminal> {
  const child = spawn(pythonFile() ?? "python3", ["-IS", "-c", script], {
    env: environment({ TERM: "xterm", ...more }),
  });
  child.stdin.end(JSON.stringify({ command, ...orderFor([reactions].flat(), size) }));
  const { stdout, stderr } = await collect(child).ended;
  return mustHavePlayed(JSON.parse(stdout || JSON.stringify({ error: stderr })) as Played);
}

function orderFor(reactions: readonly Reaction[], size: TerminalSize | null) {
  const steps = reactions.map(({ keys = "", ...reaction }) => {
    const others = { signal: 0, hangsUp: false, size: null, isEarly: false };
    return { ...others, ...reaction, keys: Buffer.from(keys).toString("hex") };
  });
  return { steps, size, patience: patienceSeconds };
}

type Played = OnTerminal | { readonly error: string };

function mustHavePlayed(played: Played): OnTerminal {
  if ("error" in played) throw new Error(played.error);
  return played;
}

let shared: Terminals | null = null;

function terminals(): Terminals {
  shared ??= new Terminals();
  return shared;
}

/** Pseudo-terminals for commands in this process, from one Python for all tests, which ends with this process. */
class Terminals {
  readonly #child = spawn(pythonFile() ?? "python3", ["-IS", "-c", script], { stdio: ["pipe", "pipe", "ignore"] });
  readonly #messages = new EventEmitter();
  #orders = 0;
  #running = 0;

  constructor() {
    createInterface(this.#child.stdout).on("line", (line) => {
      const { id, ...message } = JSON.parse(line) as { readonly id: number };
      this.#messages.emit(String(id), message);
    });
    this.#keepsRunning(false);
  }

  async run(args: readonly string[], reactions: readonly Reaction[], more: Environment): Promise<OnTerminal> {
    const id = ++this.#orders;
    this.#keepsRunning(++this.#running > 0);
    this.#send({ id, ...orderFor(reactions, null) });
    const [{ name }] = (await once(this.#messages, String(id))) as [{ readonly name: string }];
    const played = once(this.#messages, String(id)).then(([result]) => mustHavePlayed(result as Played));
    const ended = runAt(name, args, more).finally(() => this.#send({ over: id }));
    const [code, result] = await Promise.all([ended, played]);
    this.#keepsRunning(--this.#running > 0);
    return { ...result, code };
  }

  #send(order: object): void {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
  }

  /** The tests' process ends without this one. */
  #keepsRunning(isUsed: boolean): void {
    const method = isUsed ? "ref" : "unref";
    for (const each of [this.#child, this.#child.stdin as Socket, this.#child.stdout as Socket]) each[method]();
  }
}

/** Runs a command with the terminal of this name as its streams; returns its exit code. */
async function runAt(name: string, args: readonly string[], more: Environment): Promise<number> {
  const openTerminal = (flags = constants.O_RDWR) => openSync(name, flags | constants.O_NOCTTY);
  const descriptor = openTerminal();
  const stream = () => Object.assign(new Writable({ write: writeTo(descriptor) }), { isTTY: true });
  const io = stringIo({
    env: environment({ TERM: "xterm", ...more }),
    stdin: Object.assign(Readable.from([]), { isTTY: true }),
    stdinDescriptor: descriptor,
    openTerminal,
    stdout: stream(),
    stderr: stream(),
  });
  try {
    await runToItsEnd(args, io);
  } finally {
    closeSync(descriptor);
  }
  return io.exitCode;
}

/** Runs without a terminal; `inputs` become standard input and the descriptors from 3 on. */
export async function runWithoutTerminal(
  args: readonly string[],
  inputs: readonly (string | Uint8Array)[] = [],
  more: Environment = {},
): Promise<Ended> {
  const [standard, ...others] = inputs;
  const child = spawn(node, [...mainArguments, ...args], {
    env: environment(more),
    detached: true,
    stdio: ["pipe", "pipe", "pipe", ...others.map(() => "pipe" as const)],
  });
  const ended = collect(child).ended;
  for (const [index, text] of [standard, undefined, undefined, ...others].entries()) {
    const stream = child.stdio[index];
    if (index !== 1 && index !== 2 && stream && "end" in stream) stream.on("error", () => {}).end(text ?? "");
  }
  return ended;
}

/** Prints the name of a new terminal, then what it shows; standard input becomes its keys. */
const terminalScript = `
import os, select
master, slave = os.openpty()
print(os.ttyname(slave), flush=True)
while True:
    ready = select.select([master, 0], [], [])[0]
    if 0 in ready:
        keys = os.read(0, 100)
        if not keys: break
        os.write(master, keys)
    if master in ready:
        os.write(1, os.read(master, 65536))
`;

export type Terminal = {
  /** Open for reading and writing. */
  readonly descriptor: number;
  /** Presses Ctrl-S. */
  pause(): void;
  /** Presses Ctrl-Q. */
  resume(): void;
  readonly shown: () => string;
};

/** A pseudo-terminal for processes that the test starts. */
export async function openTerminal(): Promise<Terminal> {
  const child = spawn(pythonFile() ?? "python3", ["-IS", "-c", terminalScript]);
  const output = collect(child);
  later(async () => {
    child.stdin.end();
    await output.ended;
  });
  while (!output.stdout().includes("\n")) await once(child.stdout, "data");
  const [name = ""] = output.stdout().split("\n");
  const descriptor = openSync(name, constants.O_RDWR | constants.O_NOCTTY);
  later(() => closeSync(descriptor));
  const press = (key: string) => void child.stdin.write(key);
  return { descriptor, pause: () => press("\x13"), resume: () => press("\x11"), shown: output.stdout };
}
