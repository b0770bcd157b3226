/** Random sequences of steps, each on a server of its own. */
import fc from "fast-check";
import { cleanUpMark, cleanUpTo } from "../../tools/rig/clean-up.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";

type Runs = { readonly minLength: number; readonly maxLength: number; readonly numRuns: number };

/** Checks that `agrees` holds for random sequences. A failure is not shrunk: that would take hours. */
export async function overRandomSteps<S>(
  step: fc.Arbitrary<S>,
  { numRuns, ...lengths }: Runs,
  agrees: (server: TestServer, steps: readonly S[]) => Promise<void>,
  start: () => Promise<TestServer> = startTestServer,
): Promise<void> {
  const onServer = async (steps: readonly S[]) => {
    const mark = cleanUpMark();
    try {
      await agrees(await start(), steps);
    } finally {
      await cleanUpTo(mark);
    }
  };
  const property = fc.asyncProperty(fc.array(step, lengths), onServer);
  await fc.assert(property, { numRuns, endOnFailure: true, includeErrorInReport: true });
}
