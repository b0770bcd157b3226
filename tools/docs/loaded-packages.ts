/** The packages that a server loads, measured in a process: those in the bundled files of its main thread and key worker. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { foldersIn } from "../../packaging/bundled-packages.js";
import { temporaryDirectory } from "../rig/clean-up.js";
import { emptyHome } from "../rig/prepared-home.js";
import { mainFile, startProcess } from "../rig/process.js";
import { mustGet, mustInit, mustList, mustLock, mustPut, mustUnlock } from "../rig/test-client.js";

const recorder = fileURLToPath(new URL("../rig/loaded-files.cjs", import.meta.url));

/** All files of the key worker's thread; the second is our own code. */
const threadFiles = ["dist/program/piscina-thread.cjs", "dist/workers/key-worker.cjs"] as const;

type Loaded = { readonly main: readonly string[]; readonly keyWorker: readonly string[] };

/** A server that has made a vault, stored, read, listed, locked and unlocked. */
export async function loadedByServer(): Promise<Loaded> {
  const list = join(temporaryDirectory(), "files");
  const server = await startProcess(
    [],
    { STRONGROOM_HOME: emptyHome(), STRONGROOM_LOADED_FILES: list },
    { main: mainFile, nodeFlags: ["--require", recorder] },
  );
  await mustInit(server);
  await mustPut(server, "a", "v");
  await mustGet(server, "a");
  await mustList(server);
  await mustLock(server);
  await mustUnlock(server);
  await server.stop();
  const files = JSON.parse(readFileSync(list, "utf8")) as string[];
  const bundled = files.filter((file) => file !== recorder);
  return { main: packagesIn(bundled), keyWorker: packagesIn(threadFiles) };
}

function packagesIn(files: readonly string[]): string[] {
  const names = files.flatMap(foldersIn).map((folder) => folder.replace(/^.*node_modules\//, ""));
  return [...new Set(names)].sort();
}
