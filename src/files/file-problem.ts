/** Messages for failed file operations: the reason and a remedy. */
import { systemCode } from "../errors.js";

/** By the system's error code (errno(3)). */
const remedies: Readonly<Record<string, string>> = {
  EACCES: "check its owner and mode, and those of its parent directories",
  EBADF: "no file is open there",
  EBUSY: "another program uses it",
  EDQUOT: "free space on its disk",
  EINVAL: "it cannot be read or written like a file",
  EIO: "check its disk",
  EISDIR: "it is a directory, name a file",
  ELOOP: "symbolic links form a loop",
  EMFILE: "too many files are open, raise the limit (ulimit -n)",
  ENAMETOOLONG: "choose a shorter name",
  ENOENT: "no such file or directory, check the spelling",
  ENOSPC: "free space on its disk",
  ENOTDIR: "a part of its path is not a directory",
  EPERM: "check its owner and mode, and those of its parent directories",
  EROFS: "its disk is read-only",
  "not a plain file": "look at it, and move it away",
};

/**
 * Returns which file could not be used, why, and a remedy; null if the error is not from a file operation. An error on an
 * open file does not name it, and only its code distinguishes it from one on a socket.
 */
export function problemOfFile(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const code = systemCode(error);
  if ("path" in error) return `${error.path} cannot be used${failureReason(code)}`;
  return code !== undefined && code in remedies ? `a file cannot be used${failureReason(code)}` : null;
}

/** Returns the end of a message such as "… cannot be read": ` (ENOENT): no such file or directory, check the spelling`. */
export function failureReason(code = "unknown reason"): string {
  return ` (${code}): ${remedies[code] ?? "check its disk"}`;
}
