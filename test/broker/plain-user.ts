/** A user whom the sandbox can hold: the one who runs the tests, and in place of root another one. */
import { spawn, spawnSync } from "node:child_process";
import { chownSync, copyFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { isRoot, needs } from "../../tools/rig/needs.js";
import { collect, type Ended, environment, mainFile, node } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { needsOtherUser, otherUser } from "../support/needs.js";

/** Options of `spawn`. */
export const user = isRoot ? { uid: otherUser, gid: otherUser } : {};

/** Skips a test where bubblewrap cannot make a sandbox for such a user. */
export function needsSandbox(test: Mocha.Context): void {
  const flags = ["--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "true"];
  const isPossible = existsSync("/usr/bin/bwrap") && spawnSync("bwrap", flags, { ...user, cwd: "/" }).status === 0;
  needs(test, isPossible, "bubblewrap, and user namespaces");
  if (isRoot) needsOtherUser(test);
}

/** Gives files to the user. */
export function give(...paths: readonly string[]): void {
  if (isRoot) for (const path of paths) chownSync(path, otherUser, otherUser);
}

/** Makes directories of the user's below a new one, and returns that one. */
export function ownDirectory(...names: readonly string[]): string {
  const directory = temporaryDirectory();
  give(directory);
  for (const name of names) {
    mkdirSync(join(directory, name), { mode: 0o700 });
    give(join(directory, name));
  }
  return directory;
}

/** Makes a home with the server's token and certificate, as its own user has it. */
export function makeOwnHome({ home }: TestServer, path: string): void {
  for (const directory of [path, join(path, "tls"), join(path, "vault")]) {
    mkdirSync(directory, { mode: 0o700 });
    give(directory);
  }
  for (const file of ["token", join("tls", "cert.pem")]) {
    copyFileSync(join(home, file), join(path, file));
    give(join(path, file));
  }
}

/** Returns the variables of a user who has a home with the server's token and certificate. */
export function ownEnvironment(server: TestServer): NodeJS.ProcessEnv {
  const home = ownDirectory();
  makeOwnHome(server, join(home, "strongroom"));
  const places = { HOME: home, TMPDIR: home, XDG_DATA_HOME: home, XDG_STATE_HOME: home };
  return environment({ ...places, STRONGROOM_HOME: join(home, "strongroom"), STRONGROOM_ADDRESS: server.url });
}

export type Start = {
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  /** Script of the shell that starts the command, before it. */
  readonly before?: string;
};

/** Runs the command as the user, below a shell. */
export function runAsUser(args: readonly string[], { cwd = "/", env, before = "" }: Start): Promise<Ended> {
  const shell = ["-c", `${before}exec "$@"`, "bash", node, mainFile, ...args];
  return collect(spawn("/bin/bash", shell, { ...user, env, cwd })).ended;
}

/** Returns what runs a command as the user. */
export function asUser(): readonly string[] {
  return isRoot ? ["setpriv", `--reuid=${otherUser}`, `--regid=${otherUser}`, "--clear-groups"] : [];
}
