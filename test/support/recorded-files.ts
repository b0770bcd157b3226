/** File operations that record creations, renames and syncs in order. */
import { constants } from "node:fs";
import { type FileOperations, OpenFile, systemFiles } from "../../src/files/durable.js";
import { lightFiles } from "../../tools/rig/light-files.js";

export type RecordedFiles = {
  readonly files: FileOperations;
  /** `mkdir P`, `open P` of files, `rename P` with the target, and `sync P` of directories. */
  readonly steps: string[];
};

export function recordedFiles(): RecordedFiles {
  const steps: string[] = [];
  const open = async (...[path, flags, mode]: Parameters<FileOperations["open"]>) => {
    const handle = await systemFiles.open(path, flags, mode);
    if ((flags & constants.O_DIRECTORY) === 0) {
      steps.push(`open ${path}`);
      return handle;
    }
    const sync = () => {
      steps.push(`sync ${path}`);
      return OpenFile.prototype.sync.call(handle);
    };
    return Object.assign(handle, { sync });
  };
  const mkdir = async (path: string, options: object) => {
    const made = await systemFiles.mkdir(path, options);
    steps.push(`mkdir ${path}`);
    return made;
  };
  const rename = async (from: string, to: string) => {
    await systemFiles.rename(from, to);
    steps.push(`rename ${to}`);
  };
  return { files: { ...lightFiles, open, mkdir, rename } as FileOperations, steps };
}
