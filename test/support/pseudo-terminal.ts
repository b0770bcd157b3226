/** Commands on a pseudo-terminal, and commands with no terminal. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { later } from "./clean-up.js";
import { collect, type Ended, environment, mainFile, node } from "./process.js";

type Environment = Readonly<Record<string, string>>;

/** In Python, since Node has no pseudo-terminals. */
const script = `
import fcntl, json, os, select, subprocess, sys, termios
order = json.loads(sys.argv[1])
master, slave = os.openpty()
echoes = lambda: bool(termios.tcgetattr(slave)[3] & termios.ECHO)
def begin():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
child = subprocess.Popen(order["command"], stdin=slave, stdout=slave, stderr=slave, preexec_fn=begin)
shown, asked, seen, steps = b"", None, 0, order["steps"]
while True:
    ready = select.select([master], [], [], 0.1)[0]
    if ready:
        shown += os.read(master, 65536)
    if steps and steps[0]["question"].encode() in shown[seen:]:
        step, seen = steps.pop(0), len(shown)
        asked = echoes() if asked is None else asked
        if step["signal"]: child.send_signal(step["signal"])
        else: os.write(master, bytes.fromhex(step["keys"]))
    if not ready and child.poll() is not None:
        break
print(json.dumps({"code": child.returncode, "shown": shown.decode(), "echoedWhileAsking": asked, "echoesAfter": echoes()}))
`;

export type OnTerminal = {
  /** Negative: the number of the signal that ended it. */
  readonly code: number;
  /** The terminal's whole output. */
  readonly shown: string;
  /** Null when no question was shown. */
  readonly echoedWhileAsking: boolean | null;
  readonly echoesAfter: boolean;
};

/** What to do once the question is shown: type keys, or send a signal. */
export type Reaction = { readonly question: string; readonly keys?: Uint8Array | string; readonly signal?: number };

export function hasPython(): boolean {
  return spawnSync("python3", ["-c", "import fcntl, termios"]).status === 0;
}

export async function runOnTerminal(
  args: readonly string[],
  reactions: Reaction | readonly Reaction[],
  more: Environment = {},
): Promise<OnTerminal> {
  const steps = [reactions].flat().map(({ question, keys = "", signal = 0 }) => {
    return { question, keys: Buffer.from(keys).toString("hex"), signal };
  });
  const order = JSON.stringify({ command: [node, mainFile, ...args], steps });
  const child = spawn("python3", ["-c", script, order], { env: environment({ TERM: "xterm", ...more }) });
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
  const child = spawn(node, [mainFile, ...args], {
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
  const child = spawn("python3", ["-c", terminalScript]);
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
