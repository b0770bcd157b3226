/** Commands on a pseudo-terminal, and commands with no terminal. */
import { spawn, spawnSync } from "node:child_process";
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
