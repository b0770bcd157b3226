/**
 * Runs, as root, the tests that an earlier run without root skipped for want of it: `root-tests.js FILE`, with the file that the
 * reporter wrote to STRONGROOM_ROOT_TESTS.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const mocha = fileURLToPath(new URL("../../../node_modules/mocha/bin/mocha.js", import.meta.url));
const support = fileURLToPath(new URL("../support/", import.meta.url));

type Skipped = { readonly title: string; readonly file: string };

const skipped = readFileSync(process.argv[2] ?? "", "utf8")
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line) as Skipped);

if (skipped.length === 0) process.stdout.write("0 passed, 0 failed\n");
else process.exitCode = run(skipped);

function run(tests: readonly Skipped[]): number {
  const titles = tests.map(({ title }) => title.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  const files = [...new Set(tests.map(({ file }) => file))];
  const hooks = ["--require", `${support}hooks.js`, "--reporter", `${support}reporter.js`];
  const args = ["--no-config", ...hooks, "--parallel", "--jobs", "2", "--timeout", "180000", "--forbid-only"];
  const grep = ["--grep", `^(?:${titles.join("|")})`];
  return spawnSync(process.execPath, [mocha, ...args, ...grep, ...files], { stdio: "inherit" }).status ?? 1;
}
