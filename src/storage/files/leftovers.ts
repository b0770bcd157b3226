/** Leftovers of a crash outside of the tree. */
import { join } from "node:path";
import type { FileOperations } from "../../files/durable.js";
import { removeTree } from "../../files/remove-tree.js";
import { isGenerationName } from "./generations.js";
import { cleaned, removeTemps } from "./tree-scan.js";

const unfinished = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/** Removes temp files in the vault's directory and in each generation, snapshots, and unfinished restores. */
export async function removeLeftovers(files: FileOperations, vaultPath: string): Promise<void> {
  for (const entry of await files.readdir(vaultPath, { withFileTypes: true })) {
    const path = join(vaultPath, entry.name);
    if (unfinished.test(entry.name)) await cleaned(removeTree(files, path));
    else if (entry.isDirectory() && isGenerationName(entry.name)) await removeTemps(files, path); // never through a link
  }
  await removeTemps(files, vaultPath);
}
