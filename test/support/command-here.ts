/**
 * A call of the command line in the tests' own process: the same code with an `Io` of strings, in a hundredth of the time
 * that a process takes. What needs a process of its own gets one: see `runsHere`.
 */
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommandLine } from "../../src/cli/command-line.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { environment, isInstalled } from "../../tools/rig/process.js";
import { stringIo } from "../../tools/rig/string-io.js";

export type Finished = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly bytes: Buffer;
};

/** Commands that start no program on the terminal, set nothing of the process, and read no directory but their home. */
const commandsHere = new Set(
  (
    "get put set otp generate describe ls find mv cp rm trash history undo inject import export transit encrypt decrypt " +
    "sign verify init unlock lock passphrase key rotate-key status token use vault-env check scan backup restore audit " +
    "version flags complete-paths git-credential docker-credential"
  ).split(" "),
);

/** Variables that Node and the system's libraries read from the process itself. */
const ofTheProcess = /^(?:NODE_|XDG_|HOME$|TMPDIR$|TZ$|LANG$|LC_|STRONGROOM_AUTOSTART$)/;

/** Whether a call can run here: its command, its variables and its home allow it, and no installed program is tested. */
export function runsHere(args: readonly string[], more: Readonly<Record<string, string>>): boolean {
  const hasHome = "STRONGROOM_HOME" in more || args.some((word) => /^--(?:home|address)/.test(word));
  const isPlain = !Object.keys(more).some((name) => ofTheProcess.test(name)) && !args.includes("--autostart");
  return !isInstalled && commandsHere.has(args[0] ?? "") && hasHome && isPlain;
}

export async function runHere(
  args: readonly string[],
  more: Readonly<Record<string, string>>,
  input: string | Uint8Array = "",
): Promise<Finished> {
  const bytes = Buffer.from(input);
  const file = join(temporaryDirectory(), "input");
  writeFileSync(file, bytes);
  const descriptor = openSync(file, "r");
  const io = stringIo(environment(more), bytes, descriptor);
  try {
    await runCommandLine(args, io);
  } finally {
    closeSync(descriptor);
  }
  return { code: io.exitCode, ...io.printed() };
}
