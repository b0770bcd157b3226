/**
 * Owns switching syncs off inside a server process, so that the power-cut rig can be seen losing data. Loaded before the
 * program with `--import`; the address says which syncs do nothing: `?files`, `?directories`, or `?files&directories`.
 */
import { type FileHandle, open } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const off = new URL(import.meta.url).searchParams;

const handle = await open(fileURLToPath(import.meta.url));
const everyHandle = Object.getPrototypeOf(handle) as FileHandle;
await handle.close();

for (const name of ["sync", "datasync"] as const) {
  const real = everyHandle[name];
  everyHandle[name] = async function (this: FileHandle) {
    const kind = (await this.stat()).isDirectory() ? "directories" : "files";
    if (!off.has(kind)) await real.call(this);
  };
}
