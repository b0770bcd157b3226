/** Owns the hooks around every test and suite: each cleans up what was opened inside it. */
import { cleanUpMark, cleanUpTo } from "./clean-up.js";

let beforeTest = 0;

export const mochaHooks = {
  beforeEach(): void {
    beforeTest = cleanUpMark();
  },
  async afterEach(): Promise<void> {
    await cleanUpTo(beforeTest);
  },
};
