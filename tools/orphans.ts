/** Compiled files whose source is gone: a clone that was built before an update keeps them, and would run tests among them. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Folders of dist that are not the compiler's. */
const bundles = /^(?:program|mcp|code-cache)\//;

/** Removes them from the `dist` of a tree. */
export function removeOrphans(root: string): void {
  for (const file of readdirSync(join(root, "dist"), { recursive: true, encoding: "utf8" })) {
    const [, name] = /^(.+)\.(?:js|js\.map|d\.ts)$/.exec(file) ?? [];
    if (name === undefined || bundles.test(file) || existsSync(join(root, `${name}.ts`))) continue;
    rmSync(join(root, "dist", file));
  }
}
