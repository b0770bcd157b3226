/** The inner loop: tests that start no process and wait for no real time; a config's `extends` would drop `parallel`. */
module.exports = {
  ...require("./.mocharc.cjs"),
  spec: ["dist/test/{http,vault,storage,workers,client,contract}/**/*.test.js"],
  ignore: ["**/*.{process,slow}.test.js"],
};
