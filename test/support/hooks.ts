/** Mocha hooks: clean up after every test and suite, and fail a file in which a response violated the contract. */
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
  /** Closes what a `before` hook opened. Violations are reported only here: an error thrown after one test would end the run. */
  async afterAll(): Promise<void> {
    await cleanUpTo(0);
    const found = violations.splice(0);
    if (found.length > 0) throw new Error(`not as documented:\n${found.join("\n")}`);
  },
};
