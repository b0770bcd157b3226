/** Owns the ways in which a backup or a restore can fail. */

/**
 * `exists`: something would be overwritten; `uninitialized`: there is no vault; `damaged`: the archive; `aborted`: by the
 * user; `unusable`: else.
 */
export type BackupProblem = "exists" | "uninitialized" | "damaged" | "aborted" | "unusable";

/** The message, written for people, says what was wrong and what to do. */
export class BackupError extends Error {
  readonly problem: BackupProblem;

  constructor(problem: BackupProblem, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "BackupError";
    this.problem = problem;
  }
}
