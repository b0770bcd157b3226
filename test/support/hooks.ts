/** Mocha hooks: files in memory, clean-up after every test and suite; a response that violated the contract fails its file. */
import { beginRun, cleanUpMark, cleanUpTo, endRun, preferMemory } from "../../tools/rig/clean-up.js";
import { takeViolations } from "../../tools/rig/contract-judge.js";

preferMemory();
process.env["TZ"] = "UTC"; // tables show local times

/** Run once, in the process that starts the parallel ones. */
export const mochaGlobalSetup = beginRun;
export const mochaGlobalTeardown = endRun;

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
