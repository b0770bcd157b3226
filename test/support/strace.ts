/** Fault injection with strace: system calls of a running process fail until strace detaches. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { collect, environment, mainFile, node } from "../../tools/rig/process.js";
import { canRun } from "./mounts.js";

/** Why processes cannot be traced here; null when they can. */
export function whyNoStrace(): string | null {
  if (!canRun("strace", "-V")) return "needs strace";
  return canRun("strace", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true")
    ? null
    : "needs the right to trace (ptrace)";
}

export type Fault = {
  /** A system call, or `/` and a regular expression, since names differ between processors. */
  readonly call: string;
  readonly error?: string;
  /** Milliseconds by which the calls are delayed instead. */
  readonly delay?: number;
  /** strace's `when`, counted per thread: `2` is only the second call, `2+` the second and all after it. */
  readonly when?: string;
};

/** Does the work while calls fail; returns its result and the number of failed calls. */
export async function withFault<T>(
  pid: number,
  { call, error, delay = 0, when = "1+" }: Fault,
  work: () => Promise<T>,
) {
  const trace = join(temporaryDirectory(), "trace");
  const effect = error === undefined ? `delay_enter=${1000 * delay}` : `error=${error}`;
  const inject = `inject=${call}:${effect}:when=${when}`;
  const strace = spawn("strace", ["-f", "-p", String(pid), "-o", trace, "-e", `trace=${call}`, "-e", inject], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  later(() => void strace.kill("SIGKILL"));
  const ended = once(strace, "close");
  await untilAttached(strace.stderr, ended);
  try {
    const result = await work();
    strace.kill("SIGINT");
    await ended;
    return { result, hits: readFileSync(trace, "utf8").split(/\((?:INJECTED|DELAYED)\)/).length - 1 };
  } finally {
    strace.kill("SIGINT");
    await ended;
  }
}

async function untilAttached(stderr: NodeJS.ReadableStream, ended: Promise<unknown>): Promise<void> {
  let said = "";
  const attached = new Promise<void>((resolve) => {
    stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (/ attached/.test(said)) resolve();
    });
  });
  const failed = ended.then(() => {
    throw new Error(`strace ended: ${said}`);
  });
  failed.catch(() => {}); // strace always ends, usually after this race
  await Promise.race([attached, failed]);
}

/** Runs the command to its end; returns its syncs, renames and links in order. */
export async function tracedCommand(
  args: readonly string[],
  more: Readonly<Record<string, string>>,
): Promise<string[]> {
  const directory = temporaryDirectory();
  const trace = join(directory, "trace");
  const flags = ["-f", "-y", "-qq", "-s", "4096", "-e", "trace=fsync,fdatasync,/^rename,/^link", "-e", "signal=none"];
  const child = spawn("strace", [...flags, "-o", trace, node, mainFile, ...args], {
    env: environment(more),
    cwd: directory,
    stdio: ["ignore", "pipe", "pipe"],
  });
  later(() => void child.kill("SIGKILL"));
  const { code, stderr } = await collect(child).ended;
  if (code !== 0) throw new Error(`the command ended with ${code}: ${stderr}`);
  return wholeCalls(readFileSync(trace, "utf8"));
}

/** strace writes a call that another thread interrupted in two lines: it counts where it ended. */
function wholeCalls(trace: string): string[] {
  const begun = new Map<string, string>();
  const calls: string[] = [];
  for (const line of trace.split("\n")) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (text.endsWith("<unfinished ...>")) begun.set(thread, text.replace(" <unfinished ...>", ""));
    else calls.push(text.replace(/^<\.\.\. \w+ resumed>/, () => begun.get(thread) ?? ""));
  }
  return calls;
}
