/** Commands on a pseudo-terminal, and commands with no terminal. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { later } from "../../tools/rig/clean-up.js";
import { collect, type Ended, environment, mainArguments, node } from "../../tools/rig/process.js";
import { pythonFile } from "../../tools/rig/python.js";

type Environment = Readonly<Record<string, string>>;

/**
 * In Python, since Node has no pseudo-terminals. Keys are written as the terminal takes them; what the command has not read
 * at its end is what a shell behind it would get.
 */
const script = `
import fcntl, json, os, select, struct, subprocess, sys, termios, time, tty
order = json.loads(sys.stdin.read())
master, slave = os.openpty()
os.set_blocking(master, False)
echoes = lambda: bool(termios.tcgetattr(slave)[3] & termios.ECHO)
def begin():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
def write(keys):
    try: return keys[os.write(master, keys[:65536]):]
    except BlockingIOError: return keys
def resize(size): fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
if order["size"]: resize(order["size"])
while order["steps"] and order["steps"][0]["isEarly"]: os.write(master, bytes.fromhex(order["steps"].pop(0)["keys"]))
child = subprocess.Popen(order["command"], stdin=slave, stdout=slave, stderr=slave, preexec_fn=begin)
shown, asked, seen, steps, keys = b"", None, 0, order["steps"], b""
last = time.monotonic()
while True:
    ended = child.poll() is not None  # before the look at what it has shown, which is then all
    ready, writable, _ = select.select([master], [master] if keys else [], [], 0.1)
    if ready:
        shown, last = shown + os.read(master, 65536), time.monotonic()
    if time.monotonic() - last > order["patience"]:
        child.kill()
        waited = steps[0]["question"] if steps else "the end"
        sys.exit(f"nothing was shown for long, before {waited!r}; before that: {shown[-2000:]!r}")
    if writable and child.poll() is None:
        keys = write(keys)
    if steps and steps[0]["question"].encode() in shown[seen:]:
        step = steps.pop(0)
        acts = step["keys"] or step["size"] or step["signal"]
        # Where nothing is done, the next question may have come at once with this one.
        seen = len(shown) if acts else shown.index(step["question"].encode(), seen) + len(step["question"].encode())
        asked = echoes() if asked is None else asked
        keys += bytes.fromhex(step["keys"])
        if step["size"]: resize(step["size"])
        if step["signal"]:
            while keys and select.select([], [master], [], 0.5)[1]: keys = write(keys)
            child.send_signal(step["signal"])
        if step["hangsUp"]:
            os.close(master)
            print(json.dumps({"code": child.wait(), "shown": shown.decode(), "echoedWhileAsking": asked, "echoesAfter": False, "left": ""}))
            sys.exit()
    if ended and not ready:
        break
echo = echoes()
tty.setraw(slave, termios.TCSANOW)
os.set_blocking(slave, False)
left, quiet = b"", 0
while quiet < 3:
    keys = write(keys)
    try: left, quiet = left + os.read(slave, 65536), 0
    except BlockingIOError:
        quiet += 1
        time.sleep(0.02)
print(json.dumps({"code": child.returncode, "shown": shown.decode(), "echoedWhileAsking": asked, "echoesAfter": echo,
    "left": left.decode("latin1")}))
`;

export type OnTerminal = {
  /** Negative: the number of the signal that ended it. */
  readonly code: number;
  /** The terminal's whole output. */
  readonly shown: string;
  /** Null when no question was shown. */
  readonly echoedWhileAsking: boolean | null;
  readonly echoesAfter: boolean;
  /** What a shell behind the command would read. */
  readonly left: string;
};

/** Rows and columns. */
export type TerminalSize = readonly [number, number];

/** What to do once the question is shown: type keys, send a signal, resize or close the terminal. */
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

/** Runs the real command. */
export function runOnTerminal(
  args: readonly string[],
  reactions: Reaction | readonly Reaction[],
  more: Environment = {},
): Promise<OnTerminal> {
  return runProgramOnTerminal([node, ...mainArguments, ...args], reactions, more);
}

export async function runProgramOnTerminal(
  command: readonly string[],
  reactions: Reaction | readonly Reaction[],
  more: Environment = {},
  size: TerminalSize | null = null,
): Promise<OnTerminal> {
  const steps = [reactions].flat().map(({ keys = "", ...reaction }) => {
    const others = { signal: 0, hangsUp: false, size: null, isEarly: false };
    return { ...others, ...reaction, keys: Buffer.from(keys).toString("hex") };
  });
  const order = JSON.stringify({ command, steps, size, patience: patienceSeconds });
  const child = spawn(pythonFile() ?? "python3", ["-IS", "-c", script], {
    env: environment({ TERM: "xterm", ...more }),
  });
  child.stdin.end(order); // larger than an argument may be
  const { code, stdout, stderr } = await collect(child).ended;
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as OnTerminal;
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
