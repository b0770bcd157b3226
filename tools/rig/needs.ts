/** Needs of tests. A test whose need is missing on the machine is pending, and its title ends with the need. */
import Mocha from "mocha";

export const isRoot = process.getuid?.() === 0;

/** Skips a test, or in a hook all tests of its suite, unless `isThere`. */
export function needs(context: Mocha.Context, isThere: boolean, what: string): asserts isThere {
  skipFor(context, isThere ? null : `needs ${what}`);
}

/** Like `needs`; `missing` is what the machine lacks ("needs strace"), or null. */
export function skipFor(context: Mocha.Context, missing: string | null): void {
  if (missing === null) return;
  const { test, currentTest } = context;
  const note = (skipped: Mocha.Runnable) => {
    skipped.title += ` (${missing})`;
  };
  if (test instanceof Mocha.Test) note(test);
  else if (test?.title.startsWith('"before each"') && currentTest !== undefined) note(currentTest);
  else test?.parent?.eachTest(note); // a hook before all
  context.skip(); // throws
}
