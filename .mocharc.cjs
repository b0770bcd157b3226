/**
 * All tests, four files at a time: many wait more than they compute. The longest files come first, so that none of them is
 * the last to end. Then those that start processes, while the memory of the processes that run them is still small: the
 * larger it is, the longer it takes to start another.
 */
const { readdirSync } = require("node:fs");
const { join } = require("node:path");

const longest = [
  "prove/prove",
  "prove/controls",
  "storage/store-contract.slow",
  "isolation/memory",
  "durability/power-cut",
  "prove/dumps",
  "docs/commands",
  "cli/import",
  "server/serve",
  "cli/paste",
  "maintenance/doctor-command",
];
const rooms = ["durability", "prove", "docs", "storage", "isolation", "maintenance", "server", "cli", "torture"];

/** Before a build there are none. */
function testFiles() {
  try {
    return readdirSync("dist/test", { recursive: true }).filter((name) => name.endsWith(".test.js"));
  } catch {
    return [];
  }
}

function rankOf(file) {
  const [room] = file.split(/[/\\]/);
  const ranks = [longest.indexOf(file.replace(".test.js", "")), longest.length + rooms.indexOf(room)];
  return ranks[0] >= 0 ? ranks[0] : rooms.includes(room) ? ranks[1] : longest.length + rooms.length;
}

module.exports = {
  spec: testFiles()
    .sort((a, b) => rankOf(a) - rankOf(b))
    .map((file) => join("dist/test", file)),
  require: ["dist/test/support/hooks.js"],
  reporter: "dist/test/support/reporter.js",
  parallel: true,
  jobs: 4,
  timeout: 180_000, // only for what hangs: at a load of 15 a test of several processes takes a minute
  exit: false,
  forbidOnly: true,
};
