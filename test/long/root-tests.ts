/**
 * Prints a pattern for `npm test -- --grep` that selects the tests which a run without root skipped for want of it:
 * `root-tests.js FILE`, with the file that the reporter wrote to STRONGROOM_ROOT_TESTS.
 */
import { readFileSync } from "node:fs";

const titles = readFileSync(process.argv[2] ?? "", "utf8")
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line) as string);
const escaped = titles.map((title) => title.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
process.stdout.write(escaped.length === 0 ? "(?!)" : `^(?:${escaped.join("|")})`); // the first selects none
