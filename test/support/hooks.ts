/**
 * Owns the hooks around every test and suite: each cleans up what was opened inside it, and no run passes in which a test
 * received an answer that is not as the contract has it, or of whose documented responses one was never received.
 */
import { readdirSync } from "node:fs";
import { cleanUpMark, cleanUpTo } from "./clean-up.js";
import { takeViolations, unseenResponses } from "./contract.js";

let beforeTest = 0;
const violations: string[] = [];

export const mochaHooks = {
  beforeEach(): void {
    beforeTest = cleanUpMark();
  },
  async afterEach(this: Mocha.Context): Promise<void> {
    await cleanUpTo(beforeTest);
    const title = this.currentTest?.fullTitle();
    violations.push(...takeViolations().map((violation) => `${title}: ${violation}`));
  },
  /** Only here, because what a hook throws after one test would end the run. */
  afterAll(this: Mocha.Context): void {
    if (violations.length > 0) throw new Error(`not as documented:\n${violations.join("\n")}`);
    const root = this.test?.parent;
    if (root === undefined || !isWholeSuite(root)) return;
    const unseen = unseenResponses();
    if (unseen.length > 0) throw new Error(`documented, but never seen in any test:\n${unseen.join("\n")}`);
  },
};

/** Whether every test there is has been run, and passed or was skipped. */
function isWholeSuite(root: Mocha.Suite): boolean {
  const all = readdirSync("dist/test", { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".test.js"),
  );
  const loaded = new Set(root.suites.map(({ file }) => file));
  let whole = loaded.size === all.length;
  root.eachTest((test) => {
    whole &&= test.isPassed() || test.isPending();
  });
  return whole;
}
