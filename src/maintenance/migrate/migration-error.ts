/** Errors of a migration. */
import type { SecretStore } from "../../storage/secret-store.js";

/** `exists`: the target has another vault; `damaged`: the source's header; `changed`: by someone else meanwhile. */
export type MigrationProblem = "exists" | "uninitialized" | "damaged" | "changed" | "aborted";

/** The message is for people: what is wrong, and what to do. */
export class MigrationError extends Error {
  readonly problem: MigrationProblem;

  constructor(problem: MigrationProblem, message: string) {
    super(message);
    this.name = "MigrationError";
    this.problem = problem;
  }
}

/** The two stores hold the same vault with different secrets. */
export function changedSource({ vaultPath }: SecretStore): MigrationError {
  const remedy = "make sure that no server uses either of the two, then run the command again";
  return new MigrationError("changed", `${vaultPath} and the other vault differ: ${remedy}`);
}
