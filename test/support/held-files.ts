/** Owns file operations that wait: whoever opens a file that a test has named stands still until the test lets go. */
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { closedGate } from "./latch.js";

export type Hold = {
  /** Resolves once somebody waits. */
  readonly reached: Promise<void>;
  readonly release: () => void;
};

export type HeldFiles = {
  readonly files: FileOperations;
  /** From now on whoever opens a file with `part` in its path waits. */
  hold(part: string): Hold;
};

export function heldFiles(): HeldFiles {
  let atFile = async (_path: string) => {};
  const open: FileOperations["open"] = async (path, ...more) => {
    await atFile(path);
    return systemFiles.open(path, ...more);
  };
  const hold = (part: string): Hold => {
    const [reached, released] = [closedGate(), closedGate()];
    atFile = async (path) => {
      if (!path.includes(part)) return;
      reached.open();
      await released.passed;
    };
    return { reached: reached.passed, release: released.open };
  };
  return { files: { ...systemFiles, open }, hold };
}
