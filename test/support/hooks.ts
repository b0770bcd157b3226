/**
 * Owns the hooks around every test and suite: each cleans up what was opened inside it, and no file of tests passes in
 * which one received an answer that is not as the contract has it.
 */
import { cleanUpMark, cleanUpTo } from "./clean-up.js";
import { takeViolations } from "./contract-judge.js";

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
  afterAll(): void {
    const found = violations.splice(0);
    if (found.length > 0) throw new Error(`not as documented:\n${found.join("\n")}`);
  },
};
