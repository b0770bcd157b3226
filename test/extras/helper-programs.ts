/** Helpers under the names by which git, docker, age and others look for them. */
import { spawn } from "node:child_process";
import { readdirSync, symlinkSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { collect, type Ended, environment } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";

/** Returns the environment of a program that finds the helpers, and they the server. */
export function helperEnvironment({ home, url }: TestServer, more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const directory = temporaryDirectory();
  for (const file of readdirSync("bin")) symlinkSync(resolve("bin", file), join(directory, file.replace(/\.cjs$/, "")));
  const PATH = directory + delimiter + (process.env["PATH"] ?? "");
  return environment({ STRONGROOM_HOME: home, STRONGROOM_ADDRESS: url, PATH, ...more });
}

/** Returns a function that runs programs which find the helpers. `always`: variables for all of them. */
export function helperRunner(server: () => TestServer, always: Record<string, string> = {}) {
  return (
    program: string,
    args: readonly string[],
    input: string | Uint8Array,
    more: Record<string, string> = {},
  ): Promise<Ended> => {
    const env = helperEnvironment(server(), { ...always, ...more });
    const child = spawn(program, args, { env, cwd: temporaryDirectory(), timeout: 120_000, killSignal: "SIGKILL" });
    child.stdin.on("error", () => {}).end(input);
    return collect(child).ended;
  };
}
