/**
 * What the build makes of the compiled modules: the key worker's thread, and the command. CommonJS, since Node takes longer
 * to load an ES module than our programs take to run.
 */
import { defineConfig } from "rolldown";

/** What exists as ES modules only: `require` would give it another shape. NOTICE has their licence. */
const modules = ["env-paths", "is-safe-filename", "leven", "p-limit", "p-map", "yocto-queue"];

const isExternal = (id) => /^[^./]/.test(id) && !modules.includes(id);

// biome-ignore lint/style/noDefaultExport: rolldown loads its configuration by the default export
export default defineConfig([
  {
    input: "dist/workers/key-worker.js",
    platform: "node",
    output: { file: "dist/workers/key-worker.cjs", format: "cjs" },
  },
  {
    input: ["dist/src/cli/entry.cjs", "dist/src/cli/clipboard/clipboard-clear.js"],
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
