/**
 * What a run leaves in the home of the server that it looked at, for the review page: only those who can write in the home
 * can change it, which no token can.
 */
import { chownSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Report } from "./report.js";

const lastFile = "last-prove.json";

/** A home that this user may not write to keeps the file of an earlier run. */
export function leaveLast(home: string, { at, verdict, checks }: Report): void {
  const temporary = join(home, `.${lastFile}.${process.pid}`);
  try {
    const failed = checks.filter(({ holds }) => !holds).length;
    const text = JSON.stringify({ at, verdict, checks: checks.length, failed });
    writeFileSync(temporary, `${text}\n`, { mode: 0o600, flag: "wx" });
    const { uid, gid } = statSync(home);
    if (process.getuid?.() === 0) chownSync(temporary, uid, gid);
    renameSync(temporary, join(home, lastFile));
  } catch {
    rmSync(temporary, { force: true });
  }
}
