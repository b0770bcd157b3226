/**
 * Search for the programs that make the sandbox and stand between it and the terminal: bwrap, unshare, script. They run outside
 * and decide what is inside, so a program that this user could have replaced is not accepted: an earlier session that could
 * write `~/.local/bin`, or the `node_modules/.bin` that npm puts first, may have left one there.
 *
 * Other programs are found by PATH as in a shell, because none of them limits a program in the sandbox: git, gpg, editors,
 * clipboards, notifications, askpass, systemctl and stty are the user's own choice, and get no more trust than the shell that
 * finds them. flock keeps a second server out, not a program. Node is `process.execPath`, which the sandbox protects.
 */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { ownUid } from "../../client/ownership.js";
import { findProgram } from "../kit/programs/find-program.js";
import { walk } from "./path-walk.js";

/** `file` has no links in its path. `replaceable`: a path on the way to the program that this user can change. */
type SystemProgram =
  | { readonly file: string }
  | { readonly found: string; readonly replaceable: string }
  | { readonly found: null };

/** Returns the first such program on the path that this user cannot replace. Relative directories are skipped. */
export function findSystemProgram(program: string, path: string = "/usr/bin:/bin"): SystemProgram {
  let first: SystemProgram = { found: null };
  for (const directory of path.split(delimiter).filter((each) => isAbsolute(each))) {
    const found = join(directory, program);
    if (!("file" in findProgram(found))) continue;
    const { steps, end } = walk(found);
    const places = ["/", ...steps.filter(({ kind }) => kind !== "link").map((step) => step.path)];
    const replaceable = places.find(canReplace);
    if (replaceable === undefined) return { file: end };
    if (first.found === null) first = { found, replaceable };
  }
  return first;
}

/** A link is as safe as its directory, which is judged before it. The owner of a file can always make it writable. */
function canReplace(path: string): boolean {
  try {
    if (ownUid === null || statSync(path).uid === ownUid) return true;
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
