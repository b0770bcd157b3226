/** Owns what a failed file operation means to people, and what helps. */
import { systemCode } from "../errors.js";

/** By the system's code (errno(3)). */
const remedies: Readonly<Record<string, string>> = {
  EACCES: "see its owner and mode, and those of the directories above it",
  EBADF: "no file is open there",
  EBUSY: "something else uses it",
  EDQUOT: "make room on its disk",
  EINVAL: "it cannot be read or written like a file",
  EIO: "see whether its disk is well",
  EISDIR: "it is a directory, name a file",
  ELOOP: "links on its way lead in a circle",
  EMFILE: "too many files are open, raise the limit (ulimit -n)",
  ENAMETOOLONG: "choose a shorter name",
  ENOENT: "no such file or directory, see how it is spelled",
  ENOSPC: "make room on its disk",
  ENOTDIR: "a part of its path is no directory",
  EPERM: "see its owner and mode, and those of the directories above it",
  EROFS: "its disk is read-only",
  "not a plain file": "see what it is, and move it away",
};

/**
 * Which file could not be used, why, and what helps; null of an error that is about no file operation. One on an open file
 * does not say which, and only its code tells it from one on a socket.
 */
export function problemOfFile(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const code = systemCode(error);
  if ("path" in error) return `${error.path} cannot be used${reasonOf(code)}`;
  return code !== undefined && code in remedies ? `a file cannot be used${reasonOf(code)}` : null;
}

/** To stand behind "… cannot be read": ` (ENOENT): no such file or directory, see how it is spelled`. */
export function reasonOf(code = "unknown reason"): string {
  return ` (${code}): ${remedies[code] ?? "see whether its disk is well"}`;
}
