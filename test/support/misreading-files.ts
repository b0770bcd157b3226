/** File operations of which one read gets a wrong bit, as from a failing disk or memory. */
import { type FileOperations, OpenFile, systemFiles } from "../../src/files/durable.js";
import { lightFiles } from "../../tools/rig/light-files.js";

export type MisreadingFiles = {
  readonly files: FileOperations;
  /** The next read of this file gets the wrong bit `fromEnd` bytes before what it reads ends. */
  misreadOnce(path: string, fromEnd: number): void;
  /** How many reads have been wrong. */
  misread(): number;
};

export function misreadingFiles(): MisreadingFiles {
  let next: { readonly path: string; readonly fromEnd: number } | null = null;
  let count = 0;
  const open = async (...[path, flags, mode]: Parameters<FileOperations["open"]>) => {
    const handle = await systemFiles.open(path, flags, mode);
    const read = async (bytes: Uint8Array, at: number) => {
      const length = await OpenFile.prototype.read.call(handle, bytes, at);
      const wrong = at + length - 1 - (next?.fromEnd ?? 0);
      if (next?.path !== path || length === 0 || wrong < at) return length;
      next = null;
      count++;
      bytes[wrong] = (bytes[wrong] ?? 0) ^ 1;
      return length;
    };
    return Object.assign(handle, { read });
  };
  return {
    files: { ...lightFiles, open } as FileOperations,
    misreadOnce: (path, fromEnd) => {
      next = { path, fromEnd };
    },
    misread: () => count,
  };
}
