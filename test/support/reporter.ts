/** Mocha's spec report. At its end it says why tests were skipped, and the last line is `N passed, N failed`. */
import { appendFileSync } from "node:fs";
import Mocha from "mocha";

/** At the end of a pending test's title, or all of it. */
const missing = /(?:^| )\(?needs (.+?)\)?$/;

/** File that gets the titles of tests that are skipped for want of root, in lines of JSON: the input of `root-tests`. */
const rootTests = process.env["STRONGROOM_ROOT_TESTS"];

// biome-ignore lint/style/noDefaultExport: mocha loads a reporter by its default export
export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const reasons = new Map<string, number>();
    runner.on(Mocha.Runner.constants.EVENT_TEST_PENDING, (test) => {
      const reason = missing.exec(test.title)?.[1] ?? "unknown: its title does not say what it needs";
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      if (rootTests === undefined || !/^root\b/.test(reason)) return;
      appendFileSync(rootTests, `${JSON.stringify(test.fullTitle().replace(missing, ""))}\n`);
    });
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats;
      const skipped = pending > 0 ? `, ${pending} skipped` : "";
      process.stdout.write(`${formatReasons(reasons)}${passes} passed, ${failures} failed${skipped}\n`);
    });
  }
}

/** Returns the lines that say what was missing, the most frequent first. */
function formatReasons(reasons: ReadonlyMap<string, number>): string {
  if (reasons.size === 0) return "";
  const rows = [...reasons].sort(([a, more], [b, less]) => less - more || a.localeCompare(b));
  return `skipped, by what they need:\n${rows.map(([reason, count]) => `${String(count).padStart(5)}  ${reason}\n`).join("")}`;
}
