/** Errors of backup and restore. */

/**
 * `exists`: something would be overwritten; `uninitialized`: there is no vault; `damaged`: the archive or the vault's
 * header; `aborted`: by the user; `unusable`: any other reason.
 */
export type BackupProblem = "exists" | "uninitialized" | "damaged" | "aborted" | "unusable";

/** The message is for people: what is wrong, and what to do. */
export class BackupError extends Error {
  readonly problem: BackupProblem;

  constructor(problem: BackupProblem, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "BackupError";
    this.problem = problem;
  }
}
