/**
 * Result that a run leaves in the home of the server, for the review page: only users who can write in the home
 * can change it, which no token can.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Home } from "./home.js";
import type { Report } from "./report.js";

const lastFile = "last-prove.json";

/** The home's owner writes it, also when root looked. A home that the owner may not write to keeps the file of an earlier run. */
export function leaveLast(home: Home, { at, verdict, checks }: Report): void {
  const temporary = join(home.path, `.${lastFile}.${process.pid}`);
  const failed = checks.filter(({ holds }) => !holds).length;
  const text = JSON.stringify({ at, verdict, checks: checks.length, failed });
  const write = () => {
    try {
      writeFileSync(temporary, `${text}\n`, { mode: 0o600, flag: "wx" });
      renameSync(temporary, join(home.path, lastFile));
    } catch {
      rmSync(temporary, { force: true });
    }
  };
  try {
    home.asOwner(write);
  } catch {
    // root may not act as the owner here
  }
}
