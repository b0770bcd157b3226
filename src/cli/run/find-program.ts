/** Search for a program as execvp(3) does it, to say what is wrong before anything is started. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { systemCode } from "../../errors.js";

/** Exit statuses as shells use them. */
export const notFound = 127;
const notExecutable = 126;

export type NotStartable = { readonly status: number; readonly problem: string };

/** Where execvp looks when there is no PATH. */
const defaultPath = "/bin:/usr/bin";

/** Returns why the program cannot be started, or null. */
export function problemOfProgram(program: string, path: string = defaultPath): NotStartable | null {
  const files = program.includes("/") ? [program] : path.split(delimiter).map((directory) => join(directory, program));
  const problems = program === "" ? ["ENOENT"] : files.map(problemOfFile);
  if (problems.includes(null)) return null;
  const denied = problems.find((code) => code !== "ENOENT" && code !== "ENOTDIR");
  if (denied === undefined) return { status: notFound, problem: `${program}: the command is not found` };
  return { status: notExecutable, problem: `${program}: the command cannot be executed (${denied})` };
}

function problemOfFile(file: string): string | null {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile() ? null : "EACCES";
  } catch (error) {
    return systemCode(error) ?? "unknown reason";
  }
}
