/** File systems mounted for tests, and always unmounted. Needs Linux and root. */
import { execFileSync, spawnSync } from "node:child_process";
import { later } from "../../tools/rig/clean-up.js";

/** Runs a system tool. @throws Error with its output when it fails. */
export function mustRun(tool: string, ...args: readonly string[]): void {
  execFileSync(tool, args, { stdio: ["ignore", "ignore", "pipe"] });
}

export function canRun(tool: string, ...args: readonly string[]): boolean {
  return spawnSync(tool, args, { stdio: "ignore" }).status === 0;
}

/** Returns why nothing can be mounted here; null when it can. */
export function whyNoMounts(): string | null {
  if (process.platform !== "linux") return "needs Linux";
  if (process.getuid?.() !== 0) return "needs root";
  return canRun("unshare", "--mount", "true") ? null : "needs the right to mount in a namespace";
}

const mounted = new Set<string>();

/** Mounts until the end of the test, or until `unmount`. */
export function mount(what: string, directory: string, ...options: readonly string[]): void {
  unmountAtAnyEnd();
  mustRun("mount", ...options, what, directory);
  mounted.add(directory);
  later(() => unmount(directory));
}

/** Also frees a loop device that the mount made. */
export function unmount(directory: string): void {
  if (!mounted.delete(directory)) return;
  if (!canRun("umount", directory)) mustRun("umount", "--lazy", directory);
}

let watching = false;

/** An interrupted test run runs no clean-up of its own. */
function unmountAtAnyEnd(): void {
  if (watching) return;
  watching = true;
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));
  process.once("exit", () => {
    for (const directory of [...mounted].reverse()) unmount(directory);
  });
}
