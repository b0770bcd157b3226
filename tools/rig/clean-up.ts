/** Clean-up of tests: what a test or suite opens is closed after it. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

type CleanUp = () => Promise<void> | void;

const pending: CleanUp[] = [];

/** Runs `work` when the current test ends; inside a `before` hook, when its suite ends. */
export function later(work: CleanUp): void {
  pending.push(work);
}

/** The current length of the clean-up list, for `cleanUpTo`. */
export function cleanUpMark(): number {
  return pending.length;
}

/** Runs what was registered after the mark, the last first, and also what is registered while it runs. */
export async function cleanUpTo(mark: number): Promise<void> {
  while (pending.length > mark) await pending.pop()?.();
}

/**
 * One of something for all tests of a `describe`: started before them, cleaned up after them. Outside of one it would be
 * kept for all files that one mocha runs, where a test of another file could harm it.
 */
export function shared<T>(start: () => Promise<T>): () => T {
  let started: { readonly it: T } | null = null;
  let mark = 0;
  before(async function (this: Mocha.Context) {
    if (this.test?.parent?.root) throw new Error("shared outside of a describe");
    mark = cleanUpMark();
    started = { it: await start() };
  });
  after(() => cleanUpTo(mark));
  return () => {
    if (started === null) throw new Error("used before the suite's before hook");
    return started.it;
  };
}

/** On the system's disk; in memory after `preferMemory`. */
export function temporaryDirectory(): string {
  return directoryIn(place);
}

/** Returns a temporary directory on a real file system. */
export function diskDirectory(): string {
  return directoryIn(tmpdir());
}

function directoryIn(parent: string): string {
  const directory = mkdtempSync(join(parent, "strongroom-test-"));
  later(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

const runVariable = "STRONGROOM_TEST_RUN";

/**
 * Makes a place for what one run of mocha keeps to its end. Mocha kills its parallel processes, so only the process that
 * started them can remove it.
 */
export function beginRun(): void {
  const directory = mkdtempSync(join(place, "strongroom-test-"));
  chmodSync(directory, 0o711); // another user's programs may have directories in it
  process.env[runVariable] = directory;
}

export function endRun(): void {
  rmSync(process.env[runVariable] ?? "", { recursive: true, force: true });
}

/** Returns a new directory that is kept until the whole run of mocha has ended. */
export function runDirectory(): string {
  const run = process.env[runVariable];
  if (run === undefined) throw new Error("no run of mocha has begun");
  return mkdtempSync(join(run, "kept-"));
}

let place = tmpdir();

/**
 * Moves the temporary directories into memory, unless TMPDIR says where: with its syncs, a disk costs the suites of storage
 * half of their CPU and most of their time. Containers often have a small one, where nothing can be executed.
 */
export function preferMemory(): void {
  if (process.env["TMPDIR"] === undefined && isRoomy("/dev/shm", 2 ** 30)) place = "/dev/shm";
}

function isRoomy(directory: string, bytes: number): boolean {
  try {
    const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
    const [, , , options = "noexec"] = mounts.findLast((line) => line.split(" ")[1] === directory)?.split(" ") ?? [];
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize >= bytes && !/\b(?:noexec|ro)\b/.test(options);
  } catch {
    return false; // there is none
  }
}
