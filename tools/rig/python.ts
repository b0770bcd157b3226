/** Python's interpreter, found once in each process. */
import { spawnSync } from "node:child_process";

const question = "import fcntl, sys, termios; print(sys.executable)";

let found: string | null | undefined;

/**
 * Returns the interpreter's own file, or null if there is none that can make terminals: `python3` may be a script of a version
 * manager, which takes longer to start than Python.
 */
export function pythonFile(): string | null {
  if (found === undefined) {
    const { status, stdout } = spawnSync("python3", ["-IS", "-c", question], { encoding: "utf8" });
    found = status === 0 ? stdout.trim() : null;
  }
  return found;
}
