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
  /** Reported only here: an error thrown in a hook after one test would end the run. */
  afterAll(): void {
    const found = violations.splice(0);
    if (found.length > 0) throw new Error(`not as documented:\n${found.join("\n")}`);
  },
};
