/**
 * Bundles that the build makes of the compiled modules and their packages: the key worker's thread, and the command.
 * An installed package then needs no other one. CommonJS, since Node takes longer to load an ES module than our programs
 * take to run.
 */
import { existsSync } from "node:fs";
import { defineConfig } from "rolldown";

/** Packages that others use where they are installed, and that are not: native code, and colours of a debug log. */
const absent = ["pg-native", "@napi-rs/nice", "supports-color"];

/** piscina starts its thread from a file beside it, which is an entry of its own here. */
const piscinaThread = {
  name: "piscina-thread",
  transform(code, id) {
    if (!id.endsWith("/piscina/dist/index.js")) return null;
    if (!code.includes("__dirname, 'worker.js'")) throw new Error("piscina names its thread's file in another way");
    return code.replace("__dirname, 'worker.js'", "__dirname, 'piscina-thread.cjs'");
  },
};

// biome-ignore lint/style/noDefaultExport: rolldown loads its configuration by the default export
export default defineConfig([
  {
    input: "dist/workers/operations/key-worker.js",
    platform: "node",
    output: { file: "dist/workers/key-worker.cjs", format: "cjs" },
  },
  {
    input: { "strongroom-mcp": "dist/packages/mcp/src/main.js" },
    platform: "node",
    external: [/^@modelcontextprotocol\//, "zod"],
    output: { dir: "dist/mcp", format: "esm", entryFileNames: "[name].mjs", banner: "#!/usr/bin/env node" },
  },
  {
    input: { "piscina-thread": "node_modules/piscina/dist/worker.js" },
    platform: "node",
    external: absent,
    output: { dir: "dist/program", cleanDir: true, format: "cjs", entryFileNames: "[name].cjs" },
  },
  {
    input: [
      "dist/src/cli/entry.cjs",
      "dist/src/cli/kit/output/clipboard-clear.js",
      "dist/src/broker/broker-thread.js",
      ...["dist/src/extras/credentials/socket-thread.js"].filter((file) => existsSync(file)), // an extra may be left out
    ],
    platform: "node",
    external: absent,
    plugins: [piscinaThread],
    output: {
      dir: "dist/program",
      format: "cjs",
      dynamicImportInCjs: false,
      entryFileNames: "[name].cjs",
      chunkFileNames: "[name].cjs",
    },
  },
]);
