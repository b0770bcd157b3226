/** All tests, three files at a time; the rooms with the longest files first, so that none of these is the last to end. */
const longest = ["durability", "isolation", "docs", "maintenance", "server"];

module.exports = {
  spec: [
    `dist/test/{${longest.join()}}/**/*.test.js`,
    `dist/test/!(${longest.join("|")})/**/*.test.js`,
    "dist/test/*.test.js",
  ],
  require: ["dist/test/support/hooks.js"],
  reporter: "dist/test/support/reporter.js",
  parallel: true,
  jobs: 3,
  timeout: 180_000, // only for what hangs: at a load of 15 a test of several processes takes a minute
  exit: false,
  forbidOnly: true,
};
