/** Checks of the sandbox between its mounts and the start of the program: something may have been moved in between. */
import { type FSWatcher, lstatSync, readdirSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";
import { fileIdentity, type Identity, readMounts } from "./path-walk.js";
import type { Expected } from "./sandbox-plan.js";

/** Checks outside that the files under the covers are the planned files. @throws CommandFailure conflict */
export function checkOutside({ unchanged }: Expected): void {
  for (const [path, identity] of unchanged) if (identityAt(path) !== identity) throw changed(path);
}

/** Inside: the covers are where they were planned, and nothing hidden is seen beside them. @throws CommandFailure conflict */
export function checkInside(expected: Expected): void {
  const { same, mounted, frames, hidden } = expected;
  const mounts = new Set(readMounts().map(({ path }) => path));
  const entries = frames.flatMap((frame) => readdirSync(frame).map((name) => join(frame, name)));
  const moved = same.find(([path, identity]) => identityAt(path) !== identity)?.[0];
  const shown = [...mounted, ...entries].find((path) => hidden.includes(identityAt(path) ?? ""));
  const wrong = mounted.find((path) => !mounts.has(path)) ?? moved ?? shown ?? replacedEntry(expected);
  if (wrong !== undefined) throw changed(wrong);
}

/** Bubblewrap follows links: an entry that became one shows what that leads to, and nothing in there is covered. */
function replacedEntry({ entries, above }: Expected): string | undefined {
  const found = entries.find(([path, planned]) => {
    const identity = identityAt(path);
    if (identity === null) return false;
    return identity !== planned || above.some(([other, its]) => its === identity && other !== path);
  });
  return found?.[0];
}

/** Calls `end` once something that is covered itself is replaced outside: the cover is then gone, and what is new is seen. */
export function watchExposed({ exposed, unchanged }: Expected, end: (path: string) => void): FSWatcher[] {
  const identities = new Map(unchanged);
  return exposed.map((path) =>
    watch(dirname(path), (_event, name) => {
      if (name === basename(path) && identityAt(path) !== identities.get(path)) end(path);
    }).unref(),
  );
}

function identityAt(path: string): Identity | null {
  try {
    return fileIdentity(lstatSync(path));
  } catch {
    return null;
  }
}

function changed(path: string): CommandFailure {
  const problem = `${printable(path)} has changed while the sandbox was made`;
  return new CommandFailure("conflict", `${problem}, and might not be hidden: the program was not started; try again`);
}
