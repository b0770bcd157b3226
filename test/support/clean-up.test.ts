/** Clean-up of tests and of the demonstration. */
import { expect } from "chai";
import { cleanUpMark, cleanUpTo, later } from "../../tools/rig/clean-up.js";

it("a clean-up runs the last work first, and also work that is registered while it runs", async () => {
  const done: string[] = [];
  const mark = cleanUpMark();
  later(() => void done.push("first"));
  later(async () => {
    later(() => void done.push("nested"));
    await Promise.resolve();
    done.push("last");
  });
  await cleanUpTo(mark);
  expect(done).to.deep.equal(["last", "nested", "first"]);
});
