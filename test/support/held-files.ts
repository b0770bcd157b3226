/** File operations that block: opening a file chosen by a test waits until the test releases it. */
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { lightFiles } from "../../tools/rig/light-files.js";
import { closedGate } from "./latch.js";

export type Hold = {
  /** Resolves once an open is blocked. */
  readonly reached: Promise<void>;
  readonly release: () => void;
};

export type HeldFiles = {
  readonly files: FileOperations;
  /** From now on opening a file whose path contains `part` blocks. */
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
  return { files: { ...lightFiles, open }, hold };
}
