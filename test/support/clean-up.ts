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

export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "strongroom-test-"));
  later(() => rm(directory, { recursive: true, force: true }));
  return directory;
}
