/** A bare recursive walk of a directory tree: the minimum work of a start that reads all names. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { mustHave } from "./listen.js";

async function walk(directory: string): Promise<number> {
  let files = 0;
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    files += entry.isDirectory() ? await walk(join(directory, entry.name)) : 1;
  }
  return files;
}

process.send?.({ files: await walk(mustHave("BENCH_DIRECTORY")) });
