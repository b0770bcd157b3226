/**
 * What the build makes of the compiled modules: the key worker's thread, and the command. CommonJS, since Node takes longer
 * to load an ES module than our programs take to run.
 */
import { readFileSync } from "node:fs";
import { defineConfig } from "rolldown";

const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));

/** Other packages become part of the program: ES modules only, which `require` would give another shape. See NOTICE. */
const installed = [...Object.keys(dependencies), "pg"];

const isExternal = (id) => installed.some((name) => id === name || id.startsWith(`${name}/`));

// biome-ignore lint/style/noDefaultExport: rolldown loads its configuration by the default export
export default defineConfig([
  {
    input: "dist/workers/operations/key-worker.js",
    platform: "node",
    output: { file: "dist/workers/key-worker.cjs", format: "cjs" },
  },
  {
    input: ["dist/src/cli/entry.cjs", "dist/src/cli/lib/clipboard-clear.js"],
    platform: "node",
    external: isExternal,
    output: {
      dir: "dist/program",
      format: "cjs",
      dynamicImportInCjs: false,
      entryFileNames: "[name].cjs",
      chunkFileNames: "[name].cjs",
    },
  },
]);
