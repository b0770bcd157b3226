/** Clean-up of tests: what a test or suite opens is closed after it. */
import { mkdtempSync } from "node:fs";
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

export async function cleanUpTo(mark: number): Promise<void> {
  for (const work of pending.splice(mark).reverse()) await work();
}

/** One of something for all tests of a `describe`: started before them, cleaned up after them. */
export function shared<T>(start: () => Promise<T>): () => T {
  let started: { readonly it: T } | null = null;
  let mark = 0;
  before(async () => {
    mark = cleanUpMark();
    started = { it: await start() };
  });
  after(() => cleanUpTo(mark));
  return () => {
    if (started === null) throw new Error("used before the suite's before hook");
    return started.it;
  };
}

export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "strongroom-test-"));
  later(() => rm(directory, { recursive: true, force: true }));
  return directory;
}
