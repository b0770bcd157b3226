/** Tests that need more than every machine has: where it is missing, a pending test says what it is. */
import { spawnSync } from "node:child_process";
import { isRoot, needs } from "../../tools/rig/needs.js";
import { mainFile } from "../../tools/rig/process.js";

/** The kernel's unprivileged user, who owns no files. */
export const otherUser = 65_534;

/** Skips a test in which another user runs the program: without root, and in a clone that only its owner can read. */
export function needsOtherUser(test: Mocha.Context): void {
  needs(test, isRoot, "root");
  const canRead = spawnSync("test", ["-r", mainFile], { uid: otherUser, gid: otherUser }).status === 0;
  needs(test, canRead, "a clone that all users can read");
}

/** Reports in the suite what this machine lacks ("needs strace"); returns whether that is anything. */
export function isMissing(what: string | null): boolean {
  if (what !== null) it(what);
  return what !== null;
}

/** An `it` for what is too slow for the normal suite: it runs while the variable is set, as the long forms set it. */
export function onlyWith(variable: string): (title: string, test: Mocha.AsyncFunc) => void {
  return (title, test) => {
    if (process.env[variable] === undefined) it(`${title} (needs ${variable})`);
    else it(title, test);
  };
}
