/**
 * The system's file operations, except that a vault's lock starts no process: from a process that has run many tests,
 * starting one is slow. The pid file still refuses a second server. What starts `strongroom serve` has the real lock.
 */
import { type FileOperations, systemFiles } from "../../src/files/durable.js";

export const lightFiles: FileOperations = { ...systemFiles, flock: async () => "ours" };
