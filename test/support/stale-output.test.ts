/** Files that the build removes from the compiled tree. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { removeStaleOutput } from "../../tools/stale-output.js";

it("the build removes compiled files whose source is gone, and no others", () => {
  const root = temporaryDirectory();
  const kept = ["test/here.test.js", "test/here.test.d.ts", "test/here.test.js.map", "program/main.js", "NOTICE"];
  const stale = ["test/gone.test.js", "test/gone.test.d.ts", "test/gone.test.js.map", "src/cli/gone.js"];
  for (const file of ["test/here.test.ts", ...[...kept, ...stale].map((name) => `dist/${name}`)]) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), "");
  }
  removeStaleOutput(root);
  const left = readdirSync(join(root, "dist"), { recursive: true, encoding: "utf8" });
  expect(left.filter((name) => /\.|NOTICE/.test(name)).sort()).to.deep.equal([...kept].sort());
});
