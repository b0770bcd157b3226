/** Removal of compiled files whose source is gone: a clone that was built before an update would run the tests among them. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Folders of dist that are not the compiler's. */
const bundles = /^(?:program|mcp|code-cache)\//;

/** Removes compiled files without a source from `dist` in the root of a source tree. */
export function removeStaleOutput(root: string): void {
  for (const file of readdirSync(join(root, "dist"), { recursive: true, encoding: "utf8" })) {
    const [, name] = /^(.+)\.(?:js|js\.map|d\.ts)$/.exec(file) ?? [];
    if (name === undefined || bundles.test(file) || existsSync(join(root, `${name}.ts`))) continue;
    rmSync(join(root, "dist", file));
  }
}
